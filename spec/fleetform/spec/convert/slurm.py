"""
A batch script of Slurm's as a task: what its directives ask for, and the script as its command.

What a directive means here stands in one table, `TABLE`. Amounts that Slurm counts for each task
or GPU are collected first, because a document says what each node needs. The text of the script is
taken over as it is: a shell's meaning is not for us to guess.
"""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from fleetform.spec.convert.naming import derive_name
from fleetform.spec.convert.result import Notes
from fleetform.spec.convert.sbatch import Option, Script, read_script
from fleetform.spec.edit import append_document
from fleetform.spec.findings import Finding, Level
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.array import parse_array
from fleetform.spec.quantities.duration import OFF, format_duration
from fleetform.spec.quantities.gpu import parse_gpu

__all__ = ["TABLE", "SlurmTask", "convert_slurm"]

# In the order in which `fmt` writes them.
_ORDER: Final = (
    "type", "name", "description", "tags", "commands", "nodes", "array", "image", "shell", "env",
    "working_dir", "files", "volumes", "resources", "compat", "queue", "max_duration", "checkpoint",
    "retry", "depends_on", "concurrency", "state",
)  # fmt: skip
_SLURM_WORDS: Final = re.compile(r"\bSLURM_[A-Z_]+|\b(?:srun|scontrol|sbcast)\b")
_SUBMITS: Final = re.compile(r"^\s*(?:[A-Za-z_]\w*=\$\(\s*)?(sbatch|salloc)\b", re.MULTILINE)
_STARTS: Final = re.compile(r"\bsrun\b")
_MODULES: Final = re.compile(r"^\s*(?:module|ml)\s+\S", re.MULTILINE)
_SHELLS: Final = re.compile(r"(?:/\S*/)?(?:env\s+)?(bash|sh|zsh|dash|ksh)(?=\s|$)")
# Flags of a shell that `set` knows too.
_SET_FLAGS: Final = re.compile(r"-([efuvx]+)")


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


@dataclass(slots=True)
class _Job:
    """A job while its directives are read. Amounts are what was said; 0: nothing."""

    notes: Notes
    fields: dict[str, Any] = field(default_factory=dict)
    nodes: int = 0
    tasks: int = 0
    tasks_per_node: int = 0
    cpus_per_task: int = 0
    cpus_per_gpu: int = 0
    gpus: int = 0
    """On each node."""
    gpus_in_all: int = 0
    gpus_per_task: int = 0
    gpu_type: str = ""
    megabytes: Mapping[str, int] = field(default_factory=dict)
    """By what they are counted for: `node`, `cpu`, `gpu`."""
    amounts_line: int = 1
    lines: dict[str, int] = field(default_factory=dict)
    """Where each field comes from."""


class _UnfitError(ValueError):
    """The value cannot be read; its text is a clause for people."""


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
    job = _Job(notes, {"type": "task", "name": name})
    for option in {option.name: option for option in read.options}.values():
        _take(job, option, known)
    _tell_unread(read, notes)
    _settle_amounts(job)
    _drop_unfit(job)
    carried = _set_commands(job, read, script)
    if "concurrency" in job.fields:
        job.fields["concurrency"] = {"group": name, "limit": 1}
    ordered: dict[str, Any] = {key: job.fields[key] for key in _ORDER if key in job.fields}
    assert ordered.keys() == job.fields.keys(), job.fields.keys() - set(_ORDER)
    return SlurmTask(
        append_document("", ordered), notes.findings, ordered.get("queue", ""), carried
    )  # fmt: skip


def _take(job: _Job, option: Option, known: frozenset[str]) -> None:
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
        if act is _dependency:
            _dependency(job, option, known)
        else:
            act(job, option)
    except ValueError as exc:
        job.notes.lost(option.line, f"`--{option.name}={option.value}` was left out: {exc}.")
    for key, value in job.fields.items():
        if before.get(key) != value:
            job.lines[key] = option.line


def _drop_unfit(job: _Job) -> None:
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


# Directives


def _name(job: _Job, option: Option) -> None:
    name = job.fields["name"]
    if name != option.value:
        job.notes.otherwise(
            option.line,
            f"`{option.value}` cannot be a name here, or is taken: it is `{name}` now.",
        )


def _comment(job: _Job, option: Option) -> None:
    job.fields["description"] = option.value


def _nodes(job: _Job, option: Option) -> None:
    least, dash, _most = option.value.partition("-")
    job.nodes = _count(least)
    if dash:
        job.notes.lost(
            option.line,
            f"A task has a fixed number of nodes. It has {job.nodes}, the least that the script takes.",
        )


def _amount(name: str) -> Callable[[_Job, Option], None]:
    def act(job: _Job, option: Option) -> None:
        setattr(job, name, _count(option.value))
        job.amounts_line = option.line

    return act


def _count(text: str) -> int:
    if not re.fullmatch(r"\d{1,7}", text, re.ASCII) or int(text) == 0:
        raise _UnfitError("it is not a number from 1")
    return int(text)


def _gres(job: _Job, option: Option) -> None:
    for wanted in option.value.removeprefix("gres/").split(","):
        kind, _, rest = wanted.partition(":")
        if kind.removeprefix("gres/") != "gpu":
            job.notes.lost(
                option.line,
                f"Nothing is known of `{kind}` here: it was left out.",
                "Choose the fleets that have it with `fleets:`.",
            )
        else:
            job.gpus = _gpus(job, rest)


def _gpu_option(name: str) -> Callable[[_Job, Option], None]:
    def act(job: _Job, option: Option) -> None:
        setattr(job, name, _gpus(job, option.value))
        job.amounts_line = option.line

    return act


def _gpus(job: _Job, text: str) -> int:
    """Read `2`, `a100`, `a100:2`; keep the type and return the number."""
    kind, colon, count = text.partition("(")[0].rpartition(":")
    if not colon and not re.fullmatch(r"\d*", count):
        kind, count = count, ""
    if kind:
        job.gpu_type = kind
    return _count(count) if count else 1


def _memory(counted_for: str) -> Callable[[_Job, Option], None]:
    def act(job: _Job, option: Option) -> None:
        match = re.fullmatch(r"(\d{1,12})([KMGT]?)B?", option.value, re.ASCII | re.IGNORECASE)
        if match is None:
            raise _UnfitError("it is not a size, such as `32G`")
        # sbatch(1): megabytes where no unit is said, all of them in powers of 1024.
        factor = {"K": 1 / 1024, "M": 1, "": 1, "G": 1024, "T": 1024**2}[match[2].upper()]
        megabytes = math.ceil(int(match[1]) * factor)
        if megabytes == 0:
            job.notes.lost(
                option.line,
                "`--mem=0` asks for all memory of the host, and a task says how much it needs.",
                "Add `resources: {memory: 64GB..}` with what it needs.",
            )
            return
        job.megabytes = {**job.megabytes, counted_for: megabytes}

    return act


def _time(job: _Job, option: Option) -> None:
    seconds = _seconds(option.value)
    job.fields["max_duration"] = "off" if seconds in {0, OFF} else format_duration(seconds)


def _seconds(text: str) -> int:
    """Read `minutes`, `minutes:seconds`, `hours:minutes:seconds`, `days-hours[:minutes[:seconds]]`."""
    if text.upper() in {"INFINITE", "UNLIMITED", "-1"}:
        return OFF
    match = re.fullmatch(r"(?:(\d{1,5})-)?(\d{1,7})(?::(\d{1,4}))?(?::(\d{1,4}))?", text, re.ASCII)
    if match is None:
        raise _UnfitError("it is not a time, such as `2:00:00` or `1-12`")
    days, *clock = match.groups()
    numbers = [int(part) for part in clock if part is not None]
    if days is not None:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
        return int(days) * 86_400 + hours * 3_600 + minutes * 60 + seconds
    if len(numbers) == 3:
        return numbers[0] * 3_600 + numbers[1] * 60 + numbers[2]
    minutes, seconds = [*numbers, 0][:2]
    return minutes * 60 + seconds


def _array(job: _Job, option: Option) -> None:
    try:
        parse_array(option.value)
    except ValueError as exc:
        raise _UnfitError("its indices cannot be read") from exc
    job.fields["array"] = option.value


def _partition(job: _Job, option: Option) -> None:
    first, comma, _ = option.value.partition(",")
    job.fields["queue"] = derive_name(first, otherwise="queue")
    if comma:
        job.notes.lost(
            option.line, f"A task waits in one queue: it is `{first}`, the first of them."
        )


_WHEN: Final = {
    "after": "started", "afterany": "finished", "aftercorr": "succeeded", "afternotok": "failed",
    "afterok": "succeeded",
}  # fmt: skip


def _dependency(job: _Job, option: Option, known: frozenset[str] = frozenset()) -> None:
    runs: list[dict[str, Any]] = []
    for part in re.split(r"[,?]", option.value):
        kind, _, jobs = part.partition(":")
        if kind == "singleton":
            job.fields["concurrency"] = {"limit": 1}
            continue
        if kind not in _WHEN:
            raise _UnfitError(f"`{kind}` is no kind of dependency that is known here")
        for name in jobs.split(":"):
            run = derive_name(name.partition("+")[0])
            if run not in known or name.isdigit():
                job.notes.lost(
                    option.line,
                    f"`{name}` is the number of a job, and a document names the task that it waits for.",
                    f"Add `depends_on: [{{run: NAME, when: {_WHEN[kind]}}}]`.",
                )
            else:
                each = {"each": True} if kind == "aftercorr" else {}
                runs.append({"run": run, "when": _WHEN[kind], **each})
    if runs:
        is_any = "?" in option.value
        job.fields["depends_on"] = {"when": "any", "runs": runs} if is_any else runs


def _requeue(job: _Job, option: Option) -> None:
    job.fields["retry"] = {"on": ["node-failure", "preemption"]}


def _signal(job: _Job, option: Option) -> None:
    match = re.fullmatch(r"(?:[BR]+:)?([A-Za-z0-9]+)(?:@(\d{1,6}))?", option.value, re.ASCII)
    if match is None:
        raise _UnfitError("it is not a signal, such as `USR1@300`")
    name = match[1].upper().removeprefix("SIG")
    if name.isdigit():
        try:
            name = signal.Signals(int(name)).name.removeprefix("SIG")
        except ValueError:
            raise _UnfitError("there is no signal of that number") from None
    # sbatch(1): sixty seconds where no time is said.
    job.fields["checkpoint"] = {"signal": name, "lead": format_duration(int(match[2] or 60))}
    job.notes.otherwise(
        option.line,
        "`checkpoint` sends the signal to all processes of the job that catch it, not to steps or the"
        " shell alone.",
    )


def _moment(name: str) -> Callable[[_Job, Option], None]:
    def act(job: _Job, option: Option) -> None:
        is_whole = re.fullmatch(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?)?", option.value)
        written = (
            f"{option.value}{'' if 'T' in option.value else 'T00:00'}"
            if is_whole
            else "2026-12-24T18:00"
        )
        job.notes.lost(
            option.line,
            f"`{option.value}` was read on the cluster, by its clock and in its time zone. A document says"
            " a moment with its zone.",
            f"Add `{name}: {written}Z`, with the right offset in place of the `Z`.",
        )

    return act


def _export(job: _Job, option: Option) -> None:
    wanted = [part for part in option.value.split(",") if part not in {"", "ALL", "NIL", "NONE"}]
    if wanted:
        job.fields["env"] = wanted
    if "ALL" in option.value.split(",") or any("=" not in part for part in wanted):
        job.notes.otherwise(
            option.line,
            "A run starts with the variables of its document and no others: what it needs from the"
            " environment of whoever submitted it has to be named.",
            "Add a line `- NAME` to `env:` for each.",
        )


def _chdir(job: _Job, option: Option) -> None:
    if ".." in option.value.split("/") or not option.value:
        raise _UnfitError("it is not a whole path")
    job.fields["working_dir"] = option.value


def _image(job: _Job, option: Option) -> None:
    value = option.value.removeprefix("docker://")
    if value.startswith(("/", ".")) or value.endswith((".sif", ".sqsh")):
        job.notes.lost(
            option.line,
            f"`{option.value}` is a file, and containers are made of images in a registry.",
            "Push it to one, and add `image:` with its name there.",
        )
        return
    # Enroot separates the registry by `#`.
    job.fields["image"] = value.replace("#", "/", 1)


def _container_mounts(job: _Job, option: Option) -> None:
    job.fields["volumes"] = [":".join(part.split(":")[:2]) for part in option.value.split(",")]


def _tmp(job: _Job, option: Option) -> None:
    before = job.megabytes
    _memory("disk")(job, option)
    if job.megabytes != before:
        resources = job.fields.setdefault("resources", {})
        resources["disk"] = f"{_size(job.megabytes['disk'])}.."


def _account(job: _Job, option: Option) -> None:
    job.fields.setdefault("tags", {})["account"] = option.value
    job.notes.otherwise(
        option.line, f"The account `{option.value}` is a tag now, to find its runs by.",
        "What an account may use says `type: quota`.",
    )  # fmt: skip


def _hold(job: _Job, option: Option) -> None:
    job.fields["state"] = "stopped"


def _exclusive(job: _Job, option: Option) -> None:
    job.notes.lost(
        option.line,
        "Whether a host is shared is said by its fleet.",
        "Ask for a fleet with `sharing: whole`.",
    )


def _lost(detail: str, advice: str = "") -> Callable[[_Job, Option], None]:
    def act(job: _Job, option: Option) -> None:
        job.notes.lost(option.line, f"`--{option.name}` was left out: {detail}", advice)

    return act


def _needless(detail: str) -> Callable[[_Job, Option], None]:
    def act(job: _Job, option: Option) -> None:
        job.notes.otherwise(option.line, f"`--{option.name}` was left out: {detail}")

    return act


_LOGS = _needless("output is kept by itself; `fleetform logs NAME` shows it.")
_MAIL = _needless("who is told of what is said where fleetform runs, not by each run.")
_PLACE = _lost(
    "hosts are chosen by what they have.", "Say it by `fleets:`, `instances:` or `resources:`."
)
_BINDING = _lost("how processes are bound to a host's parts is for the commands to say.")
_CALL = _needless("it is about the call of sbatch, and not about the job.")

TABLE: Final[Mapping[str, Callable[[_Job, Option], None]]] = {
    "account": _account,
    "array": _array,
    "begin": _moment("begin"),
    "chdir": _chdir,
    "comment": _comment,
    "container": _image,
    "container-image": _image,
    "container-mounts": _container_mounts,
    "container-workdir": _chdir,
    "cpus-per-gpu": _amount("cpus_per_gpu"),
    "cpus-per-task": _amount("cpus_per_task"),
    "deadline": _moment("deadline"),
    "dependency": _dependency,
    "exclusive": _exclusive,
    "export": _export,
    "gpus": _gpu_option("gpus_in_all"),
    "gpus-per-node": _gpu_option("gpus"),
    "gpus-per-task": _gpu_option("gpus_per_task"),
    "gres": _gres,
    "hold": _hold,
    "image": _image,
    "job-name": _name,
    "mem": _memory("node"),
    "mem-per-cpu": _memory("cpu"),
    "mem-per-gpu": _memory("gpu"),
    "nodes": _nodes,
    "ntasks": _amount("tasks"),
    "ntasks-per-node": _amount("tasks_per_node"),
    "partition": _partition,
    "requeue": _requeue,
    "signal": _signal,
    "time": _time,
    "tmp": _tmp,
    **dict.fromkeys(("error", "input", "open-mode", "output"), _LOGS),
    **dict.fromkeys(("mail-type", "mail-user"), _MAIL),
    **dict.fromkeys(
        ("cluster-constraint", "clusters", "constraint", "contiguous", "exclude", "mincpus", "nodefile",
         "nodelist", "reservation", "switches"),
        _PLACE,
    ),
    **dict.fromkeys(
        ("core-spec", "cores-per-socket", "cpu-freq", "distribution", "extra-node-info", "gpu-bind",
         "gpu-freq", "hint", "mem-bind", "network", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-socket",
         "overcommit", "sockets-per-node", "thread-spec", "threads-per-core"),
        _BINDING,
    ),
    **dict.fromkeys(
        ("disable-stdout-job-summary", "get-user-env", "ignore-pbs", "immediate", "kill-on-invalid-dep",
         "parsable", "quiet", "test-only", "usage", "verbose", "wait", "wait-all-nodes"),
        _CALL,
    ),
    **dict.fromkeys(
        ("licenses", "bb", "bbf", "power", "reboot", "spread-job", "use-min-nodes", "time-min", "wckey"),
        _lost("nothing here is like it."),
    ),
    **dict.fromkeys(
        ("nice", "priority", "qos"),
        _lost("Slurm's numbers and names mean nothing here.", "Add `priority:` from 0 to 100, or declare a `type: queue` with a tier."),
    ),
    "no-kill": _lost("when a node is lost, the run is over on all of them."),
    "no-requeue": _needless("a run is tried once if its document does not say otherwise."),
    "oversubscribe": _lost("whether a host is shared is said by its fleet."),
    "propagate": _lost("limits of the shell that submits are not those of the run."),
}  # fmt: skip
"""What each option of sbatch is here, by its long name."""


# Amounts


def _settle_amounts(job: _Job) -> None:
    nodes = job.nodes or 1
    if nodes > 1:
        job.fields["nodes"] = nodes
    tasks = job.tasks_per_node or math.ceil(job.tasks / nodes)
    resources: dict[str, Any] = {}
    gpus = _gpus_per_node(job, nodes, tasks)
    cpus = job.cpus_per_gpu * gpus or (
        max(tasks, 1) * job.cpus_per_task or (tasks if tasks > 1 else 0)
    )
    if cpus:
        resources["cpu"] = f"{cpus}.."
    megabytes = (
        job.megabytes.get("node", 0)
        or job.megabytes.get("cpu", 0) * max(cpus, 1)
        or job.megabytes.get("gpu", 0) * max(gpus, 1)
    )
    if megabytes:
        resources["memory"] = f"{_size(megabytes)}.."
    resources |= job.fields.pop("resources", {})
    if gpus:
        resources["gpu"] = _gpu_value(job, gpus)
    if resources:
        job.fields["resources"] = resources
    if tasks > 1:
        job.notes.lost(
            job.amounts_line,
            f"Slurm would start {tasks} processes on each node by `srun`. Here a node has what all of"
            " them need, and the commands run once on each.",
            "Start them in the commands: `torchrun --nproc-per-node`, `mpirun -n`.",
        )


def _gpus_per_node(job: _Job, nodes: int, tasks: int) -> int:
    if job.gpus:
        return job.gpus
    if job.gpus_per_task:
        return job.gpus_per_task * max(tasks, 1)
    if job.gpus_in_all % nodes:
        job.notes.lost(
            job.amounts_line,
            f"{job.gpus_in_all} GPUs on {nodes} nodes are not the same number on each, and here they are:"
            f" each has {math.ceil(job.gpus_in_all / nodes)}.",
        )
    return math.ceil(job.gpus_in_all / nodes)


def _gpu_value(job: _Job, count: int) -> Any:
    """Return `2`, `A100:2`, `A100:80GB:2`, or the mapping for a slice."""
    if not job.gpu_type:
        # So many on one node are taken for a slip where the number stands alone.
        return count if count <= 16 else f"{count}..{count}"
    words = re.split(r"[_-]", job.gpu_type)
    name = next(
        (word.upper() for word in words if re.fullmatch(r"[A-Za-z]{1,4}\d+[A-Za-z]*", word)), ""
    )
    memory = next(
        (word.upper() for word in words if re.fullmatch(r"\d+gb", word, re.IGNORECASE)), ""
    )
    part = next((word for word in words if re.fullmatch(r"[1-9]g\.\d+gb", word)), "")
    if part:
        return {**({"name": name} if name else {}), "slice": part, "count": count}
    amount = str(count) if count <= 16 else f"{count}..{count}"
    value = ":".join(part for part in (name or job.gpu_type, memory, amount) if part)
    try:
        parse_gpu(value)
    except ValueError:
        value = ""
    if value and name.lower() in {job.gpu_type.lower(), ""}:
        return value
    job.notes.otherwise(
        job.amounts_line,
        f"The cluster calls its GPUs `{job.gpu_type}`: the task asks for `{value or count}`.",
        "See that it is the model you mean.",
    )
    return value or count


def _size(megabytes: int) -> str:
    return f"{megabytes // 1024}GB" if megabytes % 1024 == 0 else f"{megabytes}MB"


# The script


def _set_commands(job: _Job, script: Script, file: str) -> str:
    """Set what is run; returns the script's name if it has to lie beside the document."""
    shell = _SHELLS.match(script.interpreter)
    if script.interpreter and shell is None:
        job.fields["files"] = [file]
        job.fields["commands"] = [f"{script.interpreter} {file}"]
        job.notes.otherwise(
            1, f"`{script.interpreter}` runs it, so the script goes along as a file."
        )
        return file
    body = _escaped(script.body)
    if shell is not None:
        _set_shell(job, shell[1])
        body = _with_flags(job, script.interpreter[shell.end() :].split(), body)
    job.fields["commands"] = [f"{body}\n" if "\n" in body else body or "true"]
    _tell_about(job, script.body)
    return ""


def _set_shell(job: _Job, shell: str) -> None:
    if shell == "bash":
        job.fields["shell"] = "bash"
    elif shell != "sh":
        job.fields["shell"] = f"/bin/{shell}"


def _escaped(body: str) -> str:
    """Return the script with `${{` as text: in a document it begins an expression."""
    return body.replace("${{", "$${{")


def _with_flags(job: _Job, flags: list[str], body: str) -> str:
    for flag in flags:
        if _SET_FLAGS.fullmatch(flag):
            body = f"set {flag}\n{body}"
        else:
            job.notes.lost(1, f"The script's shell had `{flag}`, which commands have not.")
    return body


def _tell_about(job: _Job, body: str) -> None:
    notes = job.notes
    found = _SLURM_WORDS.search(body)
    if found is not None:
        job.fields["compat"] = "slurm"
        notes.otherwise(
            _line_of(notes, found[0]),
            f"The script uses `{found[0]}`: with `compat: slurm` it finds Slurm's variables, and"
            " stand-ins for `srun` and `scontrol`.",
        )
    if "nodes" in job.fields:
        started = _STARTS.search(body)
        notes.lost(
            _line_of(notes, started[0]) if started else 1,
            "In Slurm the script runs on the first node, and `srun` starts what is behind it on all. Here"
            " the commands run on every node.",
            'What only the first is to do goes into `if [ "$FLEETFORM_NODE_RANK" = 0 ]; then … fi`.',
        )
    submitted = _SUBMITS.search(body)
    if submitted is not None:
        notes.lost(
            _line_of(notes, submitted[1]),
            f"The script submits other jobs by `{submitted[1]}`, which is not there.",
            "Convert these scripts too, and say with `depends_on:` what waits for what.",
        )
    modules = _MODULES.search(body)
    if modules is not None:
        notes.otherwise(
            _line_of(notes, modules[0].strip()),
            "Environment modules are the cluster's: where a host has none, this line fails.",
            "Install what it loads on the hosts, or choose an `image:` that has it.",
        )


def _line_of(notes: Notes, text: str) -> int:
    return next(
        (
            number
            for number, line in enumerate(notes.lines, start=1)
            if text in line and not line.startswith("#")
        ),
        1,
    )
