"""
The script as the task's command: its text as it is, because a shell's meaning is not guessed.

`needs` reports what it takes to run as before.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

from fleetform.spec.convert.slurm.job import Job
from fleetform.spec.convert.slurm.sbatch import Script

__all__ = ["is_login", "is_shell", "set_commands"]

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
