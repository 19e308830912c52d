"""
Convert a batch script into the document of a task.

The script becomes the task's command with its text as it is, because a shell's meaning is not
guessed. `needs` reports what it takes to run as before.
"""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from fleetform.spec.convert.conversion import Notes
from fleetform.spec.convert.slurm.job import NO_PARTITIONS, Job, Partitions, settle_amounts
from fleetform.spec.convert.slurm.local_files import LocalFiles, code_lines, find_local_files
from fleetform.spec.convert.slurm.needs import needs_srun, report_files, report_needs
from fleetform.spec.convert.slurm.options import TABLE
from fleetform.spec.convert.slurm.sbatch import Option, Script, read_script
from fleetform.spec.convert.slurm.variables import Line, report_variables, sourced_names
from fleetform.spec.findings import Finding, Level
from fleetform.spec.kinds import KINDS
from fleetform.spec.syntax.edit import append_document

__all__ = ["SlurmTask", "convert_slurm", "is_login", "is_shell", "set_commands"]


_SHELLS: Final = re.compile(
    r"(?:/\S*/)?(?:env\s+(?:-S\s+)?(?:/\S*/)?)?(bash|sh|zsh|dash|ksh)(?=\s|$)"
)
# Flags of a shell that `set` knows too.
_SET_FLAGS: Final = re.compile(r"-([efuvx]+)")
_LOGIN: Final = {"-l", "--login", "-il", "-li"}


def is_shell(script: Script) -> bool:
    """Tell whether a shell runs the script, which sets and reads variables as POSIX has it."""
    return _SHELLS.match(script.interpreter.strip() or "bash") is not None


def is_login(script: Script) -> bool:
    """Tell whether the script's shell reads the profile, and with it another PATH."""
    return is_shell(script) and not _LOGIN.isdisjoint(script.interpreter.split())


def set_commands(
    job: Job, script: Script, file: str, arguments: Sequence[str], *, needs_srun: bool
) -> bool:
    """
    Set what is run; returns whether the script itself has to be a file of the task.

    Args:
        job: Its fields get the commands.
        script: As sbatch reads it.
        file: The script's own file name.
        arguments: What follows the script's name on the command line.
        needs_srun: It uses commands of Slurm, which have to stay on PATH.
    """
    interpreter, hash_sign, _ = script.interpreter.partition(" #")
    interpreter = interpreter.strip()
    if hash_sign:
        job.notes.left_out(1, "A `#!` line has no comments: the one here was left out.")
    shell = _SHELLS.match(interpreter or "bash")
    if shell is None:
        job.fields["commands"] = [shlex.join([*interpreter.split(), file, *arguments])]
        job.notes.otherwise(
            1, f"`{interpreter}` runs the script, so the script was added to the files of the task."
        )
        return True
    if not interpreter:
        job.notes.otherwise(1, "sbatch refuses a script without `#!`. Here `bash` runs it.")
    _set_shell(job, shell[1])
    before = _flags(job, interpreter[shell.end() :].split(), needs_srun=needs_srun)
    if job.folder:
        before.append(f"mkdir -p {shlex.quote(job.folder)} && cd {shlex.quote(job.folder)}")
    if arguments:
        before.append(f"set -- {shlex.join(arguments)}")
    if job.input_file:
        before.append(f"exec < {shlex.quote(job.input_file)}")
    body = _escaped("\n".join([*before, job.command or script.body]))
    job.fields["commands"] = [f"{body}\n" if "\n" in body else body or "true"]
    return False


def _set_shell(job: Job, shell: str) -> None:
    if shell == "bash":
        job.fields["shell"] = "bash"
    elif shell != "sh":
        job.fields["shell"] = f"/bin/{shell}"


def _escaped(body: str) -> str:
    """Return the script with `${{` as text: in a document it begins an expression."""
    # A shell passes over NUL bytes, and no command can have one.
    return body.replace("\0", "").replace("${{", "$${{")


def _flags(job: Job, flags: list[str], *, needs_srun: bool) -> list[str]:
    """Return the lines that do what the flags of the shell did."""
    lines = []
    for flag in flags:
        if _SET_FLAGS.fullmatch(flag):
            lines.append(f"set {flag}")
        elif flag in _LOGIN:
            profile = "[ ! -r /etc/profile ] || . /etc/profile"
            # The first folder on PATH is that of `srun`; Debian's profile starts a new PATH.
            kept = f"slurm_path=${{PATH%%:*}}; {profile}; PATH=$slurm_path:$PATH"
            lines.insert(0, kept if needs_srun else profile)
            job.notes.otherwise(
                1,
                f"With `{flag}` the shell read its profile: the commands read `/etc/profile`, and no other.",
            )
        else:
            job.notes.lost(1, f"The script's shell had `{flag}`, which commands have not.")
    return lines


# In the order in which `fmt` writes them.
_ORDER: Final = (
    "type", "name", "description", "tags", "commands", "nodes", "array", "image", "shell", "env",
    "working_dir", "files", "volumes", "resources", "compat", "fleets", "queue", "max_duration",
    "checkpoint", "retry", "depends_on", "concurrency", "state",
)  # fmt: skip


@dataclass(slots=True)
class SlurmTask:
    """
    What came of a script.

    Attributes:
        text: The document; empty when there is none.
        carried: Where the files of the task are, by their paths relative to the document's folder.
        folder: The folder that the script was submitted in, as far as its files show.
        unresolved: Of `findings`: dependencies that the task does not have.
    """

    text: str
    findings: list[Finding]
    carried: Mapping[str, Path] = field(default_factory=dict)
    folder: Path | None = None
    unresolved: Sequence[Finding] = ()


def convert_slurm(
    text: str,
    file: str,
    *,
    name: str,
    script: str = "",
    arguments: Sequence[str] = (),
    known: frozenset[str] = frozenset(),
    partitions: Partitions = NO_PARTITIONS,
    folders: Sequence[Path] = (),
    call: Callable[[Path], str] | None = None,
    variables: frozenset[str] = frozenset(),
) -> SlurmTask:
    """
    Return the task that a batch script describes, and the findings about it.

    Args:
        text: The script's.
        file: Its name for findings.
        name: What the task is called: as the script says, as far as that can be a name.
        script: The script's own file name, for one that is run by no shell.
        arguments: What follows the script on the command line of sbatch.
        known: Names of tasks that a dependency may mean.
        partitions: What the partitions of the cluster are in the environment.
        folders: The script's own folder, and others that it may have been submitted in. Empty: do not look
            for files.
        call: Returns the command that runs the script when the commands start in a folder, for a caller
            that sends the files as they lie. None: the text of the script is the command, and `files:`
            lists the files that it uses.
        variables: What the command line sets, besides the script.
    """
    notes = Notes(file, text.splitlines())
    read = read_script(text)
    if read.is_several:
        notes.refused(
            1,
            "The job has different parts, each with its own directives, which one task cannot have.",
            "Write a task with `groups:`, one for each part.",
        )
        return SlurmTask("", notes.findings)
    if "\r\n" in text:
        notes.otherwise(1, "sbatch refuses lines that end as in Windows. Here they end as in Unix.")
    job = Job(notes, known, partitions, {"type": "task", "name": name})
    if call is not None:
        job.variable_advice = "Add `-e {name}=VALUE`, or `-e {name}` for the value in this shell."
    for option in {option.name: option for option in read.options}.values():
        _take(job, option)
    _tell_unread(read, notes)
    settle_amounts(job)
    _drop_unfit(job)
    lines = _code(job, read)
    has_srun = needs_srun(lines)
    # A directive that changes what runs, or where, makes the call of the script another thing.
    is_called = call is not None and not (
        job.command
        or job.input_file
        or job.folder
        or "working_dir" in job.fields
        or (has_srun and is_login(read))
    )
    is_file = not is_called and set_commands(job, read, script, arguments, needs_srun=has_srun)
    report_needs(job, lines, has_arguments=bool(arguments))
    carried: dict[str, Path] = {}
    sourced: dict[str, str] = {}
    folder = folders[0] if folders else None
    if folders and "working_dir" not in job.fields:
        files, folder = _search(lines, folders)
        report_files(job, files)
        sourced = dict(_sourced(lines, files, folder))
        if call is None:
            carried = _carry(job, files, folder)
        else:
            carried = {path: folder / path for path in files.found}
            made = [f"mkdir -p {shlex.join(files.directories)}"] if files.directories else []
            commands = [call(folder)] if is_called else job.fields["commands"]
            job.fields["commands"] = [*made, *commands]
    if is_shell(read):
        report_variables(job, lines, sourced, variables)
    if is_file and folders:
        if call is None:
            job.fields.setdefault("files", []).insert(0, script)
        carried = {script: folders[0] / script, **carried}
    if job.env:
        job.fields["env"] = {key: one.replace("${{", "$${{") for key, one in job.env.items()}
        _drop_unfit(job)
    if "concurrency" in job.fields:
        job.fields["concurrency"] = {"group": name, "limit": 1}
    ordered: dict[str, Any] = {key: job.fields[key] for key in _ORDER if key in job.fields}
    assert ordered.keys() == job.fields.keys(), job.fields.keys() - set(_ORDER)
    text = append_document("", ordered)
    return SlurmTask(text, notes.findings, carried, folder, job.unresolved)


def _code(job: Job, read: Script) -> list[Line]:
    """Return the lines that run, without those that are only comments."""
    moved = [Line(1, f"cd {job.folder}")] if job.folder else []
    if job.command:
        return [*moved, Line(job.lines.get("wrap", 1), job.command)]
    texts = code_lines(read.body.split("\n"))
    own = (Line(number, text) for number, text in zip(read.body_lines, texts, strict=False))
    return [*moved, *own]


def _search(lines: Sequence[Line], folders: Sequence[Path]) -> tuple[LocalFiles, Path]:
    """Return the files that the lines use, and the folder where most of their names exist."""
    looked = [(find_local_files(lines, folder), folder) for folder in folders]
    # The first of those that are alike: people submit where most of the names exist.
    return max(looked, key=lambda one: one[0].matches)


def _sourced(lines: Sequence[Line], files: LocalFiles, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the files that the script sources; others have no say over its variables."""
    names = sourced_names(lines)
    for path in files.found:
        file = folder / path
        if file.name in names and file.is_file() and file.stat().st_size < 1 << 20:
            yield file.name, file.read_text("utf-8", errors="replace")


def _carry(job: Job, files: LocalFiles, folder: Path) -> dict[str, Path]:
    """Set `files`, and make the commands run where the files expect it; returns what is to be copied."""
    depth = max((_climbs(path) for path in files.found), default=0)
    parts = folder.resolve().parts
    below = "/".join(parts[len(parts) - depth :]) if depth else ""
    paths = {posixpath.normpath(posixpath.join(below, one)): folder / one for one in files.found}
    before = [f"mkdir -p {shlex.quote(below)} && cd {shlex.quote(below)}"] if below else []
    if below and "compat" in job.fields:
        before.append('export SLURM_SUBMIT_DIR="$PWD"')
    if files.directories:
        before.append(f"mkdir -p {shlex.join(files.directories)}")
    job.fields["commands"] = [*before, *job.fields["commands"]]
    if paths:
        job.fields["files"] = sorted(paths)
    return paths


def _climbs(path: str) -> int:
    return path.split("/").count(os.pardir)


def _take(job: Job, option: Option) -> None:
    act = TABLE.get(option.name)
    if act is None:
        job.notes.lost(
            option.line,
            f"sbatch has no option `--{option.name}`, or several that begin so: it was left out.",
            "Write its whole name.",
        )
        return
    before = dict(job.fields)
    try:
        act(job, option)
    except ValueError as exc:
        job.notes.lost(option.line, f"`--{option.name}={option.value}` was left out: {exc}.")
    for key, value in job.fields.items():
        if before.get(key) != value:
            job.lines[key] = option.line


def _drop_unfit(job: Job) -> None:
    """Leave out what the model of a task does not take, and say why not."""
    model = KINDS["task"].model
    while True:
        # The script's text stands in for all commands.
        document = {**job.fields, "commands": ["true"]}
        try:
            task = model.model_validate(document)
        except ValidationError as exc:
            unfit = {str(error["loc"][0]): error["msg"] for error in exc.errors()}
        else:
            unfit = {
                str(problem.path[0]): problem.detail
                for problem in task.problems()
                if problem.level is Level.ERROR and problem.path
            }
        if not unfit:
            return
        for key, message in unfit.items():
            job.fields.pop(key)
            said = message.removeprefix("Value error, ").rstrip(".")
            job.notes.lost(job.lines.get(key, job.amounts_line), f"`{key}` was left out: {said}.")


def _tell_unread(script: Script, notes: Notes) -> None:
    for line in script.unread:
        notes.lost(line, "The quotes of this line do not match, so it was left out.")
    if script.late:
        first, *others = script.late
        also = f" So are lines {', '.join(map(str, others))}." if others else ""
        notes.left_out(
            first,
            f"This comes after the first command, where sbatch no longer looks: it is a comment.{also}",
        )
