"""
What a value comes to, in words: `80GB..` is at least 80 GB, `1-100:2%10` is 50 elements.

The parsers of the language read the value, each field's unit says which one, and what cannot be
read says nothing: the finding does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pydantic_core import PydanticCustomError

from fleetform.lsp.index import Index
from fleetform.spec import fields
from fleetform.spec.desired import FILE_NAME
from fleetform.spec.interpolate import mentions
from fleetform.spec.kinds.task import parse_array
from fleetform.spec.names import counted, scalar_text
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, Span, plain
from fleetform.spec.quantities import (
    OFF,
    Range,
    format_bytes,
    format_duration,
    parse_cpu,
    parse_disk,
    parse_duration,
    parse_gpu,
)
from fleetform.spec.syntax import read_documents

__all__ = ["NAMESPACES", "Known", "Said", "known", "listed", "meaning"]


# As many values as are read at a glance.
_LISTED_MAX = 8


def meaning(kind: str, path: Iterable[str | int], value: Any) -> str:
    """What the value of a field comes to; empty where it is plain, or cannot be read."""
    names = [step for step in path if isinstance(step, str)]
    if not names or value is None or mentions(value):
        return ""
    say = _BY_NAME.get(names[-1]) or _BY_UNIT.get(fields.row(kind, ".".join(names)).unit)
    try:
        return say(value) if say else ""
    except (ValueError, PydanticCustomError):
        return ""


def listed(values: Iterable[Any]) -> str:
    """Values in a row, the first of them where there are many: `0.1`, `0.01` and 3 more."""
    texts = [f"`{scalar_text(value)}`" for value in values]
    shown, rest = texts[:_LISTED_MAX], len(texts) - _LISTED_MAX
    if rest > 0:
        return f"{', '.join(shown)} and {rest} more"
    return " and ".join(part for part in (", ".join(shown[:-1]), *shown[-1:]) if part)


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def _spaced(text: str) -> str:
    return re.sub(r"(?<=\d)(?=[A-Z])", " ", text)


def _range(amounts: Range, say: Callable[[int], str]) -> str:
    low, high = amounts.min, amounts.max
    if low is not None and low == high:
        return f"exactly {say(low)}"
    if high is None:
        return f"at least {say(low or 0)}"
    return f"at most {say(high)}" if low is None else f"from {say(low)} to {say(high)}"


def _bytes(value: Any) -> str:
    amounts = parse_disk(value)
    ends = [end for end in dict.fromkeys((amounts.min, amounts.max)) if end is not None]
    exact = " to ".join(_grouped(end) for end in ends)
    return f"{_range(amounts, lambda end: _spaced(format_bytes(end)))}: {exact} bytes"


def _cores(millicores: int) -> str:
    whole, rest = divmod(millicores, 1000)
    number = f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)
    return f"{number} CPU{'' if number == '1' else 's'}"


def _cpu(value: Any) -> str:
    cpu = parse_cpu(value)
    count = _range(cpu.count, _cores) if cpu.count else ""
    return ", ".join(part for part in (count, cpu.arch) if part)


def _seconds(value: Any) -> str:
    seconds = parse_duration(value, off=True)
    if seconds == OFF:
        return "no limit"
    return f"{_grouped(seconds)} s: {format_duration(seconds)}"


def _gpu(value: Any) -> str:
    gpu = parse_gpu(value)
    count = _range(gpu.count, str) if gpu.count else "at least 1"
    name = " or ".join(gpu.names) or gpu.vendor or "GPU of any kind"
    memory = f", each with {_range(gpu.memory, _size)}" if gpu.memory else ""
    total = f", together with {_range(gpu.total_memory, _size)}" if gpu.total_memory else ""
    return f"{count} × {name}{memory}{total}"  # noqa: RUF001 -- a sign people read as "times"


def _size(amount: int) -> str:
    return _spaced(format_bytes(amount))


def _array(value: Any) -> str:
    array = parse_array(value)
    count = len(array.indices)
    said = f"{_grouped(count)} element{'' if count == 1 else 's'}, {array.indices[0]} to {array.indices[-1]}"
    return said if array.throttle is None else f"{said}, {array.throttle} at a time"


def _matrix(value: Any) -> str:
    if not isinstance(value, Mapping):
        return ""
    axes = {name: len(axis) if isinstance(axis, list) else 1 for name, axis in value.items()}
    count = 1
    for size in axes.values():
        count *= size
    product = " × ".join(f"{size} {name}" for name, size in axes.items())  # noqa: RUF001 -- see above
    return f"{_grouped(count)} element{'' if count == 1 else 's'}: {product}"


_BY_NAME: Mapping[str, Callable[[Any], str]] = {"array": _array, "gpu": _gpu, "matrix": _matrix}
_BY_UNIT: Mapping[str, Callable[[Any], str]] = {
    "bytes": _bytes,
    "millicores": _cpu,
    "seconds": _seconds,
}


# What `${{ namespace.key }}` may name at a place, and what it stands for there.

NAMESPACES: Mapping[str, str] = {
    "secrets": "a secret; filled in on the host and never shown",
    "env": "a variable of this document's `env`",
    "matrix": "the value of a parameter for this element",
    "run": "the run itself: its name, its index",
    "node": "the node of the job, known when the job starts",
    "dstack": "a value of dstack, known when the job starts",
    "values": "a value of the environment, from `environment.yaml`",
}
"""Every namespace, and what is in it."""


class Said(NamedTuple):
    """
    What one key stands for.

    Attributes:
        words: In words; may be empty.
        place: Where that is written: a span, and the file when it is another one.
    """

    words: str = ""
    place: Span | None = None
    file: str = ""


Known = Mapping[str, Mapping[str, Said]]
"""By namespace and key."""


def known(root: MappingNode, index: Index) -> Known:
    """All that an expression in the document `root` may name."""
    return {
        "secrets": {key.name: Said("a secret") for key in index.names("secret")},
        "env": dict(_variables(root.get("env"))),
        "matrix": dict(_parameters(root.get("matrix"))),
        "run": dict(_run(root)),
        "values": dict(_values(index)),
    }


def _variables(node: Node | None) -> list[tuple[str, Said]]:
    if isinstance(node, MappingNode):
        return [(key.raw, _said(value, key.place)) for key, value in node.entries]
    items = node.items if isinstance(node, SequenceNode) else ()
    texts = [item for item in items if isinstance(item, ScalarNode)]
    pairs = [(item.raw.partition("="), item.place) for item in texts]
    return [(name, Said(f"`{value}`", place)) for (name, _, value), place in pairs]


def _parameters(node: Node | None) -> list[tuple[str, Said]]:
    if not isinstance(node, MappingNode):
        return []
    return [(key.raw, _axis(value, key.place)) for key, value in node.entries]


def _axis(node: Node, place: Span) -> Said:
    items = node.items if isinstance(node, SequenceNode) else (node,)
    values = [item.value for item in items if isinstance(item, ScalarNode)]
    count = counted(len(values), "value")
    return Said(f"takes {count}: {listed(values)}" if values else "", place)


def _run(root: MappingNode) -> list[tuple[str, Said]]:
    name, array = root.get("name"), root.get("array")
    said = [("name", _said(name, name.place))] if isinstance(name, ScalarNode) else []
    if array is not None:
        said.append(("index", Said("the element's index in `array`", array.place)))
    return said


def _values(index: Index) -> list[tuple[str, Said]]:
    read = index.files.get(FILE_NAME)
    roots = read_documents(read.text.data, FILE_NAME)[0] if read else []
    found = roots[0].get("values") if roots and isinstance(roots[0], MappingNode) else None
    if not isinstance(found, MappingNode):
        return []
    return [
        (key.raw, _said(value, key.place)._replace(file=FILE_NAME)) for key, value in found.entries
    ]


def _said(node: Node, place: Span) -> Said:
    value = plain(node)
    return Said("" if isinstance(value, dict | list) else f"`{value}`", place)
