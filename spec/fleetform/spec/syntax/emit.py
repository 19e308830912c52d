"""
Values to YAML, for what an edit adds: in the style that people write by hand.

A text stands without quotes only where no reader takes it for something else, those of YAML 1.1
included: editors and other tools read the same files.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from fleetform.spec.syntax.resolve import NUMBER_STARTS, WORDS

__all__ = ["block_lines", "flow_text", "is_plain", "literal_lines", "scalar_text"]

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./$(][^\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]*")
# In brackets these end a scalar.
_FLOW_ENDS: Final = re.compile(r"[,\[\]{}]")
_CUTS: Final = re.compile(r":(?:\s|\Z)|\s#|\s\Z|\t")
# What YAML 1.1 reads as booleans, numbers with separators or sixties, and dates.
_OLD_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off"})
_OLD_NUMBER: Final = re.compile(
    r"[-+]?[0-9][0-9_,]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|[-+]?\.[0-9_]+(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"
    r"|[-+]?0[xob][0-9a-fA-F_]+|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*"
)


def is_plain(text: str, *, in_flow: bool = False) -> bool:
    """Tell whether a text may stand without quotes."""
    if not _PLAIN.fullmatch(text) or _CUTS.search(text) or text in WORDS:
        return False
    if text.lower() in _OLD_WORDS or (text[0] in NUMBER_STARTS and _OLD_NUMBER.fullmatch(text)):
        return False
    return not (in_flow and _FLOW_ENDS.search(text))


def scalar_text(value: Any, *, in_flow: bool = False, quote: str = "") -> str:
    """
    Return a scalar on one line.

    Args:
        value: Text, a number, a boolean or None.
        in_flow: It stands in brackets or braces.
        quote: The quotes to use for text, as what it replaces had; none where none are needed.
    """
    if value is None:
        return "null"
    if not isinstance(value, str):
        return json.dumps(value)
    if quote == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if not quote and is_plain(value, in_flow=in_flow):
        return value
    # JSON's escapes are YAML's; what YAML does not print is escaped beyond what JSON asks for.
    return "".join(
        letter if letter.isprintable() else _escaped(letter)
        for letter in json.dumps(value, ensure_ascii=False)
    )


def _escaped(letter: str) -> str:
    # Not JSON's pairs of surrogates, which are two characters in YAML.
    return f"\\U{ord(letter):08x}" if ord(letter) > 0xFFFF else f"\\u{ord(letter):04x}"


def flow_text(value: Any) -> str:
    """Return a value on one line."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(
                f"{_key(key, in_flow=True)}: {flow_text(item)}" for key, item in value.items()
            )
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(flow_text(item) for item in value) + "]"
    return scalar_text(value, in_flow=True)


def block_lines(value: Any, *, dash_offset: int = 2) -> tuple[str, list[str]]:
    """
    Return a value as it stands behind `key:`: what follows on that line, and the lines below.

    Args:
        value: JSON values.
        dash_offset: How far a list's dashes are indented below their key.

    Returns:
        The lines are indented relative to the key.
    """
    if isinstance(value, dict) and value:
        return "", _indented(mapping_lines(value, dash_offset=dash_offset), 2)
    if isinstance(value, list) and value:
        return "", _indented(sequence_lines(value, dash_offset=dash_offset), dash_offset)
    if isinstance(value, str) and "\n" in value and (lines := literal_lines(value)):
        return lines[0], _indented(lines[1:], 2)
    return (flow_text(value) if isinstance(value, dict | list) else scalar_text(value)), []


def mapping_lines(value: dict[str, Any], *, dash_offset: int = 2) -> list[str]:
    lines: list[str] = []
    for key, item in value.items():
        head, below = block_lines(item, dash_offset=dash_offset)
        lines.append(f"{_key(key)}: {head}" if head else f"{_key(key)}:")
        lines += below
    return lines


def sequence_lines(value: list[Any], *, dash_offset: int = 2) -> list[str]:
    lines: list[str] = []
    for item in value:
        lines += item_lines(item, dash_offset=dash_offset)
    return lines


def item_lines(item: Any, *, dash_offset: int = 2) -> list[str]:
    """Return one item of a list, its dash included."""
    if isinstance(item, dict) and item:
        below = mapping_lines(item, dash_offset=dash_offset)
    elif isinstance(item, list) and item:
        below = sequence_lines(item, dash_offset=dash_offset)
    else:
        head, below = block_lines(item)
        return [f"- {head}", *below]
    return [f"- {below[0]}", *_indented(below[1:], 2)]


def _indented(lines: list[str], width: int) -> list[str]:
    # Nothing stands on an empty line, so that editors have no blanks to take away.
    return [f"{' ' * width}{line}" if line else "" for line in lines]


def literal_lines(text: str) -> list[str]:
    """
    Return a text of several lines as `|` has it, its header first; empty when it cannot.

    A first line that begins with a blank would need a digit in the header, and characters that
    YAML does not print need escapes.
    """
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    lines = body.split("\n")
    if not body or lines[0][:1] in {"", " ", "\t"}:
        return []
    if any(letter != "\t" and not letter.isprintable() for line in lines for letter in line):
        return []
    header = "|" + ("-" if ends == 0 else "" if ends == 1 else "+")
    return [header, *lines, *[""] * (ends - 1)]


def _key(key: str, *, in_flow: bool = False) -> str:
    # `on` is a field, and a reader that takes it for a boolean reads none of these documents.
    return key if key in _OLD_WORDS else scalar_text(key, in_flow=in_flow)
