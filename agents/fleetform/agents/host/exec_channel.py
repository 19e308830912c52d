"""
Commands inside running jobs, each over one channel of the kind `exec`.

Output is read only while the other side gives credit and reads, so what is held here is bounded by
the credit, and a command that prints faster waits. Input is credited when the command has taken it.
A command outlives neither its channel nor its job: when the channel ends it gets SIGHUP, and SIGKILL
after a grace; when the job ends it gets SIGKILL.
"""

from __future__ import annotations

import asyncio
import base64
import collections
import contextlib
import importlib.util
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from fleetform.agents.host import job_command, processes
from fleetform.agents.host.blobs import BlobError
from fleetform.agents.host.job_command import Command, Started
from fleetform.agents.host.runtimes.base import NotRunning, Runtime
from fleetform.agents.protocol import exec_pieces
from fleetform.agents.protocol.channels import ChannelData, ChannelEnded, Credit
from fleetform.agents.protocol.exec_pieces import Size
from fleetform.agents.protocol.frames import Message
from fleetform.agents.protocol.link import WINDOW_MAX_BYTES, Window
from fleetform.agents.protocol.messages import JobKey, JobRecord
from fleetform.agents.protocol.states import JobState

COMMANDS_MAX = 64
"""On one host at a time; each takes three descriptors and a thread that waits for it."""

HANG_UP_SECONDS = 5.0
"""Between SIGHUP and SIGKILL: an editor saves what it has."""

_DRAIN_SECONDS = 0.2
"""After a command has ended, silence that says that all of its output has been read."""

_READ_BYTES = 32 << 10

_INPUT_BYTES_MAX = 2 * WINDOW_MAX_BYTES
"""Far beyond what credit allows: a sender of more ignores it."""

_END_OF_FILE = b"\x04"
"""What a terminal takes as the end of input, at the beginning of a line."""


class Commands:
    """The commands of all connections; `find` returns what is known of a job."""

    def __init__(self, find: Callable[[str], JobRecord | None], runtime: Runtime) -> None:
        self._find = find
        self._runtime = runtime
        self._running: dict[int, ExecChannel] = {}
        self._entered: set[str] = set()

    def open(
        self, channel: int, parameters: dict[str, Any], say: Callable[[Message], None]
    ) -> ExecChannel:
        """
        Start the command that the parameters of a channel describe.

        Raises:
            BlobError: They are not valid, the job does not run, or too many commands do.
            OSError: The host has nothing left to start it with.
        """
        job_uid, key, command = _read(parameters)
        record = self._find(job_uid)
        if record is None or record.key != key or record.state is not JobState.RUNNING:
            state = "not on this host" if record is None else record.state.value
            raise BlobError("not_found", f"the job does not run: it is {state}")
        if len(self._running) >= COMMANDS_MAX:
            raise BlobError("busy", f"{COMMANDS_MAX} commands run in jobs of this host already")
        try:
            started = self._runtime.exec(job_uid, command)
        except NotRunning as error:
            raise BlobError("not_found", str(error)) from error
        self._entered.add(job_uid)
        opened = ExecChannel(channel, job_uid, started, say, self._forget)
        self._running[started.pid] = opened
        return opened

    def has_entered(self, job_uid: str) -> bool:
        """Tell whether a command was started in the job; asked once, when the job is over."""
        with contextlib.suppress(KeyError):
            self._entered.remove(job_uid)
            return True
        return False

    def end(self, job_uid: str) -> None:
        """Kill the commands of a job that is over."""
        for one in list(self._running.values()):
            if one.job_uid == job_uid:
                one.end_with_job()

    def close(self) -> None:
        """Kill all: the agent ends."""
        for one in list(self._running.values()):
            one.kill()

    def _forget(self, pid: int) -> None:
        self._running.pop(pid, None)


class ExecChannel:
    """
    One command and the channel that carries its streams.

    Attributes:
        job_uid: The job that it runs in.
    """

    def __init__(
        self,
        channel: int,
        job_uid: str,
        started: Started,
        say: Callable[[Message], None],
        over: Callable[[int], None],
    ) -> None:
        """`over` is called with the pid once the process has ended."""
        self.job_uid = job_uid
        self._channel = channel
        self._pid = started.pid
        self._stdin = started.stdin
        self._has_terminal = started.stdin == started.output
        self._say = say
        self._over = over
        self._loop = asyncio.get_running_loop()
        self._window = Window()
        self._outputs = {started.output: exec_pieces.DATA}
        if started.errors is not None:
            self._outputs[started.errors] = exec_pieces.ERRORS
        # Pieces of input that the command has not taken, with what each is credited by.
        self._input: collections.deque[tuple[bytes, int]] = collections.deque()
        self._input_bytes = 0
        self._input_ends = False
        self._takes_input = True
        self._is_writing = False
        self._is_reading = False
        self._is_paused = False
        self._status: int | None = None
        self._drained_at = 0.0
        self._is_closed = False
        self._is_left = False
        self._job_ended = False
        threading.Thread(target=self._await_end, daemon=True, name=f"exec {self._pid}").start()
        self._read_on()

    # -- what arrives -----------------------------------------------------------------------------

    def take(self, piece: bytes, size: int) -> None:
        """
        Take a piece in; `size` is what it is credited by.

        Raises:
            ValueError: It is none of `exec_pieces`, or more than there was credit for.
        """
        kind, content = (piece[0], piece[1:]) if piece else (None, b"")
        if kind == exec_pieces.DATA:
            self._take_input(content, size)
            return
        if kind == exec_pieces.END_OF_INPUT:
            self._input_ends = True
            self._write()
        elif kind == exec_pieces.RESIZE:
            size_now = exec_pieces.parse_size(content)
            if self._has_terminal and not self._is_closed:
                with contextlib.suppress(OSError):
                    job_command.resize(self._stdin, size_now)
        elif kind == exec_pieces.SIGNAL:
            self._signal(signal.Signals[f"SIG{exec_pieces.parse_signal(content)}"])
        else:
            raise ValueError("a piece is of no known kind")
        self._say(Credit(self._channel, size))

    def credit(self, size: int) -> None:
        self._window.take(size, time.monotonic())
        self._read_on()

    def pause(self, *, paused: bool) -> None:
        """Read no output while the connection does not keep up."""
        self._is_paused = paused
        self._read_on()

    def hang_up(self) -> None:
        """The other side has left: end the command."""
        if self._is_left or self._is_closed:
            return
        self._is_left = True
        if self._has_terminal or self._status is not None:
            self._close()
        else:
            # Read on and dropped: what it prints at its end must not end it by SIGPIPE before that.
            self._stop_input()
            self._read_on()
        if self._status is None:
            self._signal(signal.SIGHUP)
            self._signal(signal.SIGCONT)
            self._loop.call_later(HANG_UP_SECONDS, self.kill)

    def end_with_job(self) -> None:
        self._job_ended = True
        self.kill()

    def kill(self) -> None:
        if self._status is None:
            below = processes.descendants(self._pid)
            # First: a shell would exit as if a program of its own had been killed.
            self._signal(signal.SIGKILL)
            processes.send(below, signal.SIGKILL)

    def _signal(self, number: int) -> None:
        # No other process gets the pid before the status is read, which happens here.
        if self._status is None:
            with contextlib.suppress(OSError):
                try:
                    os.killpg(self._pid, number)
                except ProcessLookupError:
                    # It was forked a moment ago, and has not made its group yet.
                    os.kill(self._pid, number)

    # -- input ------------------------------------------------------------------------------------

    def _take_input(self, content: bytes, size: int) -> None:
        if self._input_ends or not self._takes_input:
            self._say(Credit(self._channel, size))
            return
        if self._input_bytes + len(content) > _INPUT_BYTES_MAX:
            raise ValueError("more input arrives than there is credit for")
        self._input_bytes += len(content)
        self._input.append((content, size))
        self._write()

    def _write(self) -> None:
        try:
            while self._input and not self._is_closed:
                content, size = self._input[0]
                written = os.write(self._stdin, content) if content else 0
                self._input_bytes -= written
                if written < len(content):
                    self._input[0] = (content[written:], size)
                    continue
                self._input.popleft()
                self._say(Credit(self._channel, size))
        except BlockingIOError:
            self._await_writable(wanted=True)
            return
        except OSError:
            # The command has closed its input, as `head` does: the rest is not wanted.
            self._stop_input()
            return
        self._await_writable(wanted=False)
        if self._input_ends and not self._is_closed:
            self._end_input()

    def _end_input(self) -> None:
        if self._has_terminal:
            with contextlib.suppress(OSError):
                os.write(self._stdin, _END_OF_FILE)
        else:
            self._stop_input()

    def _stop_input(self) -> None:
        self._await_writable(wanted=False)
        if not self._takes_input:
            return
        self._takes_input = False
        for _, size in self._input:
            self._say(Credit(self._channel, size))
        self._input.clear()
        self._input_bytes = 0
        if not self._has_terminal:
            os.close(self._stdin)

    def _await_writable(self, *, wanted: bool) -> None:
        if wanted and not self._is_writing:
            self._loop.add_writer(self._stdin, self._write)
        elif self._is_writing and not wanted:
            self._loop.remove_writer(self._stdin)
        self._is_writing = wanted

    # -- output -----------------------------------------------------------------------------------

    def _read_on(self) -> None:
        """Read while there is room, and only then."""
        may_say = self._is_left or (self._window.has_room and not self._is_paused)
        wanted = may_say and not self._is_closed
        if wanted == self._is_reading:
            return
        self._is_reading = wanted
        for output in self._outputs:
            if wanted:
                self._loop.add_reader(output, self._read, output)
            else:
                self._loop.remove_reader(output)
        # What was read before does not count as silence.
        self._drained_at = self._loop.time() + _DRAIN_SECONDS

    def _read(self, output: int) -> None:
        try:
            data = os.read(output, min(self._window.piece_bytes, _READ_BYTES))
        except BlockingIOError:
            return
        except OSError:
            data = b""  # EIO: no process has the terminal open any more.
        if not data:
            self._end_output(output)
            return
        if self._is_left:
            return
        self._drained_at = self._loop.time() + _DRAIN_SECONDS
        text = base64.b64encode(bytes([self._outputs[output]]) + data).decode("ascii")
        self._window.send(len(text), time.monotonic())
        self._say(ChannelData(self._channel, text))
        self._read_on()

    def _end_output(self, output: int) -> None:
        self._loop.remove_reader(output)
        del self._outputs[output]
        if not self._has_terminal:
            os.close(output)
        self._finish_if_drained()

    # -- the end ----------------------------------------------------------------------------------

    def _await_end(self) -> None:
        """Wait in a thread of its own; the loop reads the status."""
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(RuntimeError):  # The loop is closed: the agent has ended.
            self._loop.call_soon_threadsafe(self._take_status)

    def _take_status(self) -> None:
        _, self._status = os.waitpid(self._pid, 0)
        self._over(self._pid)
        self._drained_at = self._loop.time() + _DRAIN_SECONDS
        self._finish_if_drained()

    def _finish_if_drained(self) -> None:
        """Say how the command ended once its output has been read; processes it left do not count."""
        if self._status is None or self._is_closed:
            return
        if self._is_left:
            self._close()
            return
        now = self._loop.time()
        if self._outputs and (not self._is_reading or now < self._drained_at):
            wait_seconds = max(self._drained_at - now, 0.02)
            self._loop.call_later(wait_seconds, self._finish_if_drained)
            return
        body: dict[str, Any] = {}
        if os.WIFSIGNALED(self._status):
            body["signal"] = os.WTERMSIG(self._status)
        else:
            body["exit_code"] = os.WEXITSTATUS(self._status)
        if self._job_ended:
            body["job_ended"] = True
        self._close()
        self._say(ChannelEnded(self._channel, body=body))

    def _close(self) -> None:
        """Give the streams back; a terminal's processes get SIGHUP from the kernel then."""
        if self._is_closed:
            return
        self._stop_input()
        self._is_closed = True
        self._read_on()
        if self._has_terminal:
            os.close(self._stdin)
        else:
            for output in self._outputs:
                os.close(output)
        self._outputs.clear()


def _read(parameters: dict[str, Any]) -> tuple[str, JobKey, Command]:
    try:
        key = JobKey.parse(str(parameters["key"]))
        if (subsystem := parameters.get("subsystem")) is not None:
            return str(parameters.get("job_uid")), key, _subsystem(str(subsystem))
        argv = _argv(parameters["argv"])
        size = None
        if parameters.get("rows") is not None:
            asked = Size(int(parameters["rows"]), int(parameters["columns"]))
            size = exec_pieces.parse_size(exec_pieces.resize(asked)[1:])
        command = Command(argv, size, str(parameters.get("term") or ""))
    except (KeyError, TypeError, ValueError) as error:
        raise BlobError("invalid", f"the parameters of `exec` are not valid: {error}") from error
    return str(parameters.get("job_uid")), key, command


def _argv(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not given or not all(isinstance(one, str) for one in given):
        raise ValueError("`argv` is no list of strings")
    return tuple(given)


def _subsystem(name: str) -> Command:
    """Return the command of a program that the agent has; raises ValueError where it has none."""
    if name != "sftp":
        raise ValueError(f"there is no subsystem {name!r}")
    argv = (sys.executable, "-I", "-S", "-c", _EXECUTE)
    return Command(argv, code=_source("fleetform.agents.host.sftp_server"))


_EXECUTE = "exec(open(3, encoding='utf-8').read())"


def _source(module: str) -> bytes:
    """Read a module's text, also from an archive."""
    spec = importlib.util.find_spec(module)
    # `zipimport` has the method in each version, and the base class only in newer ones.
    read = getattr(None if spec is None else spec.loader, "get_source", lambda _: None)
    text = read(module)
    if text is None:
        raise ValueError(f"the text of {module} cannot be read")
    return str(text).encode()
