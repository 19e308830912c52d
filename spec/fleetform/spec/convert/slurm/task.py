"""
A batch script into the document of a task.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import ValidationError

from fleetform.spec.convert.result import Notes
from fleetform.spec.convert.slurm.amounts import settle_amounts
from fleetform.spec.convert.slurm.commands import set_commands
from fleetform.spec.convert.slurm.job import Job
from fleetform.spec.convert.slurm.options import TABLE
from fleetform.spec.convert.slurm.sbatch import Option, Script, read_script
from fleetform.spec.dataclass import dataclass
from fleetform.spec.edit import append_document
from fleetform.spec.findings import Finding, Level
from fleetform.spec.kinds import KINDS

__all__ = ["SlurmTask", "convert_slurm"]

# In the order in which `fmt` writes them.
_ORDER: Final = (
    "type", "name", "description", "tags", "commands", "nodes", "array", "image", "shell", "env",
    "working_dir", "files", "volumes", "resources", "compat", "queue", "max_duration", "checkpoint",
    "retry", "depends_on", "concurrency", "state",
)  # fmt: skip


@dataclass(slots=True)
class SlurmTask:
    """
    What came of a script.

    Attributes:
        text: The document; empty when there is none.
        queue: The partition's name as a queue; empty when the script names none.
        carried: The name under which the script is to lie beside the document, because it is no
            shell script; empty for others.
    """

    text: str
    findings: list[Finding]
    queue: str = ""
    carried: str = ""


def convert_slurm(
    text: str, file: str, *, name: str, script: str = "", known: frozenset[str] = frozenset()
) -> SlurmTask:
    """
    Return the task that a batch script describes, and what has to be told about it.

    Args:
        text: The script's.
        file: Its name for findings.
        name: What the task is called: as the script says, as far as that can be a name.
        script: The script's own file name, for one that is run by no shell.
        known: Names of tasks that a dependency may mean.
    """
    notes = Notes(file, text.splitlines())
    read = read_script(text)
    if read.is_several:
        notes.refused(
            1,
            "The job has different parts, each with its own directives, and one task cannot say that.",
            "Write a task with `groups:`, one for each part.",
        )
        return SlurmTask("", notes.findings)
    job = Job(notes, known, {"type": "task", "name": name})
    for option in {option.name: option for option in read.options}.values():
        _take(job, option)
    _tell_unread(read, notes)
    settle_amounts(job)
    _drop_unfit(job)
    carried = set_commands(job, read, script)
    if "concurrency" in job.fields:
        job.fields["concurrency"] = {"group": name, "limit": 1}
    ordered: dict[str, Any] = {key: job.fields[key] for key in _ORDER if key in job.fields}
    assert ordered.keys() == job.fields.keys(), job.fields.keys() - set(_ORDER)
    return SlurmTask(
        append_document("", ordered), notes.findings, ordered.get("queue", ""), carried
    )  # fmt: skip


def _take(job: Job, option: Option) -> None:
    act = TABLE.get(option.name)
    if act is None:
        job.notes.lost(
            option.line,
            f"`--{option.name}` is not known here, and nothing came of it.",
            "If it matters, say it in the document.",
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
            del job.fields[key]
            said = message.removeprefix("Value error, ").rstrip(".")
            job.notes.lost(job.lines.get(key, job.amounts_line), f"`{key}` was left out: {said}.")


def _tell_unread(script: Script, notes: Notes) -> None:
    for line in script.unread:
        notes.lost(line, "The quotes of this line do not match, so it was left out.")
    for line in script.late:
        notes.otherwise(
            line,
            "This comes after the first command, where sbatch no longer looks. It was left out.",
        )
