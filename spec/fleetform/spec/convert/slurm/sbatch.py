"""
A batch script as sbatch reads it: its interpreter, its directives, and what it runs.

Directives end with the first line that is neither empty nor a comment, and a `#` behind a blank
begins a comment (sbatch(1)). What they mean is for `slurm` to say.
"""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

__all__ = ["Option", "Script", "is_batch_script", "read_script"]

_MARK = "#SBATCH"

# Short forms of options; those of the second table take no value.
_SHORT = {
    "A": "account", "a": "array", "b": "begin", "C": "constraint", "c": "cpus-per-task",
    "d": "dependency", "D": "chdir", "e": "error", "F": "nodefile", "G": "gpus", "i": "input",
    "J": "job-name", "L": "licenses", "M": "clusters", "m": "distribution", "N": "nodes",
    "n": "ntasks", "o": "output", "p": "partition", "q": "qos", "S": "core-spec", "t": "time",
    "w": "nodelist", "x": "exclude",
}  # fmt: skip
_SHORT_FLAGS = {
    "H": "hold", "I": "immediate", "k": "no-kill", "O": "overcommit", "Q": "quiet",
    "s": "oversubscribe", "v": "verbose", "W": "wait",
}  # fmt: skip
_FLAGS = frozenset({
    *_SHORT_FLAGS.values(), "contiguous", "disable-stdout-job-summary", "ignore-pbs", "no-requeue",
    "overcommit", "parsable", "reboot", "requeue", "spread-job", "test-only", "use-min-nodes",
    "usage",
})  # fmt: skip
# A value only ever stands behind `=` with these.
_OPTIONAL = frozenset({"exclusive", "get-user-env", "kill-on-invalid-dep", "nice", "propagate"})


class Option(NamedTuple):
    """A directive's option by its long name. `value` is empty for a flag."""

    name: str
    value: str
    line: int


class Script(NamedTuple):
    """
    A batch script.

    Attributes:
        interpreter: What stands behind `#!`; empty when nothing does.
        options: In the order written; the last of several that are alike counts.
        body: What runs: the lines without `#!` and directives.
        late: Lines with directives that come too late for sbatch to see them.
        unread: Lines with directives that cannot be split into words.
        is_several: It describes a job of different parts (`#SBATCH hetjob`).
    """

    interpreter: str
    options: tuple[Option, ...]
    body: str
    late: tuple[int, ...]
    unread: tuple[int, ...]
    is_several: bool


def is_batch_script(text: str) -> bool:
    """Tell whether a text is a script with directives for sbatch."""
    return text.startswith("#!") and any(line.startswith(_MARK) for line in text.splitlines())


def read_script(text: str) -> Script:
    """Read a script. Nothing in it is run, and what it says is not judged."""
    lines = text.splitlines()
    interpreter = lines.pop(0)[2:].strip() if text.startswith("#!") else ""
    first = 2 if text.startswith("#!") else 1
    options: list[Option] = []
    body: list[str] = []
    late: list[int] = []
    unread: list[int] = []
    is_header, is_several = True, False
    for number, line in enumerate(lines, start=first):
        is_directive = line.startswith(_MARK) and line[len(_MARK) : len(_MARK) + 1] in {
            "",
            " ",
            "\t",
        }
        if not is_directive:
            is_header = is_header and (not line.strip() or line.lstrip().startswith("#"))
            body.append(line)
        elif not is_header:
            late.append(number)
        else:
            try:
                words = _words(line[len(_MARK) :])
            except ValueError:
                unread.append(number)
                continue
            is_several |= words[:1] in (["hetjob"], ["packjob"])
            options += _options(words, number)
    told = "\n".join(body).strip("\n")
    return Script(interpreter, tuple(options), told, tuple(late), tuple(unread), is_several)


def _words(text: str) -> list[str]:
    """
    Split a directive, without its comment.

    A `#` inside of a word is none: Enroot's images have one. Nor is one in quotes, which is where
    what stands before it cannot be split.

    Raises:
        ValueError: A quote has no end.
    """
    for found in re.finditer(r"(?<=\s)#", text):
        try:
            return shlex.split(text[: found.start()])
        except ValueError:
            continue
    return shlex.split(text)


def _options(words: list[str], line: int) -> list[Option]:
    found: list[Option] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if (
                not equals
                and name not in _FLAGS | _OPTIONAL
                and rest
                and not rest[0].startswith("-")
            ):
                value = rest.pop(0)
            found.append(Option(name, value, line))
        elif word.startswith("-") and word[1:2] in _SHORT:
            value = word[2:] or (rest.pop(0) if rest else "")
            found.append(Option(_SHORT[word[1]], value.removeprefix("="), line))
        elif word.startswith("-"):
            found += [Option(_SHORT_FLAGS.get(letter, letter), "", line) for letter in word[1:]]
    return found
