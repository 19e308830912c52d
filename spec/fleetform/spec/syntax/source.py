"""
Bytes to text: the encoding, characters YAML does not have, and lines to quote in findings.
"""

from __future__ import annotations

import codecs
import re
import shlex
from collections.abc import Iterable
from dataclasses import replace

from fleetform.spec.bounds import Limits
from fleetform.spec.findings import Finding, Level, Place

__all__ = ["count_breaks", "decode", "quote_lines", "split_lines"]

# https://yaml.org/spec/1.2.2/#51-character-set, less U+FEFF, which only begins a file. In two,
# because nearly all files are ASCII and compiling the second takes 6 ms.
_UNPRINTABLE_ASCII = re.compile(r"[^\t\n\r\x20-\x7e]")
_UNPRINTABLE = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
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

# Without a mark, ASCII text shows where a wide encoding has its zeros.
_ZEROS = (
    ("UTF-32LE", re.compile(rb"(?:[^\0]\0\0\0){2}")),
    ("UTF-32BE", re.compile(rb"(?:\0\0\0[^\0]){2}")),
    ("UTF-16LE", re.compile(rb"(?:[^\0]\0){2}")),
    ("UTF-16BE", re.compile(rb"(?:\0[^\0]){2}")),
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
            "Split it; documents may be in any file. Data does not belong in documents: name a file under `files:` instead.",
        )
    wide = next((name for mark, name in _WIDE if data.startswith(mark)), None)
    wide = wide or next((name for name, zeros in _ZEROS if zeros.match(data)), None)
    if wide is not None:
        place = Place(file, 1, 1)
        return _encoding_finding(file, place, f"It is written in {wide}.", _conversion(file, wide))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        skipped = 3 if data.startswith(codecs.BOM_UTF8) else 0
        before = data[skipped : exc.start + skipped].decode("utf-8", "replace")
        detail = f"The byte 0x{exc.object[exc.start]:02X} does not continue any character."
        place = _place_after(before, file)
        return _encoding_finding(file, place, detail, _advice_on_bytes(file, data))
    found = _UNPRINTABLE_ASCII.search(text) if text.isascii() else re.search(_UNPRINTABLE, text)
    return text if found is None else _character_finding(found[0], text[: found.start()], file)


def split_lines(text: str) -> list[str]:
    """Return the lines as libyaml numbers them."""
    return _BREAK.split(text)


def count_breaks(text: str) -> int:
    """Return how many lines end in `text`."""
    return len(_BREAK.findall(text))


def quote_lines(findings: Iterable[Finding], data: bytes) -> list[Finding]:
    """
    Return findings about one file, each with the line of the file that it points at.

    A line on which a secret stands is quoted by none of them: what is printed ends up in logs.
    """
    every = list(findings)
    secret = {finding.place.line for finding in every if finding.code == "secret-in-clear"}
    wanted = {finding.place.line for finding in every if not finding.text} - {0} - secret
    if not wanted:
        return every
    lines = _some_lines(data.decode("utf-8-sig", "replace"), wanted)
    return [
        finding
        if finding.text or finding.place.line not in wanted
        else replace(finding, text=_quotable(lines.get(finding.place.line, ""), finding.place))
        for finding in every
    ]


def _some_lines(text: str, wanted: set[int]) -> dict[int, str]:
    """Return lines by number, without making a list of what may be millions of them."""
    lines: dict[int, str] = {}
    number, begins = 1, 0
    for found in _BREAK.finditer(text):
        if number in wanted:
            lines[number] = text[begins : found.start()]
            if len(lines) == len(wanted):
                return lines
        number, begins = number + 1, found.end()
    if number in wanted:
        lines[number] = text[begins:]
    return lines


def _quotable(line: str, place: Place) -> str:
    return line[:_QUOTED_MAX] if place.column <= _QUOTED_MAX else ""


def _place_after(before: str, file: str) -> Place:
    ends = 0
    line = 1
    for found in _BREAK.finditer(before):
        ends, line = found.end(), line + 1
    return Place(file, line, len(before) - ends + 1, 1)


def _advice_on_bytes(file: str, data: bytes) -> str:
    """What to do about bytes that are not UTF-8: no mark says what they are."""
    if not data.decode("utf-8", "ignore").isascii():
        return "Correct that character: others of the file are UTF-8, so it is damaged there."
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return "Save it as UTF-8 in the editor that wrote it."
    return f"If it is from an older editor: {_conversion(file, 'WINDOWS-1252')}"


def _conversion(file: str, encoding: str) -> str:
    written, made = shlex.quote(file), shlex.quote(f"{file}.utf8")
    return f"iconv -f {encoding} -t UTF-8 {written} > {made} && mv {made} {written}"


def _encoding_finding(file: str, place: Place, detail: str, advice: str) -> Finding:
    return Finding(
        Level.ERROR,
        "not-utf8",
        "The file is not UTF-8",
        place,
        f"{detail} Documents are always read as UTF-8, so that they mean the same on every machine.",
        advice,
    )


def _character_finding(character: str, before: str, file: str) -> Finding:
    names = {"\0": "a NUL byte", "\x1b": "an escape character", "\ufeff": "a byte order mark"}
    name = names.get(character, "a control character")
    return Finding(
        Level.ERROR,
        "control-character",
        "The file contains a character that YAML does not have",
        _place_after(before, file),
        f"This is {name} (U+{ord(character):04X}), which editors do not show.",
        "Delete it. Where it is meant, write it as an escape in double quotes:"
        f' "\\u{ord(character):04x}".',
    )
