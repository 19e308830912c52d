"""
Canonical values as people write them: `16GB` for bytes, `2h` for seconds, `0.5` for millicores.

The unit of a field is in `spec.fields`. What a document says is shown so that it can be typed
back, on one line, cut where it is long, and with nothing in it that a terminal obeys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from fleetform.spec import fields
from fleetform.views.lines import printable
from fleetform.views.moments import moment

__all__ = ["VALUE_WIDTH", "change_texts", "leaves", "value_text"]

VALUE_WIDTH = 100
"""Characters of one value: a plan shows that a script changed; the diff of the commit shows how."""


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
        "micro-dollars": lambda amount: f"${format_price(amount)}",
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
    return _cut(_text(kind, path, value), 0)


def change_texts(kind: str, path: str, before: Any, after: Any) -> tuple[str, str]:
    """Write both sides of a change; long ones are cut so that the difference is still seen."""
    texts = (_text(kind, path, before), _text(kind, path, after))
    if max(map(len, texts)) <= VALUE_WIDTH:
        return texts
    same = 0
    for left, right in zip(*texts, strict=False):
        if left != right:
            break
        same += 1
    # Some of what is the same tells where in the value this is.
    start = max(0, same - VALUE_WIDTH // 3)
    return _cut(texts[0], start), _cut(texts[1], start)


def _cut(text: str, start: int) -> str:
    shown = text if start == 0 else f"…{text[start + 1 :]}"
    return shown if len(shown) <= VALUE_WIDTH else f"{shown[: VALUE_WIDTH - 1]}…"


def leaves(kind: str, path: str, value: Any) -> list[tuple[str, str]]:
    """
    The fields inside a value that is shown as several rows: `resources.gpu`, `env.LR`.

    Lists of named things are one row of names, and a list of texts has a row for each.
    """
    # Most that is declared is text; asking whether that is a map takes as long as to write it.
    if isinstance(value, str):
        as_it_is = len(value) <= VALUE_WIDTH and _is_plain(value) and not path.endswith("sha256")
        return [(path, value if as_it_is else value_text(kind, path, value))]
    if isinstance(value, Mapping) and value and not _is_whole(path, value):
        found: list[tuple[str, str]] = []
        for name in sorted(value):
            found.extend(leaves(kind, f"{path}.{printable(str(name))}", value[name]))
        return found
    if isinstance(value, list) and value:
        if (brief := _BRIEF.get(path)) and all(isinstance(one, Mapping) for one in value):
            return [(path, _cut(printable(", ".join(brief(one) for one in value)), 0))]
        if len(value) > 1 and path == "commands":
            return [(f"{path}[{place}]", _first_line(one)) for place, one in enumerate(value)]
        if path == "commands":
            return [(path, _first_line(value[0]))]
    return [(path, value_text(kind, path, value))]


def _first_line(text: Any) -> str:
    """A script by its first line: what matters of it is read where it is written."""
    if not isinstance(text, str):
        return value_text("run", "commands", text)
    first, *rest = text.strip().split("\n")
    more = f" … {len(rest)} more {'line' if len(rest) == 1 else 'lines'}" if rest else ""
    return _cut(printable(first), 0) + more


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


# What names an item of a list to people, and little more.
_BRIEF: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "files": lambda one: str(one.get("path")),
    "volumes": _mount,
    "depends_on.runs": _dependency,
    "rules.freeze": _window,
}


def _is_whole(path: str, value: Mapping[str, Any]) -> bool:
    """Ranges and GPUs are read as one value."""
    if path in {"env", "tags", "matrix"}:
        return False
    return value.keys() <= {"min", "target", "max"} or path.rpartition(".")[2] == "gpu"


def _text(kind: str, path: str, value: Any) -> str:
    if isinstance(value, str):
        # A command alone on its row is read as it is typed; quotes within quotes are not.
        if path.startswith("commands[") and value.strip() == value and value.isprintable():
            return value or '""'
        # Nobody reads 64 digits; twelve tell two files apart.
        is_digest = path.endswith("sha256") and path.rpartition(".")[2] == "sha256"
        return value[:12] if is_digest else _quoted(value)
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    name = path.rpartition(".")[2]
    if isinstance(value, int):
        return _amount(kind, path, name, value)
    if isinstance(value, Mapping):
        if path.startswith("rules.freeze"):
            return _window(value)
        return _mapping(kind, path, name, value)
    if isinstance(value, Sequence):
        return f"[{', '.join(_text(kind, path, item) for item in value)}]"
    return json.dumps(value)


@lru_cache(maxsize=1024)  # Of ten thousand tasks, most ask for the same.
def _amount(kind: str, path: str, name: str, value: int) -> str:
    if name == "mode":
        return f"{value:04o}"  # As chmod and ls have it.
    from fleetform.spec.quantities import OFF

    unit = fields.unit(kind, path)
    write = _formats().get(unit)
    # Below 0 there is only what says that a duration is `off`.
    if write is None or (value < 0 and (unit, value) != ("seconds", OFF)):
        return str(value)
    return write(value)


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
        target = _text(kind, path, value["target"])
        fixed = value["min"] == value["max"]
        return bounds if fixed else f"{bounds} (now {target})"
    if name == "gpu":
        return _gpu(kind, path, value)
    inside = (
        f"{printable(str(key))}: {_text(kind, f'{path}.{key}', value[key])}"
        for key in sorted(value)
    )
    return f"{{{', '.join(inside)}}}"


def _range(kind: str, path: str, value: Mapping[str, Any]) -> str:
    low, high = value.get("min"), value.get("max")
    if low is not None and low == high:
        return _text(kind, path, low)
    low_text = "" if low is None else _text(kind, path, low)
    return f"{low_text}..{'' if high is None else _text(kind, path, high)}"


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
    return "" if value is None else _text(kind, path, value)
