"""
Find the values of a shell script's variables, and those that it reads and nothing in its job sets.

Nothing is executed: values are known as far as they are plain. Two characters stand in words for
what has no text: `SUBMIT_DIR` for the folder that the script is submitted in, and `UNKNOWN` for any
text. A `*` that is left in a word is the script's own.

sbatch hands the variables of the calling shell to the job (`--export=ALL` is its default); a run has
those of its document and of its host. An index of an array is one of them: people write
`sbatch --array=1-10 job.sh` too.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from fleetform.spec.convert.slurm.job import Job
from fleetform.spec.findings import Level

__all__ = [
    "SUBMIT_DIR",
    "UNKNOWN",
    "Line",
    "expand",
    "report_variables",
    "sourced_names",
    "split_commands",
    "take_assignments",
]

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


class Line(NamedTuple):
    """A line of code and its number in the script."""

    number: int
    text: str


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


_NAMES = """
BASH BASHPID BASH_REMATCH BASH_SOURCE BASH_VERSION COLUMNS CUDA_VISIBLE_DEVICES DIRSTACK EUID FUNCNAME GROUPS HOME
HOSTNAME HOSTTYPE IFS LANG LINENO LINES LOGNAME MACHTYPE OLDPWD OPTARG OPTIND OSTYPE PATH PIPESTATUS PPID PWD
PYTHONUNBUFFERED RANDOM REPLY SECONDS SHELL SHLVL TMPDIR UID USER
"""
_KNOWN: Final = frozenset(_NAMES.split())
"""What a shell or the host sets in each job (`docs/how-to/runs.md`)."""

_PREFIXES: Final = ("SLURM_", "SLURMD_", "FLEETFORM_", "DSTACK_", "BASH_")

_NAME: Final = r"[A-Za-z_]\w*"
_READ: Final = re.compile(rf"(?<!\\)\$(?:({_NAME})|\{{[#!]?({_NAME})(:?[-=+?])?)")
_ARITHMETIC: Final = re.compile(r"\bSLURM_ARRAY_(?:TASK_\w+|JOB_ID)\b")
_SET: Final = re.compile(
    rf"(?:^|[\s;&|({{])({_NAME})(?:\[[^]]*\])?\+?=|\b(?:for|select)\s+({_NAME})\b|\$\{{({_NAME}):?="
)
_ASSIGNED: Final = re.compile(rf"(?<![\w$])({_NAME})=(\"[^\"]*\"|[^\s;&|)]*)")
_SET_BY_NAME: Final = re.compile(
    r"\b(?:read|mapfile|readarray|declare|local|typeset|getopts|export|readonly|printf\s+-v|let)\b([^;|&<>]*)"
)
_TESTED: Final = re.compile(rf"-[nzv]\s+\"?\$?\{{?({_NAME})")
_PRINTED: Final = re.compile(r"^\s*(?:(?:do|then|else)\s+)?(?:echo|printf)\s[^>|`(]*$")
_SOURCED: Final = re.compile(
    r"(?:^|[;&|{(]|\bthen|\bdo)\s*(?:source|\.)\s+[\"']?(\S+?)[\"';]*(?:\s|$)"
)
_LOADS: Final = re.compile(r"(?:^|[;&|{(])\s*(?:module|ml|eval|conda|mamba|spack)\s")


def sourced_names(lines: Sequence[Line]) -> set[str]:
    """Return the names, without folders, of the files that the script reads into its own shell."""
    return {found.rpartition("/")[2] for _, text in lines for found in _SOURCED.findall(text)}


def report_variables(
    job: Job,
    lines: Sequence[Line],
    sourced: Mapping[str, str],
    given: AbstractSet[str] = frozenset(),
) -> None:
    """
    Report them: those without which the script ends, an array's, and all others with the first line.

    Args:
        job: Its `env:` sets some.
        lines: The script.
        sourced: The texts of files that it sources and that exist, by their names.
        given: Variables that the command line sets.
    """
    code = [Line(number, re.sub(r"'[^']*'", "", text)) for number, text in lines]
    beside = {
        name for text in sourced.values() for line in text.splitlines() for name in _set(line)
    }
    missing = _missing(code, {*job.env, *beside, *given}, has_array="array" in job.fields)
    notes = job.notes
    indices = [name for name in missing if name.startswith("SLURM_")]
    if indices:
        notes.kept(
            missing[indices[0]].number,
            f"The script reads `${indices[0]}`, and it has no `--array`.",
            "Add `array: 1-10`, with the indices that were given to sbatch.",
        )
    for name in [name for name, read in missing.items() if read.is_required]:
        notes.kept(
            missing.pop(name).number,
            f"The script ends without the variable `{name}`, and nothing sets it.",
            job.variable_advice.format(name=name),
        )
    others = [name for name in missing if name not in indices]
    if not others:
        return
    more = f" and {len(others) - 1} more ({', '.join(others[1:6])})" if len(others) > 1 else ""
    first = missing[others[0]].number
    # A file or module that is loaded before may set them.
    before = [one for one in code if one.number < first]
    loads = sourced_names(before) - sourced.keys() or any(_LOADS.search(text) for _, text in before)
    notes.kept(
        first,
        f"The script reads `${others[0]}`{more}, and does not set it. sbatch takes such variables from the shell"
        " that calls it; a run does not.",
        f"For each that the script needs: {job.variable_advice.format(name='NAME')}"
        if len(others) > 1
        else job.variable_advice.format(name=others[0]),
        level=Level.NOTE if loads else Level.WARNING,
    )


class _Read:
    """The first place where a variable is read."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_required = False


def _missing(
    lines: Sequence[Line], given: AbstractSet[str], *, has_array: bool
) -> dict[str, _Read]:
    """Return the variables that are read and never set, tested or given a default."""
    missing: dict[str, _Read] = {}
    known = {*_KNOWN, *given, *(name for _, text in lines for name in _set(text))}
    for number, text in lines:
        if _PRINTED.match(text):
            continue
        for name, operator in _reads(text):
            is_index = name.startswith("SLURM_ARRAY_") and not has_array
            if name in known or (name.startswith(_PREFIXES) and not is_index):
                continue
            if operator.endswith(("-", "=", "+")):
                known.add(name)
                missing.pop(name, None)
                continue
            read = missing.setdefault(name, _Read(number))
            read.is_required |= operator.endswith("?")
    return missing


def _reads(text: str) -> Iterator[tuple[str, str]]:
    for found in _READ.finditer(text):
        yield found[1] or found[2], found[3] or ""
    if "((" in text:
        yield from ((name, "") for name in _ARITHMETIC.findall(text) if f"{{{name}" not in text)


def _set(text: str) -> Iterator[str]:
    text = _ASSIGNED.sub(_without_own, text)
    for found in _SET.finditer(text):
        yield found[1] or found[2] or found[3]
    for found in _SET_BY_NAME.finditer(text):
        yield from re.findall(rf"(?<![$\w{{]){_NAME}", found[1])
    yield from _TESTED.findall(text)


def _without_own(assignment: re.Match[str]) -> str:
    """Drop an assignment that reads its own variable, as in `KEY=$KEY`: it needs a value before it; lists do not."""
    name, value = assignment.groups()
    own = rf"\$(?:{name}\b|\{{{name}(?!\w|:?[-=+]))"
    is_list = re.search(rf"{own}\}}?:|:{own}", value) is not None
    return " " if re.search(own, value) and not is_list else assignment[0]
