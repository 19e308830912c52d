"""
Canonical values as people write them: `16GB` for bytes, `2h` for seconds, `0.5` for millicores.

The unit of a field is in `spec.fields`. What a document says is shown so that it can be typed
back, whole, on one line, and with nothing in it that a terminal obeys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from fleetform.model import figures
from fleetform.spec import fields
from fleetform.spec.names import host_name
from fleetform.views.lines import Written, printable
from fleetform.views.moments import moment
from fleetform.views.text_diff import same_length

VALUE_WIDTH = 100
"""Characters from which on a value is shown without most of what stays the same in it."""


@cache
def _formats() -> Mapping[str, Callable[[int], str]]:
    # Most plans have nothing to do, and show no amount: what reads them takes a thirtieth of one.
    from fleetform.spec.quantities import format_bytes, format_duration, format_millicores
    from fleetform.spec.quantities.price import format_price

    return {
        "bytes": format_bytes,
        "seconds": format_duration,
        "millicores": format_millicores,
        "percent": lambda amount: f"{amount}%",
        "millionths": format_price,
        "moment": lambda seconds: moment(seconds * 1000),
        "minutes": lambda minutes: f"{minutes // 60:02d}:{minutes % 60:02d}",
        "micro-dollars": format_price,
    }


_PLAIN = re.compile(r"[A-Za-z0-9_./:+@%,=-][A-Za-z0-9_./:+@%,= -]*")

# Words that YAML, or a reader, would take for something else than text.
_AMBIGUOUS = frozenset({"true", "false", "null", "yes", "no", "on", "off", ""})

# Of what is plain, by its first character: digits, a sign, a point, `nan`, `inf`.
_NUMBER_BEGINS = frozenset("0123456789+-.nNiI")

_RANGE = frozenset({"min", "max"})


def value_text(kind: str, path: str, value: Any) -> str:
    """
    Write one canonical value.

    Args:
        kind: The resource's kind, for the unit.
        path: As in `FieldChange.path`.
        value: JSON value; None is an open bound or an empty value.
    """
    if isinstance(value, Written):
        return printable(value)
    if isinstance(value, str):
        # A command alone on its row is read as it is typed; quotes within quotes are not.
        if _COMMAND.fullmatch(path) and _reads_as_typed(value):
            return value
        # Twelve of 64 digits tell two files apart.
        is_digest = path.endswith("sha256") and path.rpartition(".")[2] == "sha256"
        return printable(value[:12]) if is_digest else _quoted(value)
    if value is None:
        return "(no value)"  # A variable may have the value "none".
    if isinstance(value, bool):
        return "true" if value else "false"
    name = path.rpartition(".")[2]
    if isinstance(value, int):
        return _amount(kind, path, name, value)
    if isinstance(value, Mapping):
        if path.startswith("rules.freeze"):
            return _window(value)
        if path == _PORTS and _BRIEF[_PORTS].says_all_of(value):
            return _port(value)
        if _is_host(path) and value.keys() == {"hostname"}:
            return printable(_host_name(value))
        return _mapping(kind, path, name, value)
    if isinstance(value, Sequence):
        if name == "compute_capability":
            return ".".join(map(str, value))  # As NVIDIA has it, and documents.
        return f"[{', '.join(value_text(kind, path, item) for item in value)}]"
    return json.dumps(value)


def change_texts(kind: str, path: str, before: Any, after: Any) -> tuple[str, str]:
    """
    Write both sides of a change.

    Of long ones, what is the same at the beginning and at the end is cut, and never what differs.
    """
    left, right = value_text(kind, path, before), value_text(kind, path, after)
    if left == right and before != after:
        # Two files whose digests begin alike, say: what is shown in short is shown in full.
        left, right = (printable(json.dumps(one, ensure_ascii=False)) for one in (before, after))
    if max(len(left), len(right)) <= VALUE_WIDTH or left == right:
        return left, right
    start = same_length(left, right)
    rest = min(len(left), len(right)) - start
    end = same_length(left[::-1][:rest], right[::-1][:rest])
    return _without_same(left, start, end), _without_same(right, start, end)


def _without_same(text: str, start: int, end: int) -> str:
    """Some of what is the same stays, and tells where in the value this is."""
    first = max(0, start - _CONTEXT)
    last = len(text) - max(0, end - _CONTEXT)
    # One sign in the place of two or more.
    head = f"…{text[first:start]}" if first > 1 else text[:start]
    tail = f"{text[len(text) - end : last]}…" if len(text) - last > 1 else text[len(text) - end :]
    return f"{head}{text[start : len(text) - end]}{tail}"


_CONTEXT = VALUE_WIDTH // 3


def leaf_values(kind: str, path: str, value: Any) -> list[tuple[str, Any]]:
    """
    The fields inside a value that is shown as several rows: `resources.gpu`, `env.LR`.

    Lists of named things are one row of names, and a list of commands has a row for each.
    """
    # Most that is declared is text; asking whether that is a map takes as long as to write it.
    if isinstance(value, str):
        return [(path, value)]
    if isinstance(value, Mapping) and value and not _is_whole(path, value) and not _is_host(path):
        found: list[tuple[str, Any]] = []
        for name in sorted(value):
            found.extend(leaf_values(kind, f"{path}.{printable(str(name))}", value[name]))
        return found
    if isinstance(value, list) and value:
        brief = _BRIEF.get(path)
        if brief is not None and all(map(brief.says_all_of, value)):
            return [(path, Written(printable(", ".join(map(brief.text, value)))))]
        if path == _HOSTS:
            return [(f"{path}[{json.dumps(_host_name(one))}]", one) for one in value]
        if len(value) > 1 and path == "commands":
            return [(f"{path}[{place}]", one) for place, one in enumerate(value)]
        if path == "commands":
            return [(path, value[0])]
    return [(path, value)]


def brief_leaves(kind: str, path: str, value: Any) -> list[tuple[str, str]]:
    """Write the same, each on a line that a table has room for, for those who look for one field."""
    return [
        (name, _brief_text(kind, name, inner)) for name, inner in leaf_values(kind, path, value)
    ]


def _brief_text(kind: str, path: str, value: Any) -> str:
    if not isinstance(value, str) or "\n" not in value:
        return _cut(value_text(kind, path, value))
    first, *rest = value.strip().split("\n")
    more = f" … {figures.counted(len(rest), 'more line')}" if rest else ""
    return _cut(printable(first)) + more


def _cut(text: str) -> str:
    return text if len(text) <= VALUE_WIDTH else f"{text[: VALUE_WIDTH - 1]}…"


_MOUNTED = (
    ("instance", "each host's own"),
    ("optional", "where there is one"),
    ("read_only", "read only"),
)


def _mount(one: Mapping[str, Any]) -> str:
    """As documents have it: `data:/in`, `/mnt/nvme:/scratch`, `[data-eu, data-us]:/in`."""
    source = one.get("instance_path", one.get("name"))
    if isinstance(source, list):
        source = f"[{', '.join(map(str, source))}]"
    words = [words for flag, words in _MOUNTED if one.get(flag)]
    said = f" ({', '.join(words)})" if words else ""
    return f"{source}:{one.get('path')}{said}"


def _dependency(one: Mapping[str, Any]) -> str:
    when = one.get("when", "succeeded")
    words = [str(when)] if when != "succeeded" else []
    if one.get("each"):
        words.append("element by element")
    return f"{one.get('run')} ({', '.join(words)})" if words else str(one.get("run"))


_PORTS = "ports"


def _port(one: Mapping[str, Any]) -> str:
    """As documents have it: `8888`, `80:8000`, `*:8888`."""
    port, local = one["container_port"], one.get("local_port", "*")
    return str(port) if local == port else f"{local}:{port}"


_HOSTS = "ssh_config.hosts"


def _host_name(one: Mapping[str, Any]) -> str:
    """Name a host as instances are named."""
    return host_name(str(one.get("hostname")), one.get("port"))


def _is_host(path: str) -> bool:
    return path.startswith(f"{_HOSTS}[") and path.endswith("]")


def _window(one: Mapping[str, Any]) -> str:
    """A freeze window as its document has it: `year end: 2026-12-20T00:00:00Z to …`."""
    if cron := one.get("cron"):
        zone = one.get("timezone")
        lasts = _formats()["seconds"](one.get("duration", 0))
        when = f"{cron} for {lasts}{f' {zone}' if zone else ''}"
    else:
        bounds = (one.get("begin"), one.get("end"))
        when = " to ".join("…" if at is None else moment(at * 1000) for at in bounds)
    only = f", only {one['only']}" if one.get("only", "all") != "all" else ""
    return printable(f"{one.get('reason', '')}: {when}{only}")


class _Brief(NamedTuple):
    """What names an item of a list to people; an item that has more than `keys` is shown whole."""

    text: Callable[[Mapping[str, Any]], str]
    keys: frozenset[str]

    def says_all_of(self, one: Any) -> bool:
        return isinstance(one, Mapping) and one.keys() <= self.keys


_BRIEF: Mapping[str, _Brief] = {
    # Of a file that is new, what is in it stands in the commit.
    "files": _Brief(
        lambda one: str(one.get("path")), frozenset({"path", "sha256", "size", "mode"})
    ),
    "volumes": _Brief(
        _mount,
        frozenset({"name", "path", "instance_path", *(flag for flag, _ in _MOUNTED)}),
    ),
    _PORTS: _Brief(_port, frozenset({"local_port", "container_port"})),
    "depends_on.runs": _Brief(_dependency, frozenset({"run", "when", "each"})),
    # Most hosts are declared by their names alone.
    _HOSTS: _Brief(lambda one: str(one.get("hostname")), frozenset({"hostname"})),
    "rules.freeze": _Brief(
        _window,
        frozenset({"reason", "begin", "end", "cron", "duration", "timezone", "only"}),
    ),
}


def _is_whole(path: str, value: Mapping[str, Any]) -> bool:
    """Ranges and GPUs are read as one value."""
    if path in {"env", "tags", "matrix"}:
        return False
    return value.keys() <= {"min", "target", "max"} or _is_brief_gpu(path, value)


def _is_brief_gpu(path: str, value: Mapping[str, Any]) -> bool:
    return path.rpartition(".")[2] == "gpu" and value.keys() <= _GPU_KEYS


_GPU_KEYS = frozenset({"vendor", "name", "memory", "count"})


@lru_cache(maxsize=1024)  # Of ten thousand tasks, most ask for the same.
def _amount(kind: str, path: str, name: str, value: int) -> str:
    if name == "mode":
        return f"{value:04o}"  # As chmod and ls have it.
    from fleetform.spec.quantities import OFF

    unit = fields.row(kind, path).unit
    write = _formats().get(unit)
    # Below 0 there is only what says that a duration is `off`.
    if write is None or (value < 0 and (unit, value) != ("seconds", OFF)):
        return str(value)
    return write(value)


_COMMAND = re.compile(r"commands(\[\d+\])?")

# What a row has besides its values, so that no value passes for a change of its own. A quotation mark
# that is not closed reads as if the text went on behind the arrow, in `"a → b"`.
_RESERVED = re.compile(
    r"→|…|  # forces |^\((?:not set|no value)\)$|^\".*\"$|^\"(?:[^\"\\]|\\.)*\\?$|^'$"
)


def _reads_as_typed(value: str) -> bool:
    return value.isprintable() and value.strip() == value != "" and not _RESERVED.search(value)


def _quoted(value: str) -> str:
    return value if _is_plain(value) else printable(json.dumps(value, ensure_ascii=False))


def _is_plain(value: str) -> bool:
    """Tell whether YAML takes it for this very text without quotes."""
    if not _PLAIN.fullmatch(value) or value.lower() in _AMBIGUOUS:
        return False
    # Most texts begin like no number, and nothing more is asked of them.
    return value[0] not in _NUMBER_BEGINS or not _is_number(value)


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _mapping(kind: str, path: str, name: str, value: Mapping[str, Any]) -> str:
    if value and value.keys() <= _RANGE:
        return _range(kind, path, value)
    if value and value.keys() == {"min", "target", "max"}:
        bounds = _range(kind, path, value)
        target = value_text(kind, path, value["target"])
        # The least number is the default.
        is_default = value["target"] == value["min"]
        return bounds if is_default else f"{bounds} (target {target})"
    if _is_brief_gpu(path, value):
        return _gpu(kind, path, value)
    inside = (
        f"{printable(str(key))}: {value_text(kind, f'{path}.{key}', value[key])}"
        # A host's name stands first, as in its document.
        for key in sorted(value, key=lambda key: (key != "hostname", key))
    )
    return f"{{{', '.join(inside)}}}"


def _range(kind: str, path: str, value: Mapping[str, Any]) -> str:
    low, high = value.get("min"), value.get("max")
    if low is not None and low == high:
        return value_text(kind, path, low)
    low_text = "" if low is None else value_text(kind, path, low)
    return f"{low_text}..{'' if high is None else value_text(kind, path, high)}"


def _gpu(kind: str, path: str, value: Mapping[str, Any]) -> str:
    """As people declare it: `nvidia:A100:80GB:1..8`."""
    parts = [
        value.get("vendor") or "",
        ",".join(value.get("name") or ()),
        _part(kind, f"{path}.memory", value.get("memory")),
        _part(kind, f"{path}.count", value.get("count")),
    ]
    return printable(":".join(part for part in parts if part)) or "any"


def _part(kind: str, path: str, value: Any) -> str:
    return "" if value is None else value_text(kind, path, value)
