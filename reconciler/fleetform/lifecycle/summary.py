"""How a job ended, in a phrase for people: `exit code 3 on rank 1`."""

from __future__ import annotations

from fleetform.agents.protocol.states import Cause
from fleetform.model import figures
from fleetform.model.run import Job, Template

_SIGNALS = {
    1: "HUP",
    2: "INT",
    3: "QUIT",
    4: "ILL",
    6: "ABRT",
    7: "BUS",
    8: "FPE",
    9: "KILL",
    10: "USR1",
    11: "SEGV",
    12: "USR2",
    13: "PIPE",
    14: "ALRM",
    15: "TERM",
    24: "XCPU",
    25: "XFSZ",
}
"""Numbers of Linux on x86-64 and arm64, signal(7): the host's, whatever runs this."""

_SHELL_CODES = {126: "not executable", 127: "command not found"}
"""What a POSIX shell means by them (XCU 2.8.2); a program may mean something else."""


def exit_summary(job: Job, template: Template) -> str:
    """Say how a finished job ended; names its rank where there are several."""
    phrase = _phrase(job, template)
    return f"{phrase} on rank {job.key.rank}" if template.nodes > 1 else phrase


def _phrase(job: Job, template: Template) -> str:
    match job.cause:
        case Cause.EXITED:
            hint = _SHELL_CODES.get(job.exit_code or 0, "")
            return f"exit code {job.exit_code}" + (f" ({hint})" if hint else "")
        case Cause.SIGNAL:
            name = _SIGNALS.get(job.signal or 0, "")
            return f"killed by signal {job.signal}" + (f" ({name})" if name else "")
        case Cause.OOM:
            return _out_of_memory(job)
        case Cause.MAX_DURATION:
            seconds = template.max_duration_seconds
            limit = "" if seconds is None else f" of {figures.span(seconds * 1000)}"
            return f"ran longer than its max_duration{limit}"
        case Cause.STOPPED:
            return "stopped"
        case Cause.LOST:
            return _with_detail("lost", job.message)
        case Cause.PREPARE_FAILED:
            return _with_detail("could not be prepared", job.message)
        case _:
            return _with_detail("never started", job.message)


def _out_of_memory(job: Job) -> str:
    if job.peak_memory_bytes is None:
        return f"out of memory: more than {figures.size(job.memory_bytes)}"
    used, limit = figures.size(job.peak_memory_bytes), figures.size(job.memory_bytes)
    # The kernel kills at the limit, so that the highest reading is often the limit itself.
    return f"out of memory: {used} of {limit}"


def _with_detail(phrase: str, detail: str) -> str:
    return f"{phrase}: {detail}" if detail else phrase
