"""Promises about any file and any folder, drawn by Hypothesis."""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fleetform.spec.findings import Level
from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents
from fleetform.spec.syntax.read import split_lines
from fleetform.spec.tree import load_tree
from unit.spec.trees import ENVIRONMENT


def load_targets() -> Any:
    """What the fuzzer tries too; a program's module beside the fuzzer, and no package."""
    path = Path(__file__).parents[1] / "fuzz" / "targets.py"
    spec = importlib.util.spec_from_file_location("fuzz_targets", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TARGETS = load_targets().TARGETS

# A grammar of YAML: texts that are mostly right, in all the ways in which people write them.

PLAIN = st.sampled_from(
    ["a", "b c", "é名", "1", "-7", "0x1F", "0o17", "017", "1.50", "1e3", ".5", "-0.0", "true", "False",
     "null", "~", "yes", "off", "12:30:00", "1_000", "2001-01-01", "a:b", "a#b", "-a", "?a", "x: ",
     "${{", "..", ".", "+", "-", "0b1", "1e", "1.", "+1", "0x", "NaN", ".NaN", "1e400", str(2**63)]
)  # fmt: skip
QUOTED = st.one_of(
    st.text("ab'\"\\ \n:#é", max_size=6).map(lambda text: "'" + text.replace("'", "''") + "'"),
    st.sampled_from(
        ['"a"', '"\\u00e9\\n"', '"a\\\n  b"', '""', '"1"', '"true"', '"\\x41\\t"', '"a\n\n  b"']
    ),
)
TAGGED = st.tuples(
    st.sampled_from(["!!str ", "!!int ", "!!float ", "!!bool ", "!!null ", "!x "]), PLAIN
).map("".join)
KEYS = st.sampled_from(["a", "b", "c", "'d'", '"e"', "1", "true", "~", "<<", "é", "? f"])
SCALARS = PLAIN | QUOTED | TAGGED


def flow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    lists = st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
    pairs = st.lists(st.tuples(KEYS, inner), max_size=3)
    return lists | pairs.map(
        lambda items: f"{{{', '.join(f'{key}: {item}' for key, item in items)}}}"
    )


FLOW = st.recursive(SCALARS | st.sampled_from(["*x", "&x a", "*y", "&y [a]"]), flow, max_leaves=6)
BLOCK = st.sampled_from(["|", ">", "|-", ">+", "|2", "|1-"]).flatmap(
    lambda mark: st.lists(st.sampled_from(["a", " b", "", "# c", "é: x"]), max_size=4).map(
        lambda lines: mark + "".join(f"\n  {line}" for line in lines)
    )
)
COMMENT = st.sampled_from(["", "", "", " # x", "\n# y"])


def indent(text: str) -> str:
    return text.replace("\n", "\n  ")


def block(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    anchor = st.sampled_from(["", "", "", " &x", " &y"])
    pairs = st.lists(st.tuples(KEYS, anchor, inner, COMMENT), min_size=1, max_size=3)
    items = st.lists(st.tuples(inner, COMMENT), min_size=1, max_size=3)

    def mapping(entries: list[tuple[str, str, str, str]]) -> str:
        return "".join(
            f"\n{key}:{mark}{'' if item.startswith(chr(10)) else ' '}{indent(item)}{comment}"
            for key, mark, item, comment in entries
        )

    return pairs.map(mapping) | items.map(
        lambda entries: "".join(
            f"\n- {indent(item).lstrip()}{comment}" for item, comment in entries
        )
    )


DOCUMENTS = st.recursive(FLOW | BLOCK, block, max_leaves=8).map(
    lambda text: text.lstrip("\n") + "\n"
)
FILES = st.tuples(
    st.sampled_from(["", "---\n", "--- ", "# x\n", "%YAML 1.1\n---\n", "\ufeff"]),
    st.lists(DOCUMENTS, min_size=1, max_size=3),
    st.sampled_from(["---\n", "...\n---\n", "--- # x\n"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
).map(lambda parts: (parts[0] + parts[2].join(parts[1])).replace("\n", parts[3]))

# What another reader makes of it: PyYAML's scanner in Python, which shares no line with libyaml,
# and the regular expressions of the core schema as they stand in the standard.


class Core(yaml.SafeLoader):
    """YAML 1.2, section 10.3.2."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for tag, pattern in (
    ("null", r"null|Null|NULL|~|"),
    ("bool", r"true|True|TRUE|false|False|FALSE"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    ),
    ("merge", "<<"),
):
    Core.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})\\Z"), None)


class Different(Exception):
    """Something that is read otherwise on purpose; the reason is its text."""


def meaning(node: yaml.Node) -> Any:
    """
    What PyYAML's nodes say, with the deliberate differences named.

    One more cannot be seen in its nodes: `! 1` is text, as the standard has it.
    """
    if isinstance(node, yaml.ScalarNode):
        return scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [meaning(item) for item in node.value]
    return {key.value: value for key, value in fields(node)}


def fields(node: yaml.MappingNode) -> Iterator[tuple[yaml.ScalarNode, Any]]:
    if any(not isinstance(key, yaml.ScalarNode) for key, _ in node.value):
        raise Different("names of fields are text")
    if len({key.value for key, _ in node.value}) < len(node.value):
        raise Different("a field stands once")
    for key, _ in node.value:
        scalar(key)  # A name is text, and its tag has to fit all the same.
    own = {key.value for key, _ in node.value if not is_merge(key)}
    for key, value in node.value:
        if not is_merge(key):
            yield key, meaning(value)
    for key, value in node.value:
        if is_merge(key):
            for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(source, yaml.MappingNode):
                    raise Different("only mappings are merged")
                for inner, said in fields(source):
                    if inner.value not in own:
                        own.add(inner.value)
                        yield inner, said


def is_merge(key: yaml.Node) -> bool:
    return key.tag == "tag:yaml.org,2002:merge"


def scalar(node: yaml.ScalarNode) -> Any:
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    text = node.value
    if kind in {"str", "!", "merge"}:
        return text
    if kind == "null" and text in {"", "~", "null", "Null", "NULL"}:
        return None
    if kind == "bool" and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    try:
        if kind == "int":
            value = int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
            if abs(value) >= 2**63:
                raise Different("what is stored has 64 bits")
            return value
        if kind == "float" and "n" not in text.lower():
            number = float(text)
            if number in {float("inf"), float("-inf")}:
                raise Different("numbers have an end")
            if abs(number) >= 2**63 and text.lstrip("+-").isdigit():
                raise Different("what is stored has 64 bits, also where a tag makes it real")
            return number
    except ValueError:
        pass
    raise Different("a tag is known and fits, or is refused")


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FILES)
@example("a: &x {b: 1}\nc: {<<: *x, b: 2}\n")
@example("? a? [")
def test_what_is_accepted_means_what_others_read(text: str):
    """Where both accept a file they read the same; where only we refuse it there is a reason."""
    nodes, findings = read_documents(text.encode(), "x.yaml")
    try:
        roots = [root for root in yaml.compose_all(text, Core) if not is_empty(root)]
        theirs = [meaning(root) for root in roots]
    except (yaml.YAMLError, Different, RecursionError, ValueError):
        return
    if any(finding.level is Level.ERROR for finding in findings):
        # Grammar alone: libyaml and PyYAML's own scanner disagree on some of what is nearly right.
        assert {finding.code for finding in findings} <= {
            "yaml-syntax",
            "leading-zero",
            "tab-indentation",
        }
        return
    assert [plain(node) for node in nodes] == theirs


def is_empty(root: yaml.Node | None) -> bool:
    return root is None or (isinstance(root, yaml.ScalarNode) and not root.value and not root.style)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(FILES | st.binary(max_size=300).map(lambda data: data.decode("utf-8", "replace")))
def test_any_text_keeps_what_the_fuzzer_asks_for(text: str):
    """No exception; places that exist; the text that stands there; the same answer each time."""
    TARGETS["documents"](text.encode())


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(
        FILES | st.sampled_from(["type: task\nname: aa\ncommands: [x]\n", ENVIRONMENT]), max_size=4
    )
)
def test_any_files_keep_what_the_fuzzer_asks_for(texts: list[str]):
    """Findings sorted and the same each time, whatever order files are found in."""
    TARGETS["tree"](b"\x1e".join(text.encode() for text in texts))


PIECES = st.sampled_from(
    [
        "${{ ",
        "}}",
        "$",
        "matrix.x",
        "run.name",
        "env.B",
        "a",
        " ",
        "{",
        "}",
        "$${{",
        "values.x",
        "x",
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_any_expression_keeps_what_the_fuzzer_asks_for(text: str):
    """What has no problem is filled in, to the length that was foretold."""
    TARGETS["interpolation"](text.encode())


@settings(max_examples=300)
@given(st.text("0123456789.-+: ,[]*kmgtiGBAHx≥…%$/eE\t", max_size=12))
def test_any_amount_keeps_what_the_fuzzer_asks_for(text: str):
    """An amount is a value or a sentence of why not."""
    TARGETS["quantities"](text.encode())


NAMES = st.sampled_from(
    ["a.yaml", "b.yml", "sub/c.yaml", "sub/deep/d.yaml", ".dstack.yml", ".hidden/e.yaml", "f.txt", "sub",
     "environment.yaml", "sub/environment.yaml", "A.yaml", "g\n.yaml"]
)  # fmt: skip
CONTENTS = st.one_of(
    FILES.map(str.encode), st.binary(max_size=50),
    st.sampled_from([b"type: task\nname: aa\ncommands: [x]\nfiles: [.]\n", b"link:a.yaml", b"link:..", b"folder:"]),
)  # fmt: skip


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(NAMES, CONTENTS, max_size=6))
def test_any_folder_is_findings(files: dict[str, bytes]):
    """Files, links and folders of any content: findings within the files, sorted, and twice the same."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "tree")
        root.mkdir()
        (root / "environment.yaml").write_text(ENVIRONMENT)
        for name, data in files.items():
            make(root / name, data)
        loaded = load_tree(root)
        assert load_tree(root).findings == loaded.findings
        assert list(loaded.findings) == sorted(loaded.findings, key=lambda one: one.sort_key)
        assert loaded.desired is not None or loaded.errors
        for finding in loaded.findings:
            path = root / finding.place.file
            if finding.place.line and path.is_file():
                lines = split_lines(path.read_bytes().decode("utf-8-sig", "replace"))
                assert finding.place.line <= len(lines)


def make(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if data.startswith(b"link:"):
            path.symlink_to(data.decode().removeprefix("link:"))
        elif data == b"folder:":
            path.mkdir()
        else:
            path.write_bytes(data)
    except OSError:  # Two of the names stand in each other's way.
        return


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: 1\r\nb: [\r\n", 2, 4), ("a: 1\rb: [\r", 2, 4), ("a: 1\x85b: [\x85", 2, 4),
        ("a: 1\u2028b: [\u2028", 2, 4), ("\ufeffa: [", 1, 4), ("é: [", 1, 4), ("\U0001f600: [", 1, 4),
        ("# x\r\n\r\n\ra: [", 4, 4), ("a: 1\n\x85\u2029\r\nb: {", 5, 4),
    ],
)  # fmt: skip
def test_columns_are_right_whatever_ends_lines(text: str, line: int, column: int):
    """Lines and columns count characters, and every mark that ends a line of YAML ends one."""
    _, findings = read_documents(text.encode(), "x.yaml")
    assert [(finding.place.line, finding.place.column) for finding in findings] == [(line, column)]
