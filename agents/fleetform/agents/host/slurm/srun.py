"""
The stand-in for `srun` (srun(1)): starts a program as several tasks on this node, and waits for them.

It takes its signals out of the queue instead of catching them. The host sends a checkpoint signal to the
processes that catch it, and has to find the tasks and not their starter.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence

from fleetform.agents.host.slurm.options import OptionError, Options, parse

_FORWARDED = frozenset(
    {
        signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
        signal.SIGCONT, signal.SIGALRM,
    }
)  # fmt: skip

_KILL_SECONDS = 30.0
"""How long tasks may take to end after another one has failed: Slurm's default for KillWait."""

_JOB_UID = "FLEETFORM_JOB_UID"

_KEPT = re.compile(
    r"(SLURM|FLEETFORM|DSTACK)\w*_.*|PATH|HOME|USER|LOGNAME|SHELL|LANG|TMPDIR|CUDA_VISIBLE_DEVICES"
)
"""What tasks have with `--export=NONE`: the job's own, and what the host gives to every job."""


def main(arguments: Sequence[str]) -> int:
    try:
        gpus = [one for one in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if one]
        nodes = os.environ.get("SLURM_JOB_NUM_NODES", "1")
        options = parse(arguments, gpus=len(gpus), nodes=int(nodes))
        step = _Step(options, options.tasks or int(os.environ.get("SLURM_NTASKS", "1")), gpus)
    except (OptionError, OSError, ValueError) as error:
        sys.stderr.write(f"srun: error: {error}\n")
        return 1
    return step.run()


class _Step:
    """The tasks of one call."""

    def __init__(self, options: Options, tasks: int, gpus: Sequence[str]) -> None:
        self._options = options
        self._count = tasks
        if options.gpus_per_task * tasks > len(gpus):
            raise OptionError(
                f"`--gpus-per-task={options.gpus_per_task}` for {tasks} tasks: the job has {len(gpus)} GPUs"
            )
        self._gpus = gpus
        self._env = _exported(os.environ, options.export)
        if options.directory:
            os.chdir(options.directory)
        self._files: dict[str, int] = {}
        self._relays: list[threading.Thread] = []
        self._living: dict[int, int] = {}
        self._kill_at: float | None = None

    def run(self) -> int:
        """Start the tasks and wait for all of them; returns the highest exit code."""
        # Before the first task: a signal that comes in between waits, and is passed on.
        signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED | {signal.SIGCHLD})
        program = _found(self._options.program[0], self._env.get("PATH"))
        if program is None:
            sys.stderr.write(f"srun: error: {self._options.program[0]}: there is no such program\n")
            return 127
        for rank in range(self._count):
            try:
                self._start(rank, program)
            except OSError as error:
                sys.stderr.write(f"srun: error: task {rank} cannot be started: {error}\n")
                self._send(signal.SIGTERM)
                self._wait()
                return 126
        highest = self._wait()
        for relay in self._relays:
            relay.join()
        return highest

    def _start(self, rank: int, program: str) -> None:
        out = self._target(self._options.output, rank, 1)
        # As in Slurm: one file is for both where only the output has one.
        err = (
            out
            if self._options.output and not self._options.error
            else self._target(self._options.error, rank, 2)
        )
        actions: list[tuple[object, ...]] = []
        opened: list[int] = []
        if self._count > 1 and rank:
            # Only the first task reads what comes in: two that share it would each get a part.
            actions.append((os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0))
        for descriptor, wanted in ((1, out), (2, err)):
            target = wanted
            if self._options.label:
                target = self._labelled(rank, wanted)
                opened.append(target)
            if target != descriptor:
                actions.append((os.POSIX_SPAWN_DUP2, target, descriptor))
        try:
            pid = os.posix_spawn(
                program,
                self._options.program,
                self._variables(rank),
                file_actions=actions,
                setsigmask=(),
            )
        finally:
            for descriptor in opened:
                os.close(descriptor)
        self._living[pid] = rank

    def _target(self, pattern: str, rank: int, standard: int) -> int:
        if not pattern:
            return standard
        path = os.devnull if pattern == "none" else _file_name(pattern, self._variables(rank))
        if path not in self._files:
            self._files[path] = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666
            )
        return self._files[path]

    def _labelled(self, rank: int, target: int) -> int:
        """Return a pipe whose lines go to `target` with the rank in front."""
        reading, writing = os.pipe()
        width = len(str(self._count - 1))
        relay = threading.Thread(
            target=_relay, args=(reading, target, f"{rank:{width}}: ".encode())
        )
        relay.start()
        self._relays.append(relay)
        return writing

    def _variables(self, rank: int) -> dict[str, str]:
        env = {
            **self._env,
            "SLURM_PROCID": str(rank),
            "SLURM_LOCALID": str(rank),
            "SLURM_NODEID": "0",
            "SLURM_NTASKS": str(self._count),
            "SLURM_NPROCS": str(self._count),
            "SLURM_TASKS_PER_NODE": str(self._count),
            "SLURM_GTIDS": ",".join(map(str, range(self._count))),
        }
        if self._options.cpus_per_task:
            env["SLURM_CPUS_PER_TASK"] = str(self._options.cpus_per_task)
        share = self._options.gpus_per_task
        if share:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(self._gpus[rank * share : (rank + 1) * share])
        return env

    # -- waiting ----------------------------------------------------------------------------

    def _wait(self) -> int:
        highest = 0
        while self._living:
            self._take_signal()
            for code in self._ended():
                highest = max(highest, code)
                if code and self._options.kill_on_bad_exit and self._kill_at is None:
                    self._send(signal.SIGTERM)
                    self._kill_at = time.monotonic() + _KILL_SECONDS
        return highest

    def _take_signal(self) -> None:
        """Wait for the next signal, and pass it on unless it says that a task has ended."""
        waited = _FORWARDED | {signal.SIGCHLD}
        if self._kill_at is None:
            seen = signal.sigwaitinfo(waited)
        else:
            found = signal.sigtimedwait(waited, max(0.0, self._kill_at - time.monotonic()))
            if found is None:
                self._send(signal.SIGKILL)
                self._kill_at = time.monotonic() + _KILL_SECONDS
                return
            seen = found
        # The supervisor signals each process of the job itself: the tasks have its signals already.
        if seen.si_signo != signal.SIGCHLD and _is_of_job(seen.si_pid):
            self._send(seen.si_signo)

    def _ended(self) -> list[int]:
        codes: list[int] = []
        for pid, rank in list(self._living.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done:
                continue
            del self._living[pid]
            codes.append(_exit_code(status))
            if codes[-1]:
                sys.stderr.write(f"srun: error: task {rank}: {_described(status)}\n")
                sys.stderr.flush()
        return codes

    def _send(self, number: int) -> None:
        for pid in self._living:
            # Not waited for yet, so the number is still this task's.
            os.kill(pid, number)


def _relay(reading: int, target: int, label: bytes) -> None:
    """Copy lines with a label in front; the last one may lack its end."""
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            data = label + line
            while data:
                data = data[os.write(target, data) :]


def _is_of_job(pid: int) -> bool:
    """Tell whether a process belongs to this job; one that is gone, as `kill` often is, does."""
    mark = f"{_JOB_UID}={os.environ.get(_JOB_UID, '')}".encode()
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return True


def _exit_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _described(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"Exited with exit code {os.WEXITSTATUS(status)}"


def _found(name: str, path: str | None) -> str | None:
    """Return the program: on PATH, and then in the current folder (srun(1), "EXECUTABLE PATHS")."""
    return shutil.which(name, path=path) or shutil.which(f"./{name}")


def _exported(env: Mapping[str, str], wanted: str) -> dict[str, str]:
    """Return the variables of tasks: `ALL`, `NONE`, names, and `NAME=VALUE`, with commas between."""
    words = [word for word in wanted.split(",") if word]
    if "ALL" in words:
        found = dict(env)
    else:
        # Without these a task could not be found as the job's, nor find its programs.
        found = {name: value for name, value in env.items() if _KEPT.fullmatch(name)}
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            found[name] = value
        elif name in env:
            found[name] = env[name]
    return found


_SYMBOLS = {
    "A": "SLURM_ARRAY_JOB_ID", "a": "SLURM_ARRAY_TASK_ID", "j": "SLURM_JOB_ID", "N": "SLURMD_NODENAME",
    "n": "SLURM_NODEID", "t": "SLURM_PROCID", "u": "SLURM_JOB_USER", "x": "SLURM_JOB_NAME",
}  # fmt: skip


def _file_name(pattern: str, env: Mapping[str, str]) -> str:
    """Fill in `%j`, `%4t` and the like (srun(1), "FILENAME PATTERN")."""

    def fill(match: re.Match[str]) -> str:
        width, letter = match.groups()
        if letter == "%":
            return "%"
        if letter not in _SYMBOLS:
            raise ValueError(f"`%{letter}` in the file name {pattern!r} is not supported")
        text = env.get(_SYMBOLS[letter], "")
        return text.zfill(min(int(width or 0), 10)) if text.isdigit() else text

    return re.sub(r"%(\d*)(\D)", fill, pattern)
