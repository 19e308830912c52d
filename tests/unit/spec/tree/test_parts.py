"""A document is read again where its text is another, and comes to what its file says."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetform.spec.bounds import Limits
from fleetform.spec.documents import read_documents
from fleetform.spec.tree import load_tree
from fleetform.spec.tree.cache import ReadingCache
from fleetform.spec.tree.cache_file import open_cache, save_cache
from fleetform.spec.tree.parts import pieces_of
from fleetform.spec.tree.reader import Reader
from unit.spec.trees import ENVIRONMENT, spelled, write

FLEET = "type: fleet\nname: local\nlocal: {cpu: 4}\nnodes: 2\n"
VALUED = ENVIRONMENT + "values: {size: 3}\n"

# What a document of the file may be: right, wrong, none, of a value, and unlike what it looks.
DOCUMENTS = (
    "type: volume\nname: {name}\nfleet: local\npath: {name}\n",
    "type: volume\nname: {name}\nfleet: local\npath: {name}\ndescription: |+\n  kept\n\n\n",
    "type: volume\nname: {name}\nfleet: local\npath: {name}\nsise: 3GB\n",
    "type: task\nname: {name}\ncommands: [echo]\nfleets: [local]\n",
    "type: task\nname: {name}\ncommands:\n  - |\n    ---\n    echo && ls *\nfleets: [local]\n",
    "type: task\nname: {name}\ncommands: ['echo ${{{{ values.size }}}}']\nfleets: [local]\n",
    "type: task\nname: {name}\ncommands: [echo]\nfleets: [local]\nvolumes: ['{name}:/d']\n",
    "type: task\nname: {name}\ncommands: [&a echo, *a]\nfleets: [local]\n",
    "type: task\nname: {name}\ncommands: [echo]\nfleets: [local]\nbackends: [aws]\n",
    "type: task\nname: {name}\ncommands: [echo]\nenv: {{PASSWORD: 'AKIAIOSFODNN7EXAMPLE'}}\n",
    "projects:\n- name: {name}\n- name: {name}-b\n",
    "type: volume\nname: {name}\nfleet: 'local\n",
    "# nothing but words\n",
    "\n",
    "- a list\n",
    "type: volume\nname: {name}\nname: again\n",
    "type: volume\nname: {name}\nfleet: local\npath: ../{name}\n...\n",
    "%YAML 1.2\n",
    "type: volume\r\nname: {name}\r\nfleet: local\r\npath: {name}\r\n",
    "type: volume\nname: {name}\nfleet: local\npath: é\u2028\n",
)
BEGINNINGS = ("---\n", "--- # words\n", "\n\n---\n", "---\t\n", "----\n")


@pytest.fixture
def settled(monkeypatch):
    """Files of this test count as settled at once, as they would two seconds later."""
    monkeypatch.setattr("fleetform.spec.tree.cache.SETTLED_NS", -(10**18))


documents = st.tuples(
    st.sampled_from(BEGINNINGS[:2] + BEGINNINGS),
    st.sampled_from(DOCUMENTS[:7] + DOCUMENTS[:3] + DOCUMENTS),
    st.sampled_from(["one", "two", "six", "ten", "low", "far"]),
)


def text_of(parts) -> str:
    said = [f"{beginning}{document.format(name=name)}" for beginning, document, name in parts]
    return "".join(said).removeprefix("---\n")


@st.composite
def edits(draw: st.DrawFn) -> list[str]:
    """What a file says one moment after the other: a document changed, came, went or moved."""
    parts = draw(st.lists(documents, min_size=2, max_size=6, unique_by=lambda one: one[2]))
    texts = [text_of(parts)]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(parts) - 1))
        kind = draw(st.sampled_from(["change", "change", "insert", "remove", "swap", "end"]))
        if kind == "insert":
            parts.insert(at, draw(documents))
        elif kind == "remove" and len(parts) > 2:
            del parts[at]
        elif kind == "swap":
            parts[at], parts[0] = parts[0], parts[at]
        else:
            parts[at] = draw(documents)
        text = text_of(parts)
        texts.append(text[: draw(st.integers(1, len(text)))] if kind == "end" else text)
    return texts


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(edits(), st.booleans())
def test_edits_come_to_the_same_as_reading_anew(settled, texts, from_disk):
    """Whatever happens to documents of a file, findings and their places are those of all of it."""
    with tempfile.TemporaryDirectory() as name:
        root, folder = Path(name) / "tree", Path(name) / "cache"
        write(root, "environment.yaml", VALUED)
        write(root, "fleet.yaml", FLEET)
        cache = open_cache(folder, root)
        for text in texts:
            (root / "many.yaml").write_bytes(text.encode())
            if from_disk:
                cache = open_cache(folder, root)
            loaded = load_tree(root, cache=cache)
            save_cache(cache, folder, root)
            fresh = load_tree(root)
            assert loaded == fresh
            assert spelled(loaded) == spelled(fresh)
            assert documents_of(loaded) == documents_of(fresh)


def documents_of(loaded) -> list[str]:
    """What is declared, written out: it is made when somebody asks for it."""
    if loaded.desired is None:
        return []
    declared = [*loaded.desired.resources.values()]
    declared += [one.declared for one in loaded.desired.beyond.values()]
    return [json.dumps([one.key, one.document]) for one in declared]


def volume(number: int, *fields: str) -> str:
    lines = "".join(f"{one}\n" for one in fields)
    return f"type: volume\nname: v{number}\nfleet: local\npath: p{number}\n{lines}"


@pytest.fixture
def read_count(monkeypatch):
    """Which documents went through their models from now on."""
    read, counted = Reader.read, []

    def counting(self, written):
        counted.append(written)
        return read(self, written)

    monkeypatch.setattr(Reader, "read", counting)
    return counted


@pytest.mark.parametrize(
    ("field", "expected"),
    [("description: more", 1), ("description: 'two\n\n  lines'", 1), ("path: other", 1)],
)
def test_one_document_of_many_is_read_alone(tmp_path, settled, read_count, field, expected):
    """Of a hundred documents, the one whose text changed is read, wherever the others lie then."""
    texts = [volume(number) for number in range(100)]
    root = tmp_path / "tree"
    write(root, "environment.yaml", ENVIRONMENT)
    write(root, "fleet.yaml", FLEET)
    write(root, "many.yaml", "---\n".join(texts))
    load_tree(root, cache=(cache := ReadingCache()))
    name, _, _ = field.partition(":")
    kept = [line for line in texts[40].splitlines() if not line.startswith(f"{name}:")]
    texts[40] = "\n".join([*kept, field, ""])
    write(root, "many.yaml", "---\n".join(texts))
    read_count.clear()
    loaded = load_tree(root, cache=cache)
    assert len(read_count) == expected
    assert loaded == load_tree(root)


@pytest.mark.parametrize(
    "text",
    [
        "a: &x 1\n---\nb: *x\n",
        "%TAG ! tag:example.org,2026:\n---\na: 1\n---\nb: 2\n",
        "a: 1\n...\n---\nb: 2\n",
        "a: 1\r\n---\r\nb: 2\r\n",
        "\ufeff%YAML 1.2\n---\na: 1\n---\nb: 2\n",
        "a: 1\n",
        "a: 1\n---\n" + "b: 2\n" * 50_000,
    ],
)
def test_a_file_with_more_than_documents_has_no_parts(text):
    """Directives, aliases, other ends of lines and many values are the whole file's matter."""
    assert pieces_of(text.encode()) == []


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="{}[],:-?!|'\"#ab \n", min_size=1, max_size=60))
def test_a_text_makes_no_more_values_than_its_bytes_allow(text):
    """So a small file cannot reach the bound on values, in whatever parts it is read."""
    _, findings = read_documents(text.encode(), "x.yaml", limits=Limits(nodes_max=3 * len(text)))
    assert "too-many-values" not in [one.code for one in findings]


def test_parts_are_the_whole_file():
    """Nothing of a file lies outside of its parts, and each knows its first line."""
    text = "# words\n---\na: |\n  ---\n----\n---\tb\n---\n"
    pieces = pieces_of(text.encode())
    assert b"".join(piece.data for piece in pieces).decode() == text
    lines = text.splitlines(keepends=True)
    assert [piece.part.line for piece in pieces] == [1, 2, 6, 7]
    assert [piece.data.decode().splitlines(keepends=True)[0] for piece in pieces] == [
        lines[piece.part.line - 1] for piece in pieces
    ]
