"""
Report what a script needs to run as it did in Slurm, each with its line: variables, commands, arguments, files.

Options of `srun` that its stand-in in a job refuses are reported before the run instead of in its
output. The agent has the table of options that it knows. Agents and documents share no code, so the
names are here a second time; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from fleetform.spec.convert.slurm.job import Job
from fleetform.spec.convert.slurm.local_files import LocalFiles
from fleetform.spec.convert.slurm.variables import Line
from fleetform.spec.findings import Level
from fleetform.spec.kinds.commands import SRUN_ADVICE, SRUN_ON_NODES

__all__ = [
    "FLAGS",
    "OPTIONS",
    "SHORT",
    "SHORT_FLAGS",
    "needs_srun",
    "report_files",
    "report_needs",
    "report_steps",
]


_VALUED = """
accel-bind account chdir comment constraint cores-per-socket cpu-bind cpu-freq cpu_bind cpus-per-gpu cpus-per-task
distribution error exclusive export gpus gpus-per-node gpus-per-task gres hint immediate job-name kill-on-bad-exit
mem mem-bind mem-per-cpu mem-per-gpu mem_bind mpi network nodelist nodes ntasks ntasks-per-core ntasks-per-node
ntasks-per-socket output partition qos sockets-per-node threads-per-core wait
"""
OPTIONS: Final = frozenset(_VALUED.split())
"""Options that may have a value."""

_ALONE = """
contiguous disable-status exact exclusive immediate kill-on-bad-exit label no-kill overcommit overlap oversubscribe
quiet unbuffered verbose whole
"""
FLAGS: Final = frozenset(_ALONE.split())
"""Options that may stand without a value."""

SHORT: Final = "ncNDoeGJApqwmCW"
SHORT_FLAGS: Final = "lOsuQvkXKI"

_CALL: Final = re.compile(r"(?<![\w./-])srun\s+(-.*)")


def report_steps(job: Job, lines: Sequence[Line]) -> None:
    """Report the first such option, and a step that wants another number of GPUs than the job has."""
    gpus = job.fields.get("resources", {}).get("gpu", 0)
    count = re.fullmatch(r"(?:.*:)?(\d+)", str(gpus))
    for number, text in _joined(lines):
        for called in _CALL.findall(text):
            for name, value in _options(called.split()):
                wanted = re.fullmatch(r"(?:.*:)?(\d+)", value)
                is_gpus = name in {"gres", "gpus", "gpus-per-node"} and count and wanted
                if name not in OPTIONS | FLAGS:
                    job.notes.kept(
                        number,
                        f"The script calls `srun` with `--{name}`, which `srun` in a job does not know.",
                        "Leave the option out, or start the program without `srun`.",
                    )
                    return
                if is_gpus and wanted and count and wanted[1] not in {"0", count[1]}:
                    job.notes.kept(
                        number,
                        f"The script calls `srun` with `--{name}={value}`, and the job has {count[1]} GPUs: `srun`"
                        " in a job refuses a part of the GPUs.",
                        "Set CUDA_VISIBLE_DEVICES for the program, or use `--gpus-per-task`.",
                    )
                    return


def _joined(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines with those that continue them."""
    first, parts = 0, ""
    for number, text in lines:
        first = first if parts else number
        parts += text.rstrip().removesuffix("\\") + " "
        if not text.rstrip().endswith("\\"):
            yield Line(first, parts)
            parts = ""
    if parts:
        yield Line(first, parts)


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the options before the program, by their long names as far as they are known."""
    rest = [word.strip("\"'") for word in words]
    while rest and rest[0].startswith("-") and rest[0] not in {"-", "--"}:
        word = rest.pop(0)
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not equals and name in OPTIONS - FLAGS:
                value = rest.pop(0) if rest else ""
            yield name, value
            continue
        for place, letter in enumerate(word[1:], start=2):
            if letter in SHORT:
                value = word[place:] or (rest.pop(0) if rest else "")
                yield ("gpus" if letter == "G" else "ntasks"), value
                break
            if letter not in SHORT_FLAGS and not letter.isdigit():
                yield letter, ""
                break


_SLURM_WORDS: Final = re.compile(r"\bSLURM_[A-Z_]+|\bSLURM_JOBID\b|\b(?:srun|scontrol|sbcast)\b")
_COMMANDS: Final = re.compile(r"\b(?:srun|scontrol|sbcast)\b")
_TMPDIR: Final = re.compile(r"\bSLURM_TMPDIR\b")
_MEM_PER_CPU: Final = re.compile(r"\bSLURM_MEM_PER_CPU\b")
_SUBMIT_DIR: Final = re.compile(r"\bSLURM_SUBMIT_DIR\b")
_MPI: Final = re.compile(r"\b(?:mpirun|mpiexec)\b(?!.*\s-(?:np?|c)\b)")
_MPI_CALL: Final = re.compile(r"\b(?:mpirun|mpiexec)\b")
_SRUN: Final = re.compile(r"(?<![\w./-])srun(?![\w./-])")
_SUBMITS: Final = re.compile(r"(?:^|[;&|(`]|\bdo|\bthen)\s*(sbatch|salloc)\b")
_MODULES: Final = re.compile(r"^\s*(?:module|ml)\s+\S")
_CONDA: Final = re.compile(
    r"^\s*(?:(?:conda|mamba|micromamba|source)\s+activate\b|\S*conda\s+run\b)"
)
_CONTAINER: Final = re.compile(
    r"\b(singularity|apptainer|docker|podman|enroot)\s+(?:exec|run|shell)\b"
)
# Not `"$@"` and not `${1:-default}`: these need none.
_ARGUMENT: Final = re.compile(
    r"\$(?:([1-9])|\{([1-9])(?:\}|:?\?)|(\#)\"?\s*(?:-(?:ne|lt|le|eq)\b|==|<))"
)
_LOOP: Final = re.compile(r"\b(?:while|until)\b.*(?:\$#|\$\{#|\$1|\$\{1|getopts)")
_DO: Final = re.compile(r"^\s*(?:for|while|until|select)\b")
_DONE: Final = re.compile(r"(?:^|[\s;])done\b")
_CONTROLS: Final = re.compile(
    r"(?:^|[;&|(`'\"]|\bdo|\bthen)\s*(?:(scontrol\s+(?!show\b)[a-z]+)|(squeue|scancel|sacct|sinfo|sstat)\b)"
)
_LOG_FILE: Final = re.compile(r"slurm-[^\s/]*\.out|logs?/[^\s]*\$\{?SLURM_(?:ARRAY_)?JOB_?ID")
_WRITES: Final = re.compile(
    r"(?<![<>&\d])>{1,2}\s*(?![&>/])(\"?[\w.$]\S*)|^\s*mkdir\s+(?:-\S+\s+)*(?![/\"$-])(\S+)"
)
_FUNCTION: Final = re.compile(r"^\s*(?:function\s+\w+|[\w-]+\s*\(\))")


def needs_srun(lines: Sequence[Line]) -> bool:
    """Tell whether the script uses commands that only a job with `compat: slurm` has."""
    return _first(lines, _COMMANDS) is not None


def report_needs(job: Job, lines: Sequence[Line], *, has_arguments: bool) -> None:
    """Report them, and set `compat: slurm` for a script that needs Slurm's variables or commands."""
    _report_slurm(job, lines)
    _report_nodes(job, lines)
    notes = job.notes
    if (found := _first(lines, _SUBMITS)) is not None:
        notes.kept(
            found[0],
            f"The script submits other jobs by `{found[1]}`, which a run cannot do.",
            "Convert these scripts too, and state with `depends_on:` the order of the runs.",
        )
    if (found := _first(lines, _MODULES)) is not None:
        notes.kept(
            found[0],
            "Environment modules belong to the host. On a host without them, this line fails.",
            "Install the loaded software on the hosts.",
            level=Level.NOTE,
        )
    if (found := _first(lines, _CONDA)) is not None:
        notes.kept(found[0], "The host needs this conda environment.", level=Level.NOTE)
    if (found := _first(lines, _CONTAINER)) is not None:
        notes.kept(found[0], f"The host needs `{found[1]}` and the image.", level=Level.NOTE)
    if (found := _first(lines, _CONTROLS)) is not None:
        requeues = found[1].endswith("requeue")
        notes.kept(
            found[0],
            f"The script calls `{found[1]}`: in a job of fleetform, this command fails.",
            "To run again after the time limit, add `retry: {on: [time-limit, preemption]}`."
            if requeues
            else "Leave the line out: `fleetform ps` lists runs, and `fleetform stop` ends them.",
        )
    report_steps(job, lines)
    if not has_arguments and (found := _first(_own_arguments(lines), _ARGUMENT)) is not None:
        notes.kept(
            found[0],
            f"The script reads its argument `${found[1]}`, and it was given none.",
            "Name the arguments behind the script: `-- ARG…`.",
        )
    if job.output_files and (found := _first(lines, _LOG_FILE)) is not None:
        notes.kept(
            found[0],
            f"The script names `{found[1]}`, where Slurm writes its output. That file does not exist here.",
            "`fleetform logs NAME` shows the output.",
        )
    if "working_dir" not in job.fields and (found := _first(lines, _WRITES)) is not None:
        notes.kept(
            found[0],
            "The script writes a file beside itself. A job's directory is deleted after the job.",
            "Write results to a volume, or to an absolute path of the host.",
        )


def report_files(job: Job, files: LocalFiles) -> None:
    for number, path in files.missing:
        job.notes.kept(
            number,
            f"The script reads `{path}`, and there is no such file beside it.",
            "Put it beside the script, and run the same command again.",
        )
    for number, path in files.large:
        job.notes.lost(
            number,
            f"`{path}` is too large to be a file of a task, so it was left out.",
            "Put it into a volume.",
        )
    if files.elsewhere:
        number, path = files.elsewhere[0]
        more = f" and {len(files.elsewhere) - 1} more" if len(files.elsewhere) > 1 else ""
        job.notes.kept(
            number,
            f"`{path}`{more} is not on this machine. The hosts need it under the same path.",
            level=Level.NOTE,
        )


def _report_slurm(job: Job, lines: Sequence[Line]) -> None:
    found = _first(lines, _SLURM_WORDS)
    if found is None and job.env.get("SLURM_NTASKS", "1") != "1":
        found = _first(lines, _MPI)
    if found is None:
        for name in (
            "SLURM_NTASKS",
            "SLURM_NTASKS_PER_NODE",
            "SLURM_CPUS_PER_TASK",
            "SLURM_MEM_PER_CPU",
        ):
            job.env.pop(name, None)
        return
    if _first(lines, _MEM_PER_CPU) is None:
        job.env.pop("SLURM_MEM_PER_CPU", None)
    if _first(lines, _TMPDIR) is not None:
        # Clusters set it to a folder of the job; `TMPDIR` is that folder here.
        job.fields["commands"].insert(0, 'export SLURM_TMPDIR="$TMPDIR"')
    if "working_dir" in job.fields and (submit := _first(lines, _SUBMIT_DIR)) is not None:
        job.notes.kept(
            submit[0],
            f"The script uses `{submit[1]}` and `--chdir`. In Slurm these are two folders; here both are"
            f" `{job.fields['working_dir']}`.",
            "Write the folder that is meant in its place.",
        )
    job.fields["compat"] = "slurm"
    job.notes.kept(
        found[0],
        f"The script uses `{found[1]}`: with `compat: slurm` it finds Slurm's variables, and stand-ins for"
        " `srun` and `scontrol`.",
        level=Level.NOTE,
    )


def _report_nodes(job: Job, lines: Sequence[Line]) -> None:
    if "nodes" not in job.fields:
        return
    if (step := _first(lines, _SRUN)) is not None:
        job.notes.kept(step[0], SRUN_ON_NODES, SRUN_ADVICE)
        return
    started = _first(lines, _MPI_CALL)
    job.notes.kept(
        started[0] if started else job.amounts_line,
        "In Slurm the script runs on the first node only. Here the commands run on every node.",
        'Put commands for the first node only into `if [ "$FLEETFORM_NODE_RANK" = 0 ]; then … fi`.',
    )


def _first(lines: Sequence[Line], pattern: re.Pattern[str]) -> tuple[int, str] | None:
    """Return the first line that matches, and the matched group or text."""
    for number, text in lines:
        if found := pattern.search(text):
            return number, next((one for one in found.groups() if one), found[0]).strip()
    return None


def _own_arguments(lines: Sequence[Line]) -> list[Line]:
    """Return the lines whose `$1` must be given: not a function's, not awk's, and not in a loop over options."""
    kept = []
    is_inside = False
    loops = 0
    for number, written in lines:
        text = re.sub(r"'[^']*'", "", written)
        is_inside = is_inside or _FUNCTION.match(text) is not None
        if _LOOP.search(text) or (loops and _DO.match(text)):
            loops += 1
        if not is_inside and not loops:
            kept.append(Line(number, text))
        if loops and _DONE.search(text):
            loops -= 1
        if text.strip() == "}" or (is_inside and text.rstrip().endswith("}") and "{" in text):
            is_inside = False
    return kept
