"""
Options of `srun` that its stand-in in a job refuses: reported before the run instead of in its output.

The agent has the table of options that it knows. Agents and documents share no code, so the names are here a
second time; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from fleetform.spec.convert.slurm.job import Job
from fleetform.spec.convert.slurm.local_files import Line

__all__ = ["FLAGS", "OPTIONS", "SHORT", "SHORT_FLAGS", "report_steps"]

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
