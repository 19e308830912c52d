"""The daemon's end of the spawner: requests out in packets, reports in, never waiting."""

from __future__ import annotations

import asyncio
import os
import signal
import socket

from fleetform.agents.host import spawner
from fleetform.agents.host.runtimes.base import Listener


class Forks:
    """
    Wraps the socket pair's end whose other the spawner holds.

    Several runtimes share it: listening and closing twice is the same as once.
    """

    def __init__(self, channel: socket.socket, spawner_pid: int) -> None:
        self._channel = channel
        self._spawner_pid = spawner_pid
        self._listener: Listener
        self._loop = asyncio.get_running_loop()
        self._waiting: list[str] = []
        self._blocked = False
        channel.setblocking(False)

    def listen(self, listener: Listener) -> None:
        """Report to this listener; called before the first request."""
        self._listener = listener
        self._loop.add_reader(self._channel, self._take)
        self._loop.add_signal_handler(signal.SIGCHLD, self._continue_spawner)

    def request(self, job_uid: str) -> None:
        """Ask for a supervisor; asked for at the next `flush`."""
        self._waiting.append(job_uid)

    def flush(self) -> None:
        while self._waiting and not self._blocked:
            packet = self._waiting[: spawner.UIDS_PER_PACKET]
            try:
                self._channel.send("\n".join(packet).encode())
            except BlockingIOError:
                self._blocked = True
                self._loop.add_writer(self._channel, self._unblock)
                return
            except OSError:
                return  # Gone; the reader hears of it.
            del self._waiting[: len(packet)]

    def close(self) -> None:
        if self._channel.fileno() >= 0:
            self._loop.remove_reader(self._channel)
            self._channel.close()

    def _continue_spawner(self) -> None:
        """Let the spawner go on where a job has stopped it: it continues their supervisors."""
        try:
            pid, status = os.waitpid(self._spawner_pid, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return
        if pid and os.WIFSTOPPED(status):
            os.kill(pid, signal.SIGCONT)

    def _unblock(self) -> None:
        self._loop.remove_writer(self._channel)
        self._blocked = False
        self.flush()

    def _take(self) -> None:
        try:
            packet = self._channel.recv(spawner.PACKET_BYTES)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if not packet:
            self._loop.remove_reader(self._channel)
            self._listener.gone()
            return
        for line in packet.decode().splitlines():
            self._report(*line.split(" "))

    def _report(self, kind: str, job_uid: str, number: str, left: str = "") -> None:
        if kind == "started":
            self._listener.started(job_uid)
        elif kind == "ended":
            pids = [int(pid) for pid in left.split(",") if pid]
            self._listener.ended(job_uid, _describe_exit(int(number)), pids)
        else:
            assert kind == "refused", kind
            self._listener.refused(job_uid, os.strerror(int(number)))


def _describe_exit(status: int) -> str:
    """Say how a supervisor ended that left no result; status as from waitpid(2)."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            return f"its supervisor was killed by {signal.Signals(number).name}"
        except ValueError:
            return f"its supervisor was killed by signal {number}"
    return f"its supervisor failed with exit code {os.WEXITSTATUS(status)}: see agent.log"
