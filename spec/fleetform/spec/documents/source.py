"""
Bytes to text: the encoding, characters YAML does not have, and lines to quote in findings.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from dataclasses import replace

from fleetform.spec.documents.limits import Limits
from fleetform.spec.findings import Finding, Level, Place

__all__ = ["decode", "quote_lines", "split_lines"]

# https://yaml.org/spec/1.2.2/#51-character-set, less U+FEFF, which only begins a file.
_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
# What libyaml counts as ends of lines.
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# A file that is not text may be one line; a finding quotes what a terminal can show.
_QUOTED_MAX = 1000

_WIDE = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # Before UTF-16, whose mark begins it.
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def decode(data: bytes, file: str, limits: Limits) -> str | Finding:
    """Return the text of a file without its byte order mark, or why it has none."""
    if len(data) > limits.bytes_max:
        return Finding(
            Level.ERROR,
            "file-too-large",
            "The file is too large",
            Place(file),
            f"It has {len(data)} bytes, and {limits.bytes_max} are read at most.",
            "Split it; any file of the tree may hold any documents. Data does not belong into"
            " documents: name a file under `files:` instead.",
        )
    for mark, name in _WIDE:
        if data.startswith(mark):
            return _encoding_finding(file, Place(file, 1, 1), f"It is written in {name}.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        skipped = 3 if data.startswith(codecs.BOM_UTF8) else 0
        before = data[skipped : exc.start + skipped].decode("utf-8", "replace")
        detail = f"The byte 0x{exc.object[exc.start]:02X} does not continue any character."
        return _encoding_finding(file, _place_after(before, file), detail)
    found = _UNPRINTABLE.search(text)
    return text if found is None else _character_finding(found[0], text[: found.start()], file)


def split_lines(text: str) -> list[str]:
    """Return the lines as libyaml numbers them."""
    return _BREAK.split(text)


def quote_lines(findings: Iterable[Finding], data: bytes) -> list[Finding]:
    """Return findings about one file, each with the line of the file that it points at."""
    lines: list[str] | None = None
    quoted = []
    for finding in findings:
        if finding.text or not finding.place.line:
            quoted.append(finding)
            continue
        if lines is None:
            lines = split_lines(data.decode("utf-8-sig", "replace"))
        number = finding.place.line
        text = lines[number - 1][:_QUOTED_MAX] if number <= len(lines) else ""
        quoted.append(replace(finding, text=text if finding.place.column <= _QUOTED_MAX else ""))
    return quoted


def _place_after(before: str, file: str) -> Place:
    lines = split_lines(before)
    return Place(file, len(lines), len(lines[-1]) + 1, 1)


def _encoding_finding(file: str, place: Place, detail: str) -> Finding:
    return Finding(
        Level.ERROR,
        "not-utf8",
        "The file is not UTF-8",
        place,
        f"{detail} Documents are read as UTF-8 and nothing else, so that they say the same"
        " on every machine.",
        f"Save it as UTF-8. If it is from an older editor: iconv -f WINDOWS-1252 -t UTF-8 {file}",
    )


def _character_finding(character: str, before: str, file: str) -> Finding:
    names = {"\0": "a NUL byte", "\x1b": "an escape character", "\ufeff": "a byte order mark"}
    name = names.get(character, "a control character")
    return Finding(
        Level.ERROR,
        "control-character",
        "The file contains a character that YAML does not have",
        _place_after(before, file),
        f"Here stands {name} (U+{ord(character):04X}), which editors do not show.",
        "Delete it. Where it is meant, write it as an escape in double quotes:"
        f' "\\u{ord(character):04x}".',
    )
