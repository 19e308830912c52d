"""
A batch script as sbatch reads it: its interpreter, its directives, and what it runs.

Directives end with the first line that is neither empty nor a comment, and a `#` behind a blank
begins a comment (sbatch(1)). `options` decides what each of them means.
"""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

__all__ = ["LONG_OPTIONS", "Option", "Script", "is_batch_script", "read_script"]

_MARK = "#SBATCH"

_NAMES = """
account acctg-freq array batch bb bbf begin chdir cluster cluster-constraint clusters comment
constraint container container-entrypoint container-env container-id container-image container-mount-home
container-mounts container-name container-readonly container-remap-root container-save container-workdir
container-writable contiguous
core-spec cores-per-socket cpu-bind cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot
dependency disable-stdout-job-summary distribution error exclude exclusive export export-file extra
extra-node-info get-user-env gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task
gres gres-flags hint hold ignore-pbs image immediate input job-name kill-on-invalid-dep licenses
mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nice
no-container-entrypoint no-container-mount-home no-container-remap-root no-kill no-requeue nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node
ntasks-per-socket open-mode output overcommit oversubscribe parsable partition power prefer priority
profile propagate qos quiet reboot requeue reservation resv-ports segment signal sockets-per-node
spread-job switches tasks tasks-per-node test-only thread-spec threads-per-core time time-min tmp
tres-bind tres-per-task uid usage use-min-nodes verbose wait wait-all-nodes wckey workdir wrap
"""
LONG_OPTIONS = frozenset(_NAMES.split())
"""Long options of sbatch, of all its versions, and of the container plugins."""

# Earlier and second names.
_ALIASES = {
    "cluster": "clusters",
    "share": "oversubscribe",
    "tasks": "ntasks",
    "tasks-per-node": "ntasks-per-node",
    "workdir": "chdir",
}

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
    *_SHORT_FLAGS.values(), "container-entrypoint", "container-mount-home", "container-readonly",
    "container-remap-root", "container-writable", "contiguous", "no-container-entrypoint",
    "no-container-mount-home", "no-container-remap-root", "disable-stdout-job-summary", "ignore-pbs", "no-requeue",
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
        body: What runs: the lines without `#!` and directives that count.
        body_lines: The line of the script that each line of the body comes from.
        late: Lines with directives that come too late for sbatch to see them; here-documents are left out.
        unread: Lines with directives that cannot be split into words.
        is_several: It describes a job of different parts (`#SBATCH hetjob`).
    """

    interpreter: str
    options: tuple[Option, ...]
    body: str
    body_lines: tuple[int, ...]
    late: tuple[int, ...]
    unread: tuple[int, ...]
    is_several: bool


def is_batch_script(text: str) -> bool:
    """Tell whether a text is a script with directives for sbatch."""
    return any(map(_is_directive, text.splitlines()))


def read_script(text: str) -> Script:
    """Read a script. Nothing in it is run, and what it says is not judged."""
    lines = text.splitlines()
    interpreter = lines[0][2:].strip() if text.startswith("#!") else ""
    options: list[Option] = []
    body: list[tuple[int, str]] = []
    late: list[int] = []
    unread: list[int] = []
    is_header, is_several = True, False
    delimiters: list[str] = []
    for number, line in enumerate(lines, start=1):
        if number == 1 and text.startswith("#!"):
            continue
        if not is_header or not _is_directive(line):
            if _is_directive(line) and not delimiters:
                late.append(number)
            is_header = is_header and (not line.strip() or line.lstrip().startswith("#"))
            delimiters = _open_delimiters(line, delimiters)
            body.append((number, line))
            continue
        try:
            words = _words(line[len(_MARK) :])
        except ValueError:
            unread.append(number)
            continue
        is_several |= words[:1] in (["hetjob"], ["packjob"])
        options += _options(words, number)
    while body and not body[0][1].strip():
        del body[0]
    while body and not body[-1][1].strip():
        del body[-1]
    numbers = tuple(number for number, _ in body)
    told = "\n".join(line for _, line in body)
    return Script(
        interpreter, tuple(options), told, numbers, tuple(late), tuple(unread), is_several
    )


def _is_directive(line: str) -> bool:
    # sbatch needs no blank in between.
    return line.startswith(_MARK) and line[len(_MARK) : len(_MARK) + 1] in {"", " ", "\t", "-"}


# Not `<<<`, which is a here-string.
_HERE = re.compile(r"(?<!<)<<(?!<)-?\s*(?:'([^']+)'|\"([^\"]+)\"|\\?([A-Za-z_]\w*))")


def _open_delimiters(line: str, delimiters: list[str]) -> list[str]:
    """Return the here-documents that are still open behind a line, in their order."""
    if delimiters:
        return delimiters[1:] if line.strip() == delimiters[0] else delimiters
    if line.lstrip().startswith("#"):
        return []
    return [quoted or double or word for quoted, double, word in _HERE.findall(line)]


def _long_name(name: str) -> str:
    """Return an option's whole name: getopt_long(3) takes any beginning that only one option has."""
    name = name if name in LONG_OPTIONS else name.replace("_", "-")
    if name not in LONG_OPTIONS:
        found = [one for one in LONG_OPTIONS if one.startswith(name)]
        # Names that mean the same are no choice.
        whole = {_ALIASES.get(one, one) for one in found}
        name = whole.pop() if len(whole) == 1 else name
    return _ALIASES.get(name, name)


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
            name = _long_name(name)
            takes_value = not equals and name not in _FLAGS | _OPTIONAL
            if takes_value and rest and not rest[0].startswith("-"):
                value = rest.pop(0)
            found.append(Option(name, value, line))
        elif word.startswith("-") and word[1:2] in _SHORT:
            value = word[2:] or (rest.pop(0) if rest else "")
            found.append(Option(_SHORT[word[1]], value.removeprefix("="), line))
        elif word.startswith("-"):
            found += [Option(_SHORT_FLAGS.get(letter, letter), "", line) for letter in word[1:]]
    return found
