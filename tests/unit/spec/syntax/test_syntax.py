"""Reading YAML: what it means, where it stands, and that nothing at all makes the reader fail."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetform.spec.findings import Finding, Level
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, plain, spot
from fleetform.spec.syntax import Limits, read_documents, read_stream
from unit.spec.trees import load, write


def read(text: str) -> list[object]:
    nodes, findings = read_documents(text.encode(), "x.yaml")
    assert findings == []
    return [plain(node) for node in nodes]


def only_finding(text: str | bytes, **limits: int) -> Finding:
    data = text.encode() if isinstance(text, str) else text
    _, findings = read_documents(data, "x.yaml", limits=Limits(**limits))
    assert len(findings) == 1, findings
    return findings[0]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("OFF", "OFF"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("'~'", "~"),
        ('"1"', "1"),
        ("1", 1),
        ("-1", -1),
        ("+1", 1),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("0.10", 0.1),
        ("1e-1", 0.1),
        (".5", 0.5),
        ("5.", 5.0),
        ("-0.0", 0.0),
        ("12:30:00", "12:30:00"),
        ("2024-01-31", "2024-01-31"),
        ("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z"),
        ("2..", "2.."),
        ("8GB", "8GB"),
        (".", "."),
        ("-", [None]),
        ("nullable", "nullable"),
        ("!!str 1", "1"),
        ("! 1", "1"),
        ("!!float 1", 1.0),
        ('!!int "1"', 1),
        ("!!null ''", None),
        ("!!seq [a]", ["a"]),
        ("!!map {a: 1}", {"a": 1}),
        ("${{ matrix.lr }}", "${{ matrix.lr }}"),
        ("'it''s'", "it's"),
        ('"caf\\u00e9"', "café"),
        ("日本", "日本"),
    ],
)
def test_scalars_mean_what_the_core_schema_says(written: str, meant: object):
    """An unquoted scalar is text unless it is null, true, false or a number of YAML 1.2."""
    (document,) = read(f"a:\n  {written}")
    assert isinstance(document, dict)
    assert document["a"] == meant
    assert type(document["a"]) is type(meant)


def test_a_file_has_many_documents():
    """Documents are separated by `---`; empty ones declare nothing and are no mistake."""
    assert read("---\n# nothing\n---\na: 1\n---\n---\nb: 2\n...\n---\n") == [{"a": 1}, {"b": 2}]
    assert read("") == []
    assert read("# only a comment\n") == []


def test_a_byte_order_mark_is_passed_over():
    """A file of an editor that writes a mark reads as if there were none, columns included."""
    (node,), findings = read_documents(b"\xef\xbb\xbfa: 1", "x.yaml")
    assert plain(node) == {"a": 1}
    assert spot(node, ["a"]) == (1, 4, 1)
    assert findings == []


def test_anchors_and_merges_are_followed():
    """Aliases repeat, merge keys bring in what is missing, own fields and earlier merges win."""
    text = """\
base: &base {cpu: 2, memory: 8GB}
other: &other {memory: 16GB, disk: 1TB}
one:
  <<: *base
  cpu: 4
two:
  <<: [*base, *other]
list: [*base]
"""
    (document,) = read(text)
    assert isinstance(document, dict)
    assert document["one"] == {"cpu": 4, "memory": "8GB"}
    assert document["two"] == {"cpu": 2, "memory": "8GB", "disk": "1TB"}
    assert document["list"] == [{"cpu": 2, "memory": "8GB"}]


def test_a_quoted_merge_key_is_a_field():
    """Only the bare `<<` merges."""
    assert read("'<<': 1") == [{"<<": 1}]


def test_places_count_characters_from_one():
    """Lines and columns count from 1, columns in characters, also behind wide ones."""
    (node,), _ = read_documents('ключ: "значение"\nb:\n  - {c: дом}\n'.encode(), "x.yaml")
    assert spot(node, ["ключ"]) == (1, 7, 10)
    assert spot(node, ["ключ"], of="key") == (1, 1, 4)
    assert spot(node, ["b", 0, "c"]) == (3, 9, 3)


WRONG = [
    ("a: 1\nb: 2\na: 3\n", "duplicate-key", 3, 1, "on line 1"),
    ("a: {b: 1, b: 2}", "duplicate-key", 1, 11, "`b`"),
    ("a: &k x\n*k : 1\n*k : 2\n", "duplicate-key", 3, 1, "on line 2"),
    ("1: a\n'1': b\n", "duplicate-key", 2, 1, "on line 1"),
    ("a:\n\tb: 1\n", "tab-indentation", 2, 1, "spaces only"),
    ("a:\n  b: 1\n\tc: 2\n", "tab-indentation", 3, 1, "spaces only"),
    ("? \t{a: 1}", "tab-indentation", 1, 3, "spaces only"),
    ('a: "x\nb: 1\n', "yaml-syntax", 1, 4, "never closed"),
    ("a: [1, 2\nb: 3\n", "yaml-syntax", 1, 4, "`]` is missing"),
    ("a: {b: 1", "yaml-syntax", 1, 4, "`}` is missing"),
    ("a: [1,,2]", "yaml-syntax", 1, 7, "two commas"),
    ("a: [${{ matrix.x }}]", "yaml-syntax", 1, 4, "`${{ … }}`"),
    ("a: b: c\n", "yaml-syntax", 1, 5, "second colon"),
    ("a: 1\nfoo\nb: 2\n", "yaml-syntax", 2, 1, "neither"),
    ("a:\n    b: 1\n  c: 2\n", "yaml-syntax", 3, 3, "indentation"),
    ("- a\n- b: c\n d\n", "yaml-syntax", 3, 2, "items of a list"),
    ("a: @x", "yaml-syntax", 1, 4, "cannot begin with `@`"),
    ("a: `x`", "yaml-syntax", 1, 4, "a backtick"),
    ("a: *.py", "yaml-syntax", 1, 5, "a name has to follow"),
    ("a: - b", "yaml-syntax", 1, 4, "item of a list"),
    ("a: ? b", "yaml-syntax", 1, 4, "no key can begin"),
    ("cmd: 'it's'", "yaml-syntax", 1, 10, "something follows"),
    ('a: "\\d"', "yaml-syntax", 1, 5, "backslash"),
    ('a: "\\xZZ"', "yaml-syntax", 1, 7, "too few digits"),
    ("a: | text\n", "yaml-syntax", 1, 6, "next line"),
    ("{a: 1}\nb: 2\n", "yaml-syntax", 2, 1, "does not begin another"),
    ("%YAML 3.0\n---\na: 1\n", "yaml-syntax", 1, 1, "another version"),
    ("%FOO x\n---\na: 1\n", "yaml-syntax", 1, 5, "instruction"),
    ("a: !e!x y", "yaml-syntax", 1, 4, "tag"),
    ("a: *x", "unknown-anchor", 1, 4, "`&x`"),
    ("a: &a [*a]", "recursive-anchor", 1, 8, "no end"),
    ("a:\n  <<: 3\n", "bad-merge", 2, 3, "other mappings"),
    ("a: !!python/object/apply:os.system [x]", "unknown-tag", 1, 4, "never"),
    ("a: !mine x", "unknown-tag", 1, 4, "`!mine`"),
    ("a: !!binary x", "unknown-tag", 1, 4, "`!!binary`"),
    ("a: !!int x", "tag-mismatch", 1, 4, "`!!int`"),
    ("a: {{ x }}", "complex-key", 1, 5, "not a template"),
    ("? [a]\n: b\n", "complex-key", 1, 3, "A mapping or a list is used as the name of a field."),
    ("a: .inf", "number-out-of-range", 1, 4, "finite"),
    ("a: 1e999", "number-out-of-range", 1, 4, "too large"),
    ("a: 99999999999999999999", "number-out-of-range", 1, 4, "64 bits"),
    (f"a: {'9' * 10_000}", "number-out-of-range", 1, 4, "64 bits"),
    ("mode: 0644", "leading-zero", 1, 7, "420"),
    ("a: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> x\n", "merge-conflict", 2, 1, "git"),
    ("a: 1\nb: x\0y\n", "control-character", 2, 5, "NUL"),
    ("a: \x1b[31m", "control-character", 1, 4, "U+001B"),
    ("a: 1\n\ufeffb: 2", "control-character", 2, 1, "byte order mark"),
    (b"a: 1\nb: caf\xe9\n", "not-utf8", 2, 7, "0xE9"),
    (b"\xef\xbb\xbfab\xff", "not-utf8", 1, 3, "0xFF"),
    ("a: 1".encode("utf-16"), "not-utf8", 1, 1, "UTF-16"),
    ("a: 1".encode("utf-16-le"), "not-utf8", 1, 1, "UTF-16LE"),
    ("a: 1".encode("utf-16-be"), "not-utf8", 1, 1, "UTF-16BE"),
    ("a: 1".encode("utf-32-le"), "not-utf8", 1, 1, "UTF-32LE"),
    ("a: 1".encode("utf-32"), "not-utf8", 1, 1, "UTF-32"),
    ("a: " + "[" * 100 + "]" * 100, "too-deep", 1, 67, "64 deep"),
]


@pytest.mark.parametrize(("text", "code", "line", "column", "said"), WRONG)
def test_what_is_wrong_is_said_where_it_is(
    text: str | bytes, code: str, line: int, column: int, said: str
):
    """Each mistake is one finding at the right character, with what is wrong and what to do."""
    finding = only_finding(text)
    assert finding.code == code
    assert (finding.place.line, finding.place.column) == (line, column)
    assert said in finding.detail
    assert finding.advice.endswith((".", " x.yaml"))
    assert finding.level is (Level.WARNING if code == "leading-zero" else Level.ERROR)


@pytest.mark.parametrize(
    "text", ["a: *{}", "a: &{0} [*{0}]", "a: !{} b", "x{0}: 1\nx{0}: 2", "a: 00{}"]
)
def test_a_message_is_short(text: str):
    """However long what it is about is, a message can be read."""
    finding = only_finding(text.format("1" * 300))
    assert len(finding.detail) < 400
    assert len(finding.advice) < 400


def test_a_summary_is_constant_for_its_code():
    """Scripts may group by code: the summary does not depend on the document."""
    findings = [only_finding(text) for text, *_ in WRONG]
    assert len({(finding.code, finding.summary) for finding in findings}) == len(
        {finding.code for finding in findings}
    )


def test_a_finding_quotes_its_line():
    """A finding contains the line that it points into, whatever ends lines in the file."""
    assert only_finding("a: 1\r\nb: 2\r\na: 3\r\n").text == "a: 3"
    assert only_finding("a: 1\nb: \x07").text == "b: \x07"


def test_a_broken_document_leaves_the_others():
    """Documents before and behind a broken one are read, with their own lines."""
    text = 'a: 1\n---\nb: [\n---\nc: "\n--- x: y: z\n---\nd: 1\nd: 2\n---\ne: {\nf: 1\n---\ng: 1\n'
    documents, findings = read_stream(text.encode(), "x.yaml")
    assert [plain(document.root) for document in documents if document.is_sound] == [
        {"a": 1},
        {"g": 1},
    ]
    assert [(finding.place.line, finding.place.column) for finding in findings] == [
        (3, 4),
        (5, 4),
        (6, 6),
        (9, 1),
        (11, 4),
    ]
    assert spot(documents[-1].root, ["g"]) == (14, 4, 1)


def test_a_broken_document_still_tells_what_it_declares():
    """What was read before a document breaks off is there, and marked as not sound."""
    documents, _ = read_stream(b"type: task\nname: train\ncommands: [\n", "x.yaml")
    assert [document.is_sound for document in documents] == [False]
    assert plain(documents[0].root) == {"type": "task", "name": "train", "commands": []}


def test_a_warning_leaves_a_document_sound():
    """Only errors keep a document from being planned."""
    documents, findings = read_stream(b"a: 007", "x.yaml")
    assert [document.is_sound for document in documents] == [True]
    assert [finding.level for finding in findings] == [Level.WARNING]


def test_what_follows_a_complete_document_spoils_it():
    """Text behind a document that begins no other was meant as a part of it."""
    documents, _ = read_stream(b"{a: 1}\nb: 2\n---\nc: 3\n", "x.yaml")
    assert [document.is_sound for document in documents] == [False, True]


def test_nested_aliases_are_counted_and_not_written_out():
    """A kilobyte that means billions of values is refused at once."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    assert only_finding("\n".join(lines)).code == "too-many-values"


def test_a_chain_of_aliases_is_as_deep_as_what_it_means():
    """Depth counts through aliases, so that no later pass can exceed it."""
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 80)]
    assert only_finding("\n".join(lines)).code == "too-deep"


def test_bounds_are_exact():
    """A file at a bound is read, and one beyond it is a finding."""
    assert read_documents(b"[a, [b]]", "x", limits=Limits(nodes_max=4, depth_max=2))[1] == []
    assert only_finding("[a, [b]]", nodes_max=3).code == "too-many-values"
    assert only_finding("[a, [b]]", depth_max=1).code == "too-deep"
    assert read_documents(b"abc", "x", limits=Limits(bytes_max=3))[1] == []
    assert only_finding("abcd", bytes_max=3).code == "file-too-large"


def test_many_mistakes_are_cut_off():
    """After `findings_max` findings one more says that there are others."""
    _, findings = read_documents(b"a:\n" * 1000, "x.yaml", limits=Limits(findings_max=5))
    assert [finding.code for finding in findings] == ["duplicate-key"] * 5 + ["too-many-findings"]
    _, findings = read_documents(b"--- [\n" * 1000, "x.yaml", limits=Limits(findings_max=5))
    assert [finding.code for finding in findings] == ["yaml-syntax"] * 5 + ["too-many-findings"]


def test_many_tag_directives_are_refused():
    """libyaml compares each %TAG line with all before it, so a thousand are not read."""
    text = "".join(f"%TAG !a{n}! x\n" for n in range(1000)) + "--- a"
    assert only_finding(text).code == "too-many-directives"
    assert read("a: |\n" + "  %TAG\n" * 100) == [{"a": "%TAG\n" * 100}]


@pytest.mark.parametrize(
    "text",
    ["[" * 500_000, "{a: " * 200_000, "- " * 300_000, "--- [\n" * 100_000, "a: &a [*a]\n" * 50_000],
)
def test_hostile_files_are_refused_in_time(text: str):
    """What takes libyaml minutes is given up in the first moment."""
    begun = time.perf_counter()
    _, findings = read_documents(text.encode(), "x.yaml")
    assert findings
    assert time.perf_counter() - begun < 5  # It takes 0.05; the machine may be busy.


fragments = st.lists(
    st.sampled_from(
        [
            "a", "b: ", "- ", "\n", "\n  ", "---\n", "...\n", "[", "]", "{", "}", ",", ": ", "&a ",
            "*a", "<<: ", "!!int ", "!x ", '"', "'", "|\n", ">\n", "#", "\t", "%TAG ! x\n", "? ",
            "1e5", "0x", "~", "@", "`", "\\", "\r\n", "\x85", "\u2028", "é", "😀", "\0",
            "<<<<<<< x\n", "${{ ",
        ]
    ),
    max_size=25,
).map("".join)  # fmt: skip
LIMITS = Limits(bytes_max=500, depth_max=6, nodes_max=40, findings_max=4)


def nodes_of(node: Node) -> int:
    if isinstance(node, ScalarNode):
        return 1
    if isinstance(node, SequenceNode):
        return 1 + sum(map(nodes_of, node.items))
    return 1 + sum(1 + nodes_of(value) for _, value in node.entries)


def depth_of(node: Node) -> int:
    if isinstance(node, ScalarNode):
        return 0
    if isinstance(node, SequenceNode):
        return 1 + max(map(depth_of, node.items), default=0)
    return 1 + max((depth_of(value) for _, value in node.entries), default=0)


def check_promises(data: bytes) -> None:
    documents, findings = read_stream(data, "x.yaml", limits=LIMITS)
    assert len(findings) <= LIMITS.findings_max + 1
    # A merge shares what it brings in, so it may be counted once for the alias and once here.
    assert sum(nodes_of(document.root) for document in documents) <= 2 * LIMITS.nodes_max
    assert all(depth_of(document.root) <= LIMITS.depth_max for document in documents)
    assert all(document.is_sound for document in documents) or findings
    lines = data.decode("utf-8", "replace").count
    breaks = sum(lines(mark) for mark in "\n\r\x85\u2028\u2029")
    for finding in findings:
        assert 0 <= finding.place.line <= breaks + 1
        assert finding.place.column >= min(finding.place.line, 1)
        assert finding.detail
        assert finding.detail.isprintable()


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail(data: bytes):
    """Any bytes are documents or findings, within the limits."""
    check_promises(data)


@settings(max_examples=400)
@given(fragments)
def test_no_yaml_makes_it_fail(text: str):
    """Pieces of YAML in any order are documents or findings, within the limits."""
    check_promises(text.encode())


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(plain_values)
def test_json_is_read_as_json_means_it(value: object):
    """A document that is JSON means what JSON says, whatever its text contains."""
    import json

    text = json.dumps(value)
    if "\\ud" in text:  # YAML has no halves of characters.
        return
    nodes, findings = read_documents(text.encode(), "x.yaml")
    assert findings == []
    assert [plain(node) for node in nodes] == [value]


def test_a_mapping_finds_its_fields():
    """A mapping's value is got by the name that is written."""
    (node,), _ = read_documents(b"a: 1\n2: b\n", "x.yaml")
    assert isinstance(node, MappingNode)
    two = node.get("2")
    assert isinstance(two, ScalarNode)
    assert two.value == "b"
    assert node.get("c") is None


# -- encodings: the advised command makes a file UTF-8

FLEET_TEXT = "type: fleet\nname: lab\nlocal: true\ndescription: café\n"


@pytest.mark.parametrize(
    "encoding",
    ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "windows-1252"],
)
def test_the_advised_command_makes_the_file_utf8(tmp_path: Path, need, encoding: str):
    """It is run as it is printed; the file then says what was written."""
    need("iconv", shutil.which("iconv") is not None, "iconv is not installed")
    name = "my fleet.yaml"
    write(tmp_path, "environment.yaml", "type: environment\nname: testing\nuid: 0b2f6a0e-54c5\n")
    (tmp_path / name).write_bytes(FLEET_TEXT.encode(encoding))
    (found,) = load(tmp_path).errors
    assert found.code == "not-utf8"
    command = found.advice[found.advice.index("iconv ") :]
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    assert (tmp_path / name).read_bytes().decode("utf-8").removeprefix("\ufeff") == FLEET_TEXT
    assert load(tmp_path).errors == ()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["environment.yaml", name]


@pytest.mark.parametrize("data", ["café\n".encode() + b"\xff\n", b"\x81\xff\n"])
def test_no_conversion_is_advised_that_would_do_harm(tmp_path: Path, data: bytes):
    """What is UTF-8 but for one character, or nothing that is known, is to be corrected by hand."""
    write(tmp_path, "environment.yaml", "type: environment\nname: testing\nuid: 0b2f6a0e-54c5\n")
    (tmp_path / "x.yaml").write_bytes(b"# " + data)
    (found,) = load(tmp_path).errors
    assert found.code == "not-utf8"
    assert "iconv" not in found.advice
