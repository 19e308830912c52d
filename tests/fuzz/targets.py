"""
What is fuzzed: a function from bytes to nothing, that fails where a promise is broken.

They know nothing of the fuzzer, so that each input that was ever kept is tried by pytest too, on
any machine. What is promised: no exception, bounded results, places that exist, the same answer
each time, and what was read means what is written.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fleetform.spec import interpolate, names
from fleetform.spec.findings import Finding, Level, render_findings
from fleetform.spec.kinds.task import parse_array
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, plain
from fleetform.spec.quantities import cpu, duration, gpu, memory, price, ranges
from fleetform.spec.syntax import Limits, read_stream
from fleetform.spec.syntax.read import split_lines
from fleetform.spec.tree import load_tree

__all__ = ["TARGETS", "documents", "interpolation", "quantities", "tree"]

_ENVIRONMENT = b"type: environment\nname: fuzzing\nuid: 0b2f6a0e-54c5\n"
LIMITS = Limits(bytes_max=1 << 16, depth_max=12, nodes_max=2000, findings_max=10)


def documents(data: bytes) -> None:
    """Bytes to nodes and findings."""
    found, findings = read_stream(data, "x.yaml", limits=LIMITS)
    assert len(findings) <= LIMITS.findings_max + 1
    assert all(document.is_sound for document in found) or _has_error(findings)
    lines = split_lines(data.decode("utf-8-sig", "replace"))
    for finding in findings:
        _check_finding(finding, lines)
    count = 0
    for document in found:
        count += _check_node(document.root, lines, LIMITS.depth_max)
        plain(document.root)
    # A merge shares what it brings in, so it may be counted once for the alias and once here.
    assert count <= 2 * LIMITS.nodes_max
    render_findings(findings).encode()
    assert read_stream(data, "x.yaml", limits=LIMITS) == (found, findings)


def tree(data: bytes) -> None:
    """
    Files to what they declare; `\\x1e` begins another file, and the first is `environment.yaml`
    where it says that it is one.
    """
    first, *others = data.split(b"\x1e")
    buffers = {"environment.yaml": _ENVIRONMENT, "a.yaml": first}
    if first.startswith(b"type: environment"):
        buffers = {"environment.yaml": first}
    buffers |= {f"f{number}/x.yaml": one for number, one in enumerate(others[:8])}
    loaded = load_tree(_folder(), buffers=buffers)
    assert list(loaded.findings) == sorted(loaded.findings, key=lambda one: one.sort_key)
    assert loaded.desired is not None or loaded.errors
    for finding in loaded.findings:
        lines = split_lines(buffers.get(finding.place.file, b"").decode("utf-8-sig", "replace"))
        _check_finding(finding, lines)
    render_findings(loaded.findings).encode()
    again = load_tree(_folder(), buffers=dict(reversed(buffers.items())))
    assert again.findings == loaded.findings
    if loaded.desired is not None:
        assert again.desired is not None
        assert again.desired.digest == loaded.desired.digest


_PARSERS: tuple[Callable[[Any], object], ...] = (
    cpu.parse_cpu,
    duration.parse_duration,
    gpu.parse_gpu,
    memory.parse_memory,
    memory.parse_disk,
    duration.parse_moment,
    price.parse_price,
    ranges.parse_int_range,
    names.parse_address,
    names.name_problem,
    parse_array,
)


def quantities(data: bytes) -> None:
    """Texts and numbers that people write for amounts: a value, or a sentence of why not."""
    text = data.decode("utf-8", "replace")
    values: list[Any] = [text]
    with contextlib.suppress(ValueError):
        values.append(float(text))
    with contextlib.suppress(ValueError):
        values.append(int(text[:400]))
    for value in values:
        for parse in _PARSERS:
            if not isinstance(value, str) and parse is names.parse_address:
                continue
            try:
                parse(value)
            except ValueError as exc:
                sentence = str(exc)
            else:
                continue
            assert sentence
            assert len(sentence) <= 2 * len(text) + 400, parse


def interpolation(data: bytes) -> None:
    """Texts with expressions: what has no problem can be filled in, to the length foretold."""
    text = data.decode("utf-8", "replace")
    scope: Mapping[str, Mapping[str, Any]] = {
        "matrix": {"x": 0.1, "long": "y" * 50},
        "run": {"name": "train", "index": 3},
        "env": {"A": "", "B": "${{ env.A }}"},
        "values": {"x": True},
    }
    known = {name: set(keys) for name, keys in scope.items()}
    compiled = interpolate.compile_value({"text": [text]})
    problems = list(interpolate.problems(compiled, known))
    if any(problem.level is Level.ERROR for problem in problems):
        return
    filled = interpolate.render(compiled, scope)["text"][0]
    assert len(filled) == interpolate.size(compiled, scope)
    if interpolate.MARK not in text:
        assert filled == text
    interpolate.render(compiled, scope, native=True)


def _folder() -> Path:
    global _kept  # noqa: PLW0603 -- one folder for a million trees, which lie in memory
    if _kept is None:
        _kept = tempfile.TemporaryDirectory(prefix="fleetform-fuzz-")
        (Path(_kept.name) / "above" / "tree").mkdir(parents=True)
    # Not the folder itself: a tree that extends `../base` would read what others have beside it.
    return Path(_kept.name) / "above" / "tree"


_kept: tempfile.TemporaryDirectory[str] | None = None


def _has_error(findings: list[Finding]) -> bool:
    return any(finding.level is Level.ERROR for finding in findings)


def _check_finding(finding: Finding, lines: list[str]) -> None:
    place = finding.place
    assert finding.summary
    assert finding.detail or finding.code == "too-many-findings"
    assert len(finding.detail) < 2100
    if not place.line:
        return
    assert 1 <= place.line <= len(lines), finding
    assert 1 <= place.column <= len(lines[place.line - 1]) + 1, finding


def _check_node(node: Node, lines: list[str], depth: int) -> int:
    """Every place exists, and of a plain text on one line it is where the text stands."""
    line, column, length = node.place
    assert 1 <= line <= len(lines), node
    assert 1 <= column <= len(lines[line - 1]) + 1, node
    if isinstance(node, ScalarNode):
        if not node.style and length == len(node.raw) and not node.raw.startswith("*"):
            shown = lines[line - 1][column - 1 : column - 1 + length]
            # At an alias, a tag or an anchor the place is that of the mark.
            assert shown == node.raw or shown[:1] in {"*", "&", "!"}, (node, shown)
        return 1
    assert depth > 0
    if isinstance(node, SequenceNode):
        return 1 + sum(_check_node(item, lines, depth - 1) for item in node.items)
    assert isinstance(node, MappingNode)
    raws = [key.raw for key, _ in node.entries]
    assert len(raws) == len(set(raws))
    return 1 + sum(1 + _check_node(value, lines, depth - 1) for _, value in node.entries)


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "documents": documents,
    "tree": tree,
    "quantities": quantities,
    "interpolation": interpolation,
}
