"""
A process that joins a running job: its directory, environment, user, mounts, limits and cgroup.

The process is a child of the agent and the leader of a session of its own, with a terminal or with
pipes. It carries the job's tag and uid, so that it is found when the job's end is proven. What goes
wrong in the child before the command runs is said on its standard error, with the exit codes of a
shell: 127 where there is no such program, 126 where it cannot be executed or entered.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import signal
import struct
import termios
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from fleetform.agents.host import cgroups, credentials, kernel, process_tag
from fleetform.agents.host.launch import Account
from fleetform.agents.protocol.exec_pieces import Size

_EXIT_NOT_FOUND = 127
_EXIT_NOT_EXECUTABLE = 126

CODE_BYTES_MAX = 64 << 10
"""What a pipe holds at once (pipe(7)), so that nothing has to wait for its reader."""

_JOB_UMASK = 0o022
"""As the job's own: see `supervisor`."""

_NAMESPACES = (("user", kernel.CLONE_NEWUSER), ("mnt", kernel.CLONE_NEWNS))
"""In this order: who is not root may enter the mounts only from the user namespace that owns them."""


@dataclass(frozen=True)
class JobPlace:
    """
    Where in a running job a command starts.

    `directory` is absolute, or relative to `job_dir`, which is absolute. `supervisor` is the pid of
    the job's supervisor, whose namespaces and limits are the job's. `groups` are the cgroups of the
    job, as folders; none where the host has none for it. `account` is whose processes the job's are;
    None: the agent's own. `has_mounts`: of its own.
    """

    job_uid: str
    job_dir: str
    directory: str
    env: Mapping[str, str]
    supervisor: int
    groups: Sequence[str] = ()
    account: Account | None = None
    has_mounts: bool = False


@dataclass(frozen=True)
class Command:
    """
    What is to be executed; `size` is that of its terminal, None: pipes. `term` is TERM.

    `code` is Python that reads from descriptor 3, which a program of `argv` may execute: a job's
    account may not be allowed to read the agent's files. At most `CODE_BYTES_MAX`.
    """

    argv: Sequence[str]
    size: Size | None = None
    term: str = ""
    code: bytes = b""


@dataclass(frozen=True)
class Started:
    """
    A process and our ends of its streams, which do not block.

    With a terminal all three are one descriptor, and `errors` is None.
    """

    pid: int
    stdin: int
    output: int
    errors: int | None


def start(place: JobPlace, command: Command) -> Started:
    """
    Start a command; it is executing, or says why not, soon after.

    Raises:
        OSError: The host has no process, terminal or descriptor left.
    """
    keep, given = _open_streams(command.size)
    if place.account is not None:
        for one in set(given):
            # The terminal's group is that of terminals. A command may open what it has by its name.
            os.fchown(one, place.account.uid, -1)
    agent = os.getpid()
    try:
        if command.code:
            given.append(_filled_pipe(command.code))
    except OSError:
        _close(*keep, *given)
        raise
    try:
        with warnings.catch_warnings():
            # Python warns of threads that the child does not have: it executes another program.
            warnings.simplefilter("ignore")
            pid = os.fork()
    except OSError:
        _close(*keep, *given)
        raise
    if pid == 0:
        _become(place, command, given, agent)
    _close(*given)
    for one in keep:
        os.set_blocking(one, False)
    stdin, output = keep[:2] if len(keep) > 1 else keep * 2
    return Started(pid, stdin, output, keep[2] if len(keep) > 1 else None)


def _open_streams(size: Size | None) -> tuple[list[int], list[int]]:
    """Return our ends, one or three, and the three of the command, which may be one and the same."""
    if size is not None:
        ours, theirs = os.openpty()
        resize(ours, size)
        return [ours], [theirs, theirs, theirs]
    pipes: list[tuple[int, int]] = []
    try:
        pipes.extend(os.pipe2(os.O_CLOEXEC) for _ in range(3))
    except OSError:
        _close(*(one for pipe in pipes for one in pipe))
        raise
    (stdin, ours), (output, stdout), (errors, stderr) = pipes
    return [ours, output, errors], [stdin, stdout, stderr]


def _filled_pipe(content: bytes) -> int:
    """Return the end to read from; the other is closed."""
    assert len(content) <= CODE_BYTES_MAX
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        os.write(writing, content)
    finally:
        os.close(writing)
    return reading


def resize(terminal: int, size: Size) -> None:
    """Set the size of a terminal; its foreground processes hear of it."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))


def _close(*descriptors: int) -> None:
    for one in set(descriptors):
        with contextlib.suppress(OSError):
            os.close(one)


# -- in the child ---------------------------------------------------------------------------------


def _become(place: JobPlace, command: Command, streams: Sequence[int], agent: int) -> NoReturn:
    code = _EXIT_NOT_EXECUTABLE
    try:
        _take_streams(streams, has_terminal=command.size is not None)
        _reset_signals()
        try:
            _join(place, agent)
        except OSError as error:
            _complain(f"the command cannot join the job: {error}")
        else:
            code = _execute(place, command)
    except BaseException as error:  # noqa: BLE001 -- nothing may go on as a second agent
        _complain(f"the command cannot be started: {error}")
    finally:
        os._exit(code)


def _take_streams(streams: Sequence[int], *, has_terminal: bool) -> None:
    os.setsid()
    if has_terminal:
        fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
    for number, stream in enumerate(streams):
        # Never one of the first three: those of the agent are open. A fourth may have its number.
        if stream == number:
            os.set_inheritable(stream, True)
        else:
            os.dup2(stream, number)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if number not in {signal.SIGKILL, signal.SIGSTOP}:
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _join(place: JobPlace, agent: int) -> None:
    for group in place.groups:
        cgroups.write(f"{group}/cgroup.procs", str(os.getpid()))
    # Before the namespaces, from which the host's pids may not be visible. The agent has raised its own.
    files = resource.prlimit(place.supervisor, resource.RLIMIT_NOFILE)
    _enter_namespaces(place.supervisor)
    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    process_tag.put_on(process_tag.of_job(place.job_uid, process_tag.base()))
    os.chdir(place.job_dir)
    if place.account is not None:
        if place.has_mounts:
            # As for the job itself: see `mounts.enter`.
            kernel.forbid_new_privileges()
        credentials.become(place.account)
    os.umask(_JOB_UMASK if place.account is None else place.account.umask)
    os.chdir(place.directory)
    # Last: the kernel takes it back when credentials change (prctl(2)).
    kernel.die_with_parent()
    if os.getppid() != agent:
        raise ProcessLookupError(errno.ESRCH, "the agent has ended")


def _enter_namespaces(pid: int) -> None:
    others = []
    for name, flag in _NAMESPACES:
        try:
            if os.readlink(f"/proc/{pid}/ns/{name}") != os.readlink(f"/proc/self/ns/{name}"):
                opened = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
                others.append((opened, flag))
        except FileNotFoundError:
            continue  # A kernel without this kind.
    for opened, flag in others:
        kernel.setns(opened, flag)
        os.close(opened)


def _execute(place: JobPlace, command: Command) -> int:
    """Execute the command; returns the exit code only where that fails."""
    env = dict(place.env)
    if command.term:
        env["TERM"] = command.term
    try:
        os.execvpe(command.argv[0], list(command.argv), env)  # noqa: S606 -- no shell reads the words
    except OSError as error:
        _complain(f"{command.argv[0]}: {error.strerror}")
        missing = error.errno in {errno.ENOENT, errno.ENOTDIR}
        return _EXIT_NOT_FOUND if missing else _EXIT_NOT_EXECUTABLE
    except ValueError as error:
        _complain(f"{command.argv[0]!r}: {error}")
        return _EXIT_NOT_EXECUTABLE


def _complain(message: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"fleetform: {message}\n".encode("utf-8", "backslashreplace"))
