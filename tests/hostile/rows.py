"""
Files that somebody wrote to harm whoever reads them, each with the findings that it must give.

A row is a name, the codes that have to be among the findings (none: the file is odd, and right),
and a function, because some have a hundred megabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

TASK = "type: task\nname: train\ncommands: [python train.py]\n"
LARGE = 100_000_000


class Row(NamedTuple):
    name: str
    codes: frozenset[str]
    make: Callable[[], str | bytes]

    def data(self) -> bytes:
        made = self.make()
        return made.encode() if isinstance(made, str) else made


def row(name: str, codes: str, make: Callable[[], str | bytes] | str | bytes) -> Row:
    content = make
    return Row(name, frozenset(codes.split()), content if callable(content) else lambda: content)


def laughs(last: int = 30) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, last)]
    return "\n".join(lines)


def merged_laughs() -> str:
    lines = ["a0: &a0 {" + ", ".join(f"k{n}: 1" for n in range(500)) + "}"]
    lines += [f"a{n}: &a{n} {{<<: *a{n - 1}, b: *a{n - 1}, c: *a{n - 1}}}" for n in range(1, 40)]
    return "\n".join(lines)


def quadratic_merges() -> str:
    fields = ", ".join(f"k{n}: 1" for n in range(3000))
    return f"a: &a {{{fields}}}\nb:\n" + "- <<: *a\n" * 3000


def runs(count: int, rest: str) -> str:
    return "---\n".join(
        f"type: task\nname: t{n}\ncommands: [a]\n{rest.replace('NUMBER', str(n))}\n"
        for n in range(count)
    )


ENCODINGS = (
    row("a byte that no character has", "not-utf8", b"type: task\nname: \xff\xfe\n"),
    row("half a character at the end", "not-utf8", b"type: task\nname: \xc3"),
    row("an overlong slash", "not-utf8", b"type: task\nname: \xc0\xaf\n"),
    row("half of a pair", "not-utf8", b"type: task\nname: \xed\xa0\x80\n"),
    row("beyond the last character", "not-utf8", b"type: task\nname: \xf5\x80\x80\x80\n"),
    row("UTF-16 with a mark", "not-utf8", lambda: TASK.encode("utf-16")),
    row("UTF-16, big end first", "not-utf8", lambda: b"\xfe\xff" + TASK.encode("utf-16-be")),
    row("UTF-16 without a mark", "not-utf8", lambda: TASK.encode("utf-16-le")),
    row("UTF-16 of the far east", "not-a-document", lambda: "名前".encode("utf-16-le") * 9),
    row("UTF-32 with a mark", "not-utf8", lambda: TASK.encode("utf-32")),
    row("UTF-32, big end first", "not-utf8", lambda: b"\0\0\xfe\xff" + TASK.encode("utf-32-be")),
    row("UTF-32 without a mark", "not-utf8", lambda: TASK.encode("utf-32-le")),
    row("NUL bytes", "control-character", f"{TASK}description: a\0b\n"),
    row("nothing but NUL bytes", "control-character", b"\0" * 1_000_000),
    row("an escape sequence", "control-character", f"{TASK}description: \x1b[2J\n"),
    row("a mark in the middle", "control-character", f"{TASK}# \ufeff\n"),
    row("two marks", "control-character", f"\ufeff\ufeff{TASK}"),
    row("a mark behind a document", "control-character", f"{TASK}---\n\ufeff{TASK}"),
    row("a mark at the beginning", "", f"\ufeff{TASK}"),
    row("nothing", "", b""),
    row("only a mark", "", b"\xef\xbb\xbf"),
)

SYNTAX = (
    row("tabs as indentation", "tab-indentation", "type: task\nname: train\nenv:\n\tA: b\n"),
    row("a tab below a list", "tab-indentation", "commands:\n\t- a\n"),
    row("an object of Python", "unknown-tag", "a: !!python/object/apply:os.system [echo]\n"),
    row("a name of Python", "unknown-tag", "a: !!python/name:os.system\n"),
    row("a module of Python", "unknown-tag", "!!python/module:antigravity {}\n"),
    row("a tag of somebody's", "unknown-tag", "a: !secret b\n"),
    row("a tag by its address", "unknown-tag", "a: !<tag:example.com,2024:x> b\n"),
    row("a handle that is not declared", "yaml-syntax", "a: !h!x b\n"),
    row("sets, orders and binaries", "unknown-tag", "a: !!set {x}\nb: !!omap []\nc: !!binary aa\n"),
    row("%YAML 1.1", "", f"%YAML 1.1\n---\n{TASK}"),
    row("%YAML 1.3", "yaml-syntax", f"%YAML 1.3\n---\n{TASK}"),
    row("%YAML 2.0", "yaml-syntax", f"%YAML 2.0\n---\n{TASK}"),
    row("%YAML 1.1 twice", "yaml-syntax", f"%YAML 1.1\n%YAML 1.1\n---\n{TASK}"),
    row("%TAG", "unknown-tag", "%TAG !h! tag:example.com,2024:\n---\na: !h!x b\n"),
    row("%TAG for the standard handle", "unknown-tag", "%TAG !! tag:example.com:\n---\na: !!int 1\n"),
    row("a thousand of %TAG", "too-many-directives",
        lambda: "".join(f"%TAG !a{n}! x\n" for n in range(1000)) + "--- a"),
    row("another directive", "yaml-syntax", f"%MAGIC on\n---\n{TASK}"),
    row("nothing but ends", "yaml-syntax", "...\n...\n---\n...\n"),
    row("beginnings and ends", "", f"---\n---\n{TASK}...\n---\n...\n"),
    row("text behind an end", "yaml-syntax", f"{TASK}... x\n"),
    row("a beginning inside of a quote", "yaml-syntax", 'a: "\n--- b"\n'),
    row("carriage returns", "", TASK.replace("\n", "\r")),
    row("both", "", TASK.replace("\n", "\r\n")),
    row("next lines", "", TASK.replace("\n", "\x85")),
    row("line and paragraph separators", "", TASK.replace("\n", "\u2028", 1).replace("\n", "\u2029", 1)),
    row("a merge that git has left", "merge-conflict", f"<<<<<<< HEAD\n{TASK}=======\n>>>>>>> x\n"),
    row("a million letters on a line", "missing-type", lambda: "a: " + "b" * 1_000_000),
    row("a million words on a line", "yaml-syntax", lambda: "a: b: " * 200_000),
    row("a million quotes", "yaml-syntax", lambda: "a: " + "'\"" * 500_000),
    row("a key of a million letters", "unknown-field", lambda: f"{TASK}? {'x' * 1_000_000}\n: a\n"),
    row("colons and quotes", "yaml-syntax", lambda: "{" + 'a: "" ' * 20_000 + ": x"),
)  # fmt: skip

NUMBERS = (
    row("a huge exponent", "number-out-of-range", "a: 1e999999999\n"),
    row("a tiny exponent", "wrong-type", f"{TASK}description: 1e-999999999\n"),
    row("a hundred thousand digits", "number-out-of-range", lambda: f"a: {'9' * 100_000}\n"),
    row("as many behind a dot", "number-out-of-range", lambda: f"a: 0.{'1' * 100_000}\n"),
    row("as many in sixteens", "number-out-of-range", lambda: f"a: 0x{'f' * 100_000}\n"),
    row("a tagged one", "number-out-of-range", lambda: f"a: !!int {'9' * 100_000}\n"),
    row("one in quotes where a number belongs", "bad-value",
        lambda: f"{TASK}priority: '{'9' * 100_000}'\n"),
    row("one as a size", "bad-value", lambda: f"{TASK}resources: {{memory: '{'9' * 100_000}GB'}}\n"),
    row("one as a duration", "bad-value", lambda: f"{TASK}max_duration: '{'9' * 100_000}s'\n"),
    row("one as an array", "bad-array", lambda: f"{TASK}array: '{'9' * 100_000}'\n"),
    row("not a number", "number-out-of-range", "a: .nan\n"),
    row("endless", "number-out-of-range", "a: -.inf\n"),
    row("one more than 64 bits", "number-out-of-range", f"a: {2**63}\n"),
    row("a zero in front", "leading-zero", f"{TASK}priority: 010\n"),
    row("sexagesimal, underscores, a date", "missing-type", "a: [1:30:00, 1_000, 2001-01-01, 0b1]\n"),
)  # fmt: skip

REPEATS = (
    row("billion laughs", "too-many-values", laughs),
    row("billion laughs by merging", "too-many-values", merged_laughs),
    row("a million repeats of a thousand", "too-many-values",
        lambda: f"a: &a [{'1, ' * 1000}]\nb: [{'*a, ' * 1000}]\n"),
    row("merges of merges", "too-many-values", quadratic_merges),
    row("a list in itself", "recursive-anchor", "a: &a [*a]\n"),
    row("a mapping in itself", "recursive-anchor", "a: &a {b: *a}\n"),
    row("a mapping merged into itself", "recursive-anchor", "a: &a {<<: *a}\n"),
    row("a document in itself", "recursive-anchor", "&a [[*a]]\n"),
    row("an anchor of another document", "unknown-anchor", "--- &a x\n--- *a\n"),
    row("a merge of nothing", "bad-merge", "a: {<<: 1}\nb: {<<: [[], {}]}\n"),
    row("two merges", "duplicate-key", "a: &a {x: 1}\nb: {<<: *a, <<: *a}\n"),
    row("a field twice", "duplicate-key", f"{TASK}name: other\n"),
    row("a field twice, deep down", "duplicate-key", f"{TASK}resources: {{gpu: {{count: 1, count: 2}}}}\n"),
    row("a field twice, quoted and tagged", "duplicate-key", f"{TASK}'name': other\n!!str name: x\n"),
    row("a field twice in what is merged", "duplicate-key", "a: &a {x: 1, x: 2}\nb: {<<: *a}\n"),
    row("a field a million times", "too-many-findings", lambda: "a:\n" * 1_000_000),
)  # fmt: skip

SIZES = (
    row("a text of 100 MB", "file-too-large", lambda: b"a: " + b"x" * LARGE),
    row("a block of 100 MB", "file-too-large", lambda: b"a: |\n" + b"  x\n" * (LARGE // 4)),
    row("a quote of 100 MB", "file-too-large", lambda: b'a: "' + b"x" * LARGE + b'"'),
    row("documents of 100 MB", "file-too-large", lambda: f"{TASK}---\n".encode() * (LARGE // 56)),
    row("a text of 8 MB", "missing-type", lambda: "a: " + "x" * 8_000_000),
    row("a block of 8 MB", "missing-type", lambda: "a: |\n" + " x\n" * 2_600_000),
    row("empty lines", "", lambda: "\n" * 8_000_000),
    row("comments", "", lambda: "# x\n" * 2_000_000),
    row("empty documents", "too-many-values", lambda: "---\n" * 2_000_000),
    row("documents that are none", "too-many-findings", lambda: "--- 1\n" * 1_300_000),
    row("documents that break off", "too-many-findings", lambda: "--- [\n" * 1_300_000),
    row("one document many times", "duplicate-name", lambda: f"---\n{TASK}" * 120_000),
    row("ten thousand lists in each other", "too-deep", lambda: "[" * 10_000),
    row("ten thousand closed ones", "too-deep", lambda: "[" * 10_000 + "]" * 10_000),
    row("ten thousand mappings", "too-deep", lambda: "{a: " * 10_000),
    row("ten thousand dashes", "too-deep", lambda: "- " * 10_000),
    row("ten thousand question marks", "too-deep", lambda: "? " * 10_000),
    row("two thousand indented", "too-deep",
        lambda: "".join(" " * n + "a:\n" for n in range(2000))),
    row("two thousand indented lists", "too-deep",
        lambda: "".join("  " * n + "-\n" for n in range(2000))),
    row("a million fields", "file-too-large",
        lambda: TASK + "".join(f"k{n}: 1\n" for n in range(1_000_000))),
    row("700 000 short fields", "too-many-values",
        lambda: "".join(f"k{n}:\n" for n in range(700_000))),
    row("190 000 fields", "unknown-field", lambda: TASK + "".join(f"k{n}: 1\n" for n in range(190_000))),
    row("190 000 variables", "", lambda: TASK + "env:\n" + "".join(f"  k{n}: 1\n" for n in range(190_000))),
    row("a name of a million letters", "bad-name",
        lambda: f"type: task\nname: {'x' * 1_000_000}\ncommands: [a]\n"),
    row("a type of a million letters", "unknown-type", lambda: f"type: {'x' * 1_000_000}\nname: ab\n"),
)  # fmt: skip

MEANINGS = (
    row("commands that are none", "wrong-type",
        lambda: f"type: task\nname: train\ncommands: [{'{}, ' * 390_000}]\n"),
    row("dependencies that are none", "missing-field", lambda: f"{TASK}depends_on: [{'{}, ' * 190_000}]\n"),
    row("a variable of itself", "unknown-expression",
        "type: task\nname: train\nenv: {A: '${{ env.A }}', B: '${{ env.A }}'}\ncommands: [a]\n"),
    row("expressions never closed", "unknown-expression",
        lambda: f"type: task\nname: train\ncommands: ['{'${{' * 100_000}']\n"),
    row("expressions of nothing", "unknown-expression",
        lambda: f"type: task\nname: train\ncommands: ['{'${{ matrix.x }}' * 100_000}']\n"),
    row("expressions like many", "unknown-expression",
        lambda: "type: task\nname: train\nenv:\n" + "".join(f"  k{n}: '1'\n" for n in range(5000))
        + f"commands: ['{'${{ env.x }}' * 10_000}']\n"),
    row("an interpolation bomb", "too-much-text",
        lambda: f"type: task\nname: train\nenv: {{A: {'x' * 1_000_000}}}\n"
        f"commands: ['{'${{ env.A }}' * 200_000}']\n"),
    row("a bomb of two stages", "too-much-text",
        lambda: f"type: task\nname: train\nmatrix: {{x: [{'y' * 900}]}}\n"
        f"env: {{A: '{'${{ matrix.x }}' * 100_000}'}}\ncommands: ['{'${{ env.A }}' * 100_000}']\n"),
    row("a bomb of elements", "too-much-text",
        lambda: f"{TASK}description: '{'a' * 1_000_000}${{{{ run.name }}}}'\narray: 1-100000\n"),
    row("elements that share a megabyte", "too-much-text",
        lambda: f"{TASK}description: '{'a' * 1_000_000}'\narray: 1-100000\n"),
    row("elements of many documents", "too-many-elements", lambda: runs(200, "array: 1-100000")),
    row("spans of an array", "too-many-elements", lambda: f"{TASK}array: '{'1-99999,' * 100_000}1'\n"),
    row("indices of an array", "too-many-elements", lambda: f"{TASK}array: '{'1,' * 1_000_000}1'\n"),
    row("a product of ten thousand digits", "too-many-elements",
        lambda: f"{TASK}matrix: {{{', '.join(f'k{n}: [1,2,3,4,5,6,7,8,9]' for n in range(10_000))}}}\n"),
    row("parameters of one value", "too-many-elements",
        lambda: f"{TASK}matrix: {{{', '.join(f'k{n}: [1]' for n in range(20_000))}, a: [1, 2]}}\n"),
    row("a list of 300 000 values", "too-many-elements",
        lambda: f"{TASK}matrix: {{a: [{','.join(map(str, range(300_000)))}]}}\n"),
    row("a value of a million letters", "bad-value", lambda: f"{TASK}matrix: {{a: [{'x' * 1_000_000}]}}\n"),
    row("names of 100 MB together", "too-many-elements",
        lambda: f"{TASK}matrix: {{a: [{'x' * 1000}], b: [{','.join(map(str, range(90_000)))}]}}\n"),
    row("unknown runs", "unknown-reference",
        lambda: f"{TASK}depends_on: [{', '.join(f'd{n}' for n in range(100_000))}]\n"),
    row("unknown fleets beside many", "unknown-reference",
        lambda: f"{TASK}fleets: [{', '.join(f'd{n}' for n in range(20_000))}]\n---\n"
        + "---\n".join(f"type: fleet\nname: e{n}\nlocal: true\nnodes: 1\n" for n in range(2000))),
    row("a cycle of ten thousand", "dependency-cycle",
        lambda: "---\n".join(f"type: task\nname: t{n}\ncommands: [a]\ndepends_on: [t{(n + 1) % 10_000}]\n"
                             for n in range(10_000))),
    row("everybody waits for everybody", "dependency-cycle",
        lambda: runs(300, f"depends_on: [{', '.join(f't{n}' for n in range(300))}]")),
    row("names that differ by case", "bad-name",
        "type: task\nname: train\ncommands: [a]\n---\ntype: task\nname: Train\ncommands: [a]\n"),
    row("spaces in a range", "bad-value", lambda: f"{TASK}resources: {{memory: '1{' ' * 100_000}x'}}\n"),
    row("ranges in a range", "bad-value", lambda: f"{TASK}resources: {{memory: '{'1to' * 100_000}'}}\n"),
    row("words of a GPU", "bad-value", lambda: f"{TASK}resources: {{gpu: '{'A ' * 100_000}!'}}\n"),
    row("numbers of a GPU", "bad-value", lambda: f"{TASK}resources: {{gpu: '{'1.' * 100_000}!'}}\n"),
    row("dots of a CPU", "bad-value", lambda: f"{TASK}resources: {{cpu: '{'.' * 100_000}!'}}\n"),
    row("parts of a duration", "bad-value", lambda: f"{TASK}max_duration: '{'1s ' * 100_000}x'\n"),
)  # fmt: skip

FILES = (*ENCODINGS, *SYNTAX, *NUMBERS, *REPEATS, *SIZES, *MEANINGS)

TELLING = (
    "NUL bytes", "UTF-16 without a mark", "an object of Python", "a thousand of %TAG",
    "a hundred thousand digits", "billion laughs", "billion laughs by merging", "a document in itself",
    "a text of 100 MB", "documents of 100 MB", "a block of 8 MB", "documents that are none",
    "documents that break off", "one document many times", "ten thousand lists in each other",
    "two thousand indented", "700 000 short fields", "190 000 fields", "190 000 variables",
    "a name of a million letters", "commands that are none", "dependencies that are none",
    "expressions like many", "an interpolation bomb", "a bomb of two stages",
    "elements that share a megabyte", "elements of many documents", "spans of an array",
    "a product of ten thousand digits", "unknown fleets beside many", "a cycle of ten thousand",
)  # fmt: skip
"""The most dangerous ones: `validate` reads them in a process of its own, with limits."""
