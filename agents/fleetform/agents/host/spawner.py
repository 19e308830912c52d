"""
A small process that forks one supervisor for each job it is asked for.

Forked before the agent imports anything large, since a fork costs what the parent has mapped.
It knows no more than directories: a request is a packet of job uids, a report a packet of
lines. When the agent is gone it ends, and its supervisors go on without it.

    started UID PID      a supervisor has been forked
    refused UID ERRNO    it could not be
    ended UID STATUS     it is gone; status as from waitpid(2)
    ended UID STATUS PID,PID   the same, and these that it has left would not die

It is the subreaper of its supervisors as each of them is of its job. What one that is killed
leaves behind comes here, whatever it has made of its environment, its session and its parent.

A job may stop them with SIGSTOP, and then no process would end it at its time limit. A supervisor that is
stopped is continued at once, since its parent hears of that; the agent is looked at now and then.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections import Counter
from typing import NoReturn

from fleetform.agents.host import (
    cgroups,
    kernel,
    launch,
    layout,
    limits,
    mounts,
    processes,
    supervisor,
)
from fleetform.agents.host.supervisor import Supervisor

PACKET_BYTES = 1 << 16
"""Fits the default of net.core.wmem_default (212 992), which bounds a packet."""

UIDS_PER_PACKET = 256
"""So that the reports of one packet fit a packet: 64 characters of uid and 70 more each."""

_ORPHANS_SECONDS = 5.0
"""A process that is killed goes in milliseconds; one that waits for a dead disk may never go."""

_AGENT_CHECK_SECONDS = 2
"""Between two looks at whether the agent is stopped: one small file is read each time."""

_STOPS_MAX = 50
"""A supervisor that was stopped so often is stopped by its job, in a loop: the job is ended."""

_ORPHANS_CHECK_SECONDS = 0.01
_ORPHANS_REPORTED_MAX = 4


def run(channel: socket.socket, close: tuple[int, ...] = ()) -> NoReturn:
    """
    Serve requests from `channel` until its other end is gone, and exit.

    The root is the current directory. First of all it reports `ready`, then what it tried out:
    the obstacle to mounts, if any, and the ways to limit memory.
    """
    for descriptor in close:
        os.close(descriptor)
    status = 1
    try:
        _enter_jobs_folder()
        _Spawner(channel).serve()
        status = 0
    finally:
        os._exit(status)


def _enter_jobs_folder() -> None:
    try:
        cgroups.enter_jobs_folder()
    except OSError as error:
        # Jobs run all the same; where the agent's unit is stopped, it leaves them alone.
        sys.stderr.write(f"the control group for jobs cannot be used: {error}\n")


class _Spawner:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._agent = os.getppid()
        self._agent_check_at = 0.0
        self._uids: dict[int, str] = {}
        self._stops: Counter[int] = Counter()
        self._immortal: set[int] = set()
        self._reports: list[str] = []
        # Waits until the spawner of an agent that was killed has ended, and with it every
        # supervisor that has not yet taken its own lock: afterwards each directory tells the truth.
        self._lock = os.open(layout.SPAWNER_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._wakeup, self._wakeup_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        kernel.become_subreaper()

    def serve(self) -> None:
        self._say_ready()
        signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)
        # Also what keeps a signal from ending the spawner: it ends when the agent does.
        supervisor.inherit_signals()
        # A collection would touch, and so copy, every page that parent and children share.
        gc.disable()
        gc.freeze()
        poller = select.poll()
        poller.register(self._channel, select.POLLIN)
        poller.register(self._wakeup, select.POLLIN)
        while True:
            for descriptor, _ in poller.poll(_AGENT_CHECK_SECONDS * 1000):
                if descriptor == self._wakeup:
                    os.read(self._wakeup, 4096)
                elif not self._take_request():
                    return
            self._reap()
            self._continue_agent()
            self._send_reports()

    def _continue_agent(self) -> None:
        now = time.monotonic()
        if now < self._agent_check_at:
            return
        self._agent_check_at = now + _AGENT_CHECK_SECONDS
        # Once it is gone, its pid may be another's: the channel's end says so soon.
        if os.getppid() == self._agent and processes.state(self._agent) == "T":
            os.kill(self._agent, signal.SIGCONT)

    def _say_ready(self) -> None:
        self._channel.send("\n".join(["ready", mounts.obstacle(), *limits.available()]).encode())

    def _take_request(self) -> bool:
        packet = self._channel.recv(PACKET_BYTES)
        # First all that can be done in this process, then fork after fork: each one protects
        # every page against writing anew, here too, so little should be written in between.
        lives = [(uid, self._make_life(uid)) for uid in packet.decode().split()]
        for uid, life in lives:
            if life is not None:
                self._fork(uid, life)
        return bool(packet)

    def _make_life(self, uid: str) -> Supervisor | None:
        try:
            with open(_launch_path(uid), "rb") as file:
                return Supervisor(launch.load(file.read()))
        except (OSError, ValueError, KeyError, TypeError) as error:
            # Started before, perhaps; whoever asked looks at the directory and sees.
            self._refuse(uid, getattr(error, "errno", None) or errno.EINVAL)
            return None

    def _fork(self, uid: str, life: Supervisor) -> None:
        try:
            # One at a time: a copy in another supervisor would hold this job's lock for it.
            descriptor = os.open(_launch_path(uid), os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            self._refuse(uid, error.errno)
            return
        try:
            pid = os.fork()
            if pid == 0:
                self._become_supervisor(uid, life, descriptor)
            self._uids[pid] = uid
            self._reports.append(f"started {uid} {pid}")
        except OSError as error:
            self._refuse(uid, error.errno)
        finally:
            os.close(descriptor)

    def _refuse(self, uid: str, number: int | None) -> None:
        self._reports.append(f"refused {uid} {number}")

    def _become_supervisor(self, uid: str, life: Supervisor, descriptor: int) -> NoReturn:
        try:
            inherited = (self._lock, self._wakeup, self._wakeup_write, self._channel.fileno())
            supervisor.run(f"{layout.JOBS}/{uid}", life, descriptor, inherited)
        except BaseException:  # noqa: BLE001 -- whatever it is must not go on as a second spawner
            traceback.print_exc()
        finally:
            os._exit(1)

    def _reap(self) -> None:
        ended = self._collect()
        left: list[int] = []
        # One that came to its end has ended all below it.
        if any(status for _, status in ended):
            left = self._end_orphans(ended)
        told = ",".join(map(str, left[:_ORPHANS_REPORTED_MAX]))
        for uid, status in ended:
            self._reports.append(f"ended {uid} {status} {told}".rstrip())

    def _collect(self) -> list[tuple[str, int]]:
        """Collect the processes that ended: supervisors, by job uid, and what others of theirs have left."""
        ended: list[tuple[str, int]] = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return ended
            if pid == 0:
                return ended
            if os.WIFSTOPPED(status):
                self._continue(pid)
                continue
            self._stops.pop(pid, None)
            self._immortal.discard(pid)
            uid = self._uids.pop(pid, None)
            if uid is not None:
                ended.append((uid, status))

    def _continue(self, pid: int) -> None:
        """Let a supervisor go on that was stopped; what is no supervisor is killed elsewhere."""
        uid = self._uids.get(pid)
        if uid is None:
            return
        self._stops[pid] += 1
        if self._stops[pid] <= _STOPS_MAX:
            os.kill(pid, signal.SIGCONT)
            return
        # Its job ends with it, by `_end_orphans`.
        sys.stderr.write(
            f"job {uid} stopped its supervisor {_STOPS_MAX} times, so the job is ended\n"
        )
        os.kill(pid, signal.SIGKILL)

    def _end_orphans(self, ended: list[tuple[str, int]]) -> list[int]:
        """
        Kill what supervisors that were killed have left; returns what would not die.

        A living one is the parent of its own: whoever is a child here and no supervisor has
        lost the one that it had. `ended` grows by those that end meanwhile.
        """
        deadline = time.monotonic() + _ORPHANS_SECONDS
        while True:
            known = self._uids.keys() | self._immortal
            orphans = [pid for pid in processes.children(os.getpid()) if pid not in known]
            if not orphans:
                return []
            if time.monotonic() > deadline:
                # Told of once, and waited for no more when the next one is killed.
                self._immortal.update(orphans)
                return orphans
            for pid in orphans:
                processes.send([pid, *processes.descendants(pid)], signal.SIGKILL)
            time.sleep(_ORPHANS_CHECK_SECONDS)
            ended += self._collect()

    def _send_reports(self) -> None:
        for begin in range(0, len(self._reports), UIDS_PER_PACKET):
            self._channel.send("\n".join(self._reports[begin : begin + UIDS_PER_PACKET]).encode())
        self._reports.clear()


def _launch_path(uid: str) -> str:
    return f"{layout.JOBS}/{uid}/{layout.LAUNCH}"
