"""
The script as the task's command: its text as it is, because a shell's meaning is not guessed.

What it needs to run as before is told: Slurm's variables, its first node, other jobs it submits.
"""

from __future__ import annotations

import re
from typing import Final

from fleetform.spec.convert.result import Notes
from fleetform.spec.convert.slurm.job import Job
from fleetform.spec.convert.slurm.sbatch import Script

__all__ = ["set_commands"]

_SLURM_WORDS: Final = re.compile(r"\bSLURM_[A-Z_]+|\b(?:srun|scontrol|sbcast)\b")
_SUBMITS: Final = re.compile(r"^[ \t]*(?:[A-Za-z_]\w*=\$\(\s*)?(sbatch|salloc)\b", re.MULTILINE)
_STARTS: Final = re.compile(r"\bsrun\b")
_MODULES: Final = re.compile(r"^[ \t]*(?:module|ml)\s+\S", re.MULTILINE)
_SHELLS: Final = re.compile(r"(?:/\S*/)?(?:env\s+)?(bash|sh|zsh|dash|ksh)(?=\s|$)")
# Flags of a shell that `set` knows too.
_SET_FLAGS: Final = re.compile(r"-([efuvx]+)")


def set_commands(job: Job, script: Script, file: str) -> str:
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


def _set_shell(job: Job, shell: str) -> None:
    if shell == "bash":
        job.fields["shell"] = "bash"
    elif shell != "sh":
        job.fields["shell"] = f"/bin/{shell}"


def _escaped(body: str) -> str:
    """Return the script with `${{` as text: in a document it begins an expression."""
    # A shell passes over NUL bytes, and no command can have one.
    return body.replace("\0", "").replace("${{", "$${{")


def _with_flags(job: Job, flags: list[str], body: str) -> str:
    for flag in flags:
        if _SET_FLAGS.fullmatch(flag):
            body = f"set {flag}\n{body}"
        else:
            job.notes.lost(1, f"The script's shell had `{flag}`, which commands have not.")
    return body


def _tell_about(job: Job, body: str) -> None:
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
