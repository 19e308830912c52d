"""
The values of a shell script's variables and substitutions, as far as they are plain. Nothing is executed.

Two characters stand in words for what has no text: `SUBMIT_DIR` for the folder that the script is submitted in,
and `UNKNOWN` for any text. A `*` that is left in a word is the script's own.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Final

__all__ = ["SUBMIT_DIR", "UNKNOWN", "expand", "split_commands", "take_assignments"]

SUBMIT_DIR: Final = "\ue000"
UNKNOWN: Final = "\ue001"

_INNERMOST: Final = re.compile(
    r"\$\(\([^()]*\)\)|\$\(([^()`]*)\)|`([^`]*)`|\$\{([^${}()`]*)\}|\$(\w+|[@*#?$!-])"
)
"""A substitution without another one inside: the command, the command in backticks, the parameter, the name."""

_PARAMETER: Final = re.compile(r"(\w+)(?:\[[^]]*\])?(?::?[-=](.*))?", re.DOTALL)
_DIRECTORY: Final = re.compile(
    r"""\s*(?:cd\s+(?:--\s+)?(["']?)(?P<cd>[^"';&|]+?)\1\s*(?:&&|;)\s*(?:pwd(?:\s+-[PL])?|realpath\s+\.)
          |(?:realpath|readlink)\s+(?:-\w+\s+)*(?:--\s+)?(["']?)(?P<real>[^"';&|\s]+)\3)\s*""",
    re.VERBOSE,
)
_DIRNAME: Final = re.compile(r"""\s*dirname\s+(?:--\s+)?(["']?)([^"';&|]+?)\1\s*""")
_PWD: Final = re.compile(r"\s*pwd(?:\s+-[PL])?\s*")
_SCRIPT: Final = frozenset({"0", "BASH_SOURCE"})
_ASSIGNMENT: Final = re.compile(
    r"""\s*(?:(?:export|local|readonly|declare|typeset)\s+(?:-\w+\s+)*)?([A-Za-z_]\w*)=(["']?)([^\s"'`;|&<>()]*)\2(?=\s|;|$)"""
)


def expand(text: str, variables: Mapping[str, str], *, is_moved: bool = False) -> list[str]:
    """
    Return a command with what its variables are known to be, and then the commands of its substitutions.

    Args:
        text: A command of a shell script.
        variables: Those that have a plain value.
        is_moved: The script has left the folder that it began in, so `$PWD` is another one.
    """
    inner: list[str] = []
    here = "." if is_moved else SUBMIT_DIR

    def value(found: re.Match[str]) -> str:
        if (command := found[1] or found[2]) is not None:
            return _substituted(command, here, inner)
        if (written := found[3]) is not None:
            match = _PARAMETER.fullmatch(written)
            name, default = (match[1], match[2]) if match else ("", None)
        else:
            name, default = found[4] or "", None
        if name in _SCRIPT:
            return f"{SUBMIT_DIR}/{UNKNOWN}"
        if name == "SLURM_SUBMIT_DIR":
            return SUBMIT_DIR
        if name == "PWD":
            return here
        if name in variables:
            return variables[name]
        is_plain = default is not None and not name.startswith("SLURM_")
        return default.strip("\"'") if is_plain and default else UNKNOWN

    while (changed := _INNERMOST.sub(value, text)) != text:
        text = changed
    return [text.rstrip("\\"), *inner]


def _substituted(command: str, here: str, inner: list[str]) -> str:
    """Return what a command prints; one that may print anything is added to `inner`."""
    if _PWD.fullmatch(command):
        return here
    if match := _DIRECTORY.fullmatch(command):
        return (match["cd"] or match["real"]).rstrip("/") or "/"
    if match := _DIRNAME.fullmatch(command):
        return posixpath.dirname(match[2]) or "."
    inner.append(command)
    return UNKNOWN


def take_assignments(text: str, variables: dict[str, str]) -> tuple[list[str], str]:
    """Keep the assignments that a command begins with; returns their values and the rest of the command."""
    values = []
    while found := _ASSIGNMENT.match(text):
        variables[found[1]] = found[3]
        values.append(found[3])
        text = text[found.end() :]
    return values, text


def split_commands(text: str) -> Iterator[str]:
    """Yield the commands of a line, without its comment; those in quotes and parentheses stay together."""
    start = depth = 0
    quote = ""
    is_escaped = False
    for place, sign in enumerate(text):
        if is_escaped or sign == "\\":
            is_escaped = not is_escaped
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"`":
            quote = sign
        elif sign in "()":
            depth = max(depth + (1 if sign == "(" else -1), 0)
        elif sign == "#" and (place == 0 or text[place - 1].isspace()):
            text = text[:place]
            break
        elif sign in ";|&" and not depth and ">" not in text[max(place - 1, 0) : place + 2]:
            yield text[start:place]
            start = place + 1
    yield text[start:]
