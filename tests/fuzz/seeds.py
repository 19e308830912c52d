"""
What the fuzzer begins with: the examples, the planted mistakes, and what it found before.

Written anew for each campaign, so that a new field is in the seeds with its example.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

__all__ = ["of", "write"]

_DATA = Path(__file__).parents[1] / "data"
# The small ones of the hostile table, in one place each: what no example has.
_ODD = (
    b"\xef\xbb\xbfa: 1\r\nb: 2\r", b"a: &a {x: 1}\nb: {<<: *a, y: *a}\nc: [*a, *a]\n",
    b"--- |\n x\n...\n--- >-\n  y\n# z\n", b"? a\n: b\n? [c]\n: d\n", b"%TAG !e! tag:x,1:\n---\n!e!a b\n",
    b"!!int 1\n", b"!!float 1\n", b"!!str 1\n", b"- .inf\n- .nan\n- 0x1F\n- 0o17\n- 017\n- 1e3\n- ~\n",
    b"'a''b': \"\\x41\\u00e9\\n\"\n", "é: 名\x85b: \u2028".encode(), b"<<<<<<< HEAD\na\n", b"a:\n\tb\n",
    b"type: environment\nname: fuzzing\nuid: 0b2f6a0e-54c5\nrules: {delete_percent: 5}\n",
    b"type: task\nname: a1\ncommands: [x]\ndepends_on: [b1]\n\x1etype: task\nname: b1\ncommands: [x]\ndepends_on: [a1]\n",
)  # fmt: skip
_EXPRESSIONS = (
    b"${{ matrix.x }}", b"a${{run.name}}b${{ env.B }}", b"$${{ literal }}", b"${{ x", b"}} ${{ }}",
    b"${{ matrix.long }}" * 9, b"${{ secrets.token }}${{ dstack.x }}", b"$$${{ values.x }}",
)  # fmt: skip


def of(name: str) -> Iterator[bytes]:
    """Inputs for the target `name`."""
    if name == "quantities":
        for path in sorted((_DATA.parent / "conformance" / "data").glob("*.jsonl")):
            for line in path.read_text().splitlines():
                value = json.loads(line)["input"]
                yield (value if isinstance(value, str) else json.dumps(value)).encode()
    elif name == "interpolation":
        yield from _EXPRESSIONS
    else:
        for folder in ("kinds", "mistakes"):
            for path in sorted((_DATA / folder).rglob("*.yaml")):
                yield path.read_bytes()
        yield from _ODD
    for path in sorted((_DATA / "hostile").glob(f"{name}-*")):
        yield path.read_bytes()


def write(name: str, folder: Path) -> None:
    """Write the inputs for a target into a folder, under the names that the fuzzer gives."""
    for data in of(name):
        (folder / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)
