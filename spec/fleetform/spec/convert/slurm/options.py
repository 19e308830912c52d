"""
What each option of sbatch is here: a field, an amount that is counted later, or a finding.

`TABLE` has all of them. An option that is neither there nor told would be dropped in silence, so
one that is not in the table is told as well.
"""

from __future__ import annotations

import math
import posixpath
import re
import signal
from collections.abc import Callable, Mapping
from typing import Any, Final

from fleetform.spec.convert.conversion import derive_name
from fleetform.spec.convert.slurm.job import Job, UnfitError, size_text
from fleetform.spec.convert.slurm.sbatch import Option
from fleetform.spec.kinds.run_policies import WHEN_OF_SLURM
from fleetform.spec.kinds.task import parse_array
from fleetform.spec.names import name_problem
from fleetform.spec.quantities.duration import OFF, format_duration

__all__ = ["TABLE"]


def _name(job: Job, option: Option) -> None:
    name = job.fields["name"]
    if name != option.value:
        why = name_problem(option.value) or "The name is already used."
        job.notes.otherwise(
            option.line, f"`{option.value}` cannot be the name. {why} It was renamed `{name}`."
        )


def _comment(job: Job, option: Option) -> None:
    job.fields["description"] = option.value


def _nodes(job: Job, option: Option) -> None:
    least, _, most = option.value.partition("-")
    job.nodes = _count(least)
    if most and most != least:
        job.notes.lost(
            option.line,
            f"A task has a fixed number of nodes. It has {job.nodes}, the least that the script takes.",
        )


def _amount(name: str) -> Callable[[Job, Option], None]:
    def act(job: Job, option: Option) -> None:
        setattr(job, name, _count(option.value))
        job.amounts_line = option.line

    return act


def _count(text: str, *, least: int = 1) -> int:
    if not re.fullmatch(r"\d{1,7}", text, re.ASCII) or int(text) < least:
        raise UnfitError(f"it is not a number from {least}")
    return int(text)


def _gres(job: Job, option: Option) -> None:
    for wanted in option.value.removeprefix("gres/").split(","):
        kind, _, rest = wanted.partition(":")
        if kind.removeprefix("gres/") != "gpu":
            job.notes.lost(
                option.line,
                f"`{kind}` is unknown and was left out.",
                "Choose the fleets that have it with `fleets:`.",
            )
        else:
            job.gpus = _gpus(job, rest)
            job.amounts_line = option.line


def _gpu_option(name: str) -> Callable[[Job, Option], None]:
    def act(job: Job, option: Option) -> None:
        setattr(job, name, _gpus(job, option.value))
        job.amounts_line = option.line

    return act


def _gpus(job: Job, text: str) -> int:
    """Read `2`, `a100`, `a100:2`; keep the type and return the number."""
    kind, colon, count = text.partition("(")[0].rpartition(":")
    if not colon and not re.fullmatch(r"\d*", count):
        kind, count = count, ""
    if kind:
        job.gpu_type = kind
    return _count(count, least=0) if count else 1


def _memory(counted_for: str) -> Callable[[Job, Option], None]:
    def act(job: Job, option: Option) -> None:
        match = re.fullmatch(r"(\d{1,12})([KMGT]?)B?", option.value, re.ASCII | re.IGNORECASE)
        if match is None:
            raise UnfitError("it is not a size, such as `32G`")
        # sbatch(1): megabytes where no unit is said, all of them in powers of 1024.
        factor = {"K": 1 / 1024, "M": 1, "": 1, "G": 1024, "T": 1024**2}[match[2].upper()]
        megabytes = math.ceil(int(match[1]) * factor)
        if megabytes == 0:
            job.notes.lost(
                option.line,
                "`--mem=0` asks for all memory of the host, but a task must set the memory that it requires.",
                "Add `resources: {memory: 64GB..}` with the memory that it requires.",
            )
            return
        job.megabytes = {**job.megabytes, counted_for: megabytes}

    return act


def _time(job: Job, option: Option) -> None:
    seconds = _seconds(option.value)
    job.fields["max_duration"] = "off" if seconds in {0, OFF} else format_duration(seconds)


def _seconds(text: str) -> int:
    """Read `minutes`, `minutes:seconds`, `hours:minutes:seconds`, `days-hours[:minutes[:seconds]]`."""
    if text.upper() in {"INFINITE", "UNLIMITED", "-1"}:
        return OFF
    match = re.fullmatch(r"(?:(\d{1,5})-)?(\d{1,7})(?::(\d{1,4}))?(?::(\d{1,4}))?", text, re.ASCII)
    if match is None:
        raise UnfitError("it is not a time, such as `2:00:00` or `1-12`")
    days, *clock = match.groups()
    numbers = [int(part) for part in clock if part is not None]
    if days is not None:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
        return int(days) * 86_400 + hours * 3_600 + minutes * 60 + seconds
    if len(numbers) == 3:
        return numbers[0] * 3_600 + numbers[1] * 60 + numbers[2]
    minutes, seconds = [*numbers, 0][:2]
    return minutes * 60 + seconds


def _array(job: Job, option: Option) -> None:
    # sbatch takes brackets around the indices, as squeue prints them.
    indices = option.value.replace("[", "").replace("]", "")
    try:
        parse_array(indices)
    except ValueError as exc:
        raise UnfitError("its indices cannot be read") from exc
    job.fields["array"] = indices


def _partition(job: Job, option: Option) -> None:
    """Take the queue or the fleets that partitions are called after, or that people map them to."""
    places = job.partitions
    names = [one.strip() for one in option.value.split(",") if one.strip()]
    wanted = [places.renamed.get(one, derive_name(one, otherwise="queue")) for one in names]
    queue = next((one for one in wanted if one in places.queues), "")
    fleets = [one for one in dict.fromkeys(wanted) if one in places.fleets]
    if queue:
        job.fields["queue"] = queue
        if len(names) > 1:
            job.notes.otherwise(option.line, f"A task waits in one queue: it is `{queue}`.")
    elif fleets:
        job.fields["fleets"] = fleets
    else:
        job.notes.left_out(
            option.line,
            f"The environment has no queue and no fleet `{', '.join(wanted)}`, so the task runs on any fleet.",
            f"To choose one, use `{places.option.format(name=names[0] if names else 'NAME')}`.",
        )


def _dependency(job: Job, option: Option) -> None:
    runs: list[dict[str, Any]] = []
    for part in re.split(r"[,?]", option.value):
        kind, _, jobs = part.partition(":")
        if kind == "singleton":
            job.fields["concurrency"] = {"limit": 1}
            continue
        if kind not in WHEN_OF_SLURM:
            _report_unresolved(
                job,
                option,
                f"`{kind}` is not a known kind of dependency.",
                f"The kinds are {', '.join(f'`{one}`' for one in WHEN_OF_SLURM)} and `singleton`.",
            )
            continue
        for name in jobs.split(":"):
            run = derive_name(name.partition("+")[0])
            if run not in job.known or name.isdigit():
                why = (
                    f"`{name}` is a job number, but documents name the task to wait for."
                    if name.partition("+")[0].isdigit()
                    else f"No task to wait for is called `{run}`."
                )
                advice = f"Add `depends_on: [{{run: NAME, when: {WHEN_OF_SLURM[kind]}}}]`."
                _report_unresolved(job, option, why, advice)
            else:
                each = {"each": True} if kind == "aftercorr" else {}
                runs.append({"run": run, "when": WHEN_OF_SLURM[kind], **each})
    if runs:
        is_any = "?" in option.value
        job.fields["depends_on"] = {"when": "any", "runs": runs} if is_any else runs


def _report_unresolved(job: Job, option: Option, why: str, advice: str) -> None:
    job.notes.lost(option.line, why, advice)
    job.unresolved.append(job.notes.findings[-1])


def _requeue(job: Job, option: Option) -> None:
    job.fields["retry"] = {"on": ["node-failure", "preemption"]}


def _signal(job: Job, option: Option) -> None:
    match = re.fullmatch(r"(?:[BR]+:)?([A-Za-z0-9]+)(?:@(\d{1,6}))?", option.value, re.ASCII)
    if match is None:
        raise UnfitError("it is not a signal, such as `USR1@300`")
    name = match[1].upper().removeprefix("SIG")
    if name.isdigit():
        try:
            name = signal.Signals(int(name)).name.removeprefix("SIG")
        except ValueError:
            raise UnfitError("there is no signal of that number") from None
    # sbatch(1): sixty seconds where no time is said.
    job.fields["checkpoint"] = {"signal": name, "lead": format_duration(int(match[2] or 60))}
    job.notes.otherwise(
        option.line,
        "`checkpoint` sends the signal to all processes of the job that catch it, not to steps or the"
        " shell alone.",
    )


def _moment(name: str) -> Callable[[Job, Option], None]:
    def act(job: Job, option: Option) -> None:
        is_whole = re.fullmatch(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?)?", option.value)
        written = (
            f"{option.value}{'' if 'T' in option.value else 'T00:00'}"
            if is_whole
            else "2026-12-24T18:00"
        )
        job.notes.lost(
            option.line,
            f"`{option.value}` is a time in the time zone of the cluster. Documents write a time with its zone.",
            f"Add `{name}: {written}Z`, with the right offset in place of the `Z`.",
        )

    return act


def _export(job: Job, option: Option) -> None:
    for part in option.value.split(","):
        name, equals, value = part.partition("=")
        if equals:
            job.env[name] = value
        elif name == "ALL":
            job.notes.left_out(
                option.line,
                "A run starts with the variables of its document and no others: `ALL` exports nothing.",
                f"For each variable that the script needs: {job.variable_advice.format(name='NAME')}",
            )
        elif name not in {"", "NIL", "NONE"}:
            job.notes.lost(
                option.line,
                f"`{name}` was left out: the script does not set its value.",
                job.variable_advice.format(name=name),
            )


def _chdir(job: Job, option: Option) -> None:
    if ".." in option.value.split("/") or not option.value:
        raise UnfitError("it is not a whole path")
    if option.value.startswith(("/", "~", "$")):
        job.fields["working_dir"] = option.value
    else:
        # sbatch(1): relative to the folder in which sbatch is called, where the files of the task are.
        job.folder = posixpath.normpath(option.value).removeprefix(".")


def _image(job: Job, option: Option) -> None:
    value = option.value.removeprefix("docker://")
    if value.startswith(("/", ".")) or value.endswith((".sif", ".sqsh")):
        job.notes.lost(
            option.line,
            f"`{option.value}` is a file, and containers need an image in a registry.",
            "Push it to a registry, and add `image:` with its name there.",
        )
        return
    # Enroot separates the registry by `#`.
    job.fields["image"] = value.replace("#", "/", 1)


def _container_mounts(job: Job, option: Option) -> None:
    # A path alone is mounted under the same path.
    parts = [part.split(":")[:2] for part in option.value.split(",")]
    job.fields["volumes"] = [
        f"{source}:{target[0] if target else source}" for source, *target in parts
    ]


def _tmp(job: Job, option: Option) -> None:
    before = job.megabytes
    _memory("disk")(job, option)
    if job.megabytes != before:
        resources = job.fields.setdefault("resources", {})
        resources["disk"] = f"{size_text(job.megabytes['disk'])}.."


def _account(job: Job, option: Option) -> None:
    job.fields.setdefault("tags", {})["account"] = option.value
    job.notes.otherwise(
        option.line, f"The account `{option.value}` was converted to a tag, by which its runs can be found.",
        "To limit an account, declare a `type: quota`.",
    )  # fmt: skip


def _hold(job: Job, option: Option) -> None:
    job.fields["state"] = "stopped"


def _exclusive(job: Job, option: Option) -> None:
    job.notes.lost(
        option.line,
        "The fleet decides whether its hosts are shared.",
        "Name a fleet with `sharing: whole`.",
    )


def _lost(detail: str, advice: str = "") -> Callable[[Job, Option], None]:
    def act(job: Job, option: Option) -> None:
        job.notes.lost(option.line, f"`--{option.name}` was left out: {detail}", advice)

    return act


def _needless(detail: str) -> Callable[[Job, Option], None]:
    def act(job: Job, option: Option) -> None:
        job.notes.left_out(option.line, f"`--{option.name}` was left out: {detail}")

    return act


def _output(job: Job, option: Option) -> None:
    job.output_files.append(option.value)
    job.notes.left_out(
        option.line,
        f"`--{option.name}` was left out: fleetform keeps the output of each element of an array separately;"
        " `fleetform logs NAME` shows it.",
    )


def _input(job: Job, option: Option) -> None:
    job.input_file = option.value


def _wrap(job: Job, option: Option) -> None:
    job.command = option.value


def _constraint(job: Job, option: Option) -> None:
    job.constraint, job.constraint_line = option.value.strip("[]()"), option.line


_LOGS = _needless("fleetform keeps the output; `fleetform logs NAME` shows it.")
_MAIL = _needless("a task sends no mail; `fleetform ps` shows how runs ended.")
_PLACE = _lost(
    "hosts are chosen by their resources.", "Use `fleets:`, `instances:` or `resources:` instead."
)
_BINDING = _lost("the commands must bind processes to CPUs and GPUs themselves.")
_CONTAINER = _lost(
    "fleetform starts the container itself.", "Check that the image has what the script needs."
)
_CALL = _needless("it concerns the call of sbatch, not the job.")

TABLE: Final[Mapping[str, Callable[[Job, Option], None]]] = {
    "account": _account,
    "array": _array,
    "begin": _moment("begin"),
    "chdir": _chdir,
    "comment": _comment,
    "constraint": _constraint,
    "container": _image,
    "container-image": _image,
    "container-mounts": _container_mounts,
    "container-workdir": _chdir,
    "cpus-per-gpu": _amount("cpus_per_gpu"),
    "cpus-per-task": _amount("cpus_per_task"),
    "deadline": _moment("deadline"),
    "dependency": _dependency,
    "error": _output,
    "exclusive": _exclusive,
    "export": _export,
    "gpus": _gpu_option("gpus_in_all"),
    "gpus-per-node": _gpu_option("gpus"),
    "gpus-per-task": _gpu_option("gpus_per_task"),
    "gres": _gres,
    "hold": _hold,
    "image": _image,
    "input": _input,
    "job-name": _name,
    "mem": _memory("node"),
    "mem-per-cpu": _memory("cpu"),
    "mem-per-gpu": _memory("gpu"),
    "mincpus": _amount("cpus_least"),
    "nodes": _nodes,
    "ntasks": _amount("tasks"),
    "ntasks-per-gpu": _amount("tasks_per_gpu"),
    "ntasks-per-node": _amount("tasks_per_node"),
    "output": _output,
    "partition": _partition,
    "requeue": _requeue,
    "signal": _signal,
    "time": _time,
    "tmp": _tmp,
    "wrap": _wrap,
    "open-mode": _LOGS,
    **dict.fromkeys(("mail-type", "mail-user"), _MAIL),
    **dict.fromkeys(
        ("container-entrypoint", "container-env", "container-mount-home", "container-name", "container-readonly",
         "container-remap-root", "container-save", "container-writable", "no-container-entrypoint",
         "no-container-mount-home", "no-container-remap-root"),
        _CONTAINER,
    ),
    **dict.fromkeys(
        ("cluster-constraint", "clusters", "contiguous", "exclude", "nodefile", "nodelist", "prefer",
         "reservation", "segment", "switches"),
        _PLACE,
    ),
    **dict.fromkeys(
        ("core-spec", "cores-per-socket", "cpu-freq", "distribution", "extra-node-info", "gpu-bind",
         "cpu-bind", "gpu-freq", "gpus-per-socket", "gres-flags", "hint", "mem-bind", "network",
         "ntasks-per-core", "ntasks-per-socket", "overcommit", "sockets-per-node", "thread-spec",
         "threads-per-core", "tres-bind"),
        _BINDING,
    ),
    **dict.fromkeys(
        ("delay-boot", "disable-stdout-job-summary", "get-user-env", "ignore-pbs", "immediate",
         "kill-on-invalid-dep", "parsable", "quiet", "test-only", "usage", "verbose", "wait",
         "wait-all-nodes"),
        _CALL,
    ),
    **dict.fromkeys(
        ("acctg-freq", "batch", "bb", "bbf", "container-id", "export-file", "extra", "gid", "licenses",
         "mcs-label", "power", "profile", "reboot", "resv-ports", "spread-job", "time-min", "tres-per-task",
         "uid", "use-min-nodes", "wckey"),
        _lost("fleetform has no equivalent."),
    ),
    **dict.fromkeys(
        ("nice", "priority", "qos"),
        _lost("Slurm's numbers and names do not apply.", "If it matters, add `priority:` from 0 to 100, or declare a `type: queue` with a tier."),
    ),
    "no-kill": _lost("when a node is lost, the run ends on all nodes."),
    "no-requeue": _needless("a run has one attempt unless its document sets `retry`."),
    "oversubscribe": _lost("the fleet decides whether its hosts are shared."),
    "propagate": _lost("limits of the submitting shell do not apply to the run."),
}  # fmt: skip
"""What each option of sbatch is here, by its long name."""
