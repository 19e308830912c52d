"""
One job's life on a host: one process that starts it, keeps its output, ends it and says how.

A supervisor belongs to nobody. It outlives the agent that asked for it and needs none: what it
has to know lies in the job's directory, and so does what it leaves there. Two things make that
safe. The lock is held for as long as it lives, and `started` can be made only once, so a second
supervisor of the same job gives up before it has done anything.

It is the subreaper of all that the job starts. A process of the job can leave its session, its
group and its parent, and is still found here when the command ends: nothing stays behind, and
when there is no child left, that is known without looking at any other process.

Everything is imported before the spawner forks; nothing is imported here.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from fleetform.agents.host import (
    contact,
    credentials,
    joblog,
    kernel,
    layout,
    limits,
    mounts,
    process_tag,
    processes,
    repair,
    result,
)
from fleetform.agents.host.ending import Ending, Step
from fleetform.agents.host.launch import Launch
from fleetform.agents.host.limits import Limit
from fleetform.agents.host.result import Result
from fleetform.agents.host.supervisor_messages import Notices
from fleetform.agents.protocol.states import TAKEN_AWAY, Cause

EXIT_DONE = 0
EXIT_SECOND = 3
"""Another supervisor has, or had, this job; nothing has been touched."""

REPAIR = signal.SIGUSR1
"""From an agent that does not find in the job's directory what a supervisor keeps there."""

_READ_BYTES = 1 << 16
"""What a pipe holds."""

_WAIT_MS_MAX = 10_000
"""poll(2) counts no suspend, so a deadline is looked at again after this at the latest."""

_WAIT_MS_MAX_SILENCE = 1_000
"""The same for a job that ends after a silence: another host may have it when this one wakes up."""

_REPAIR_MS = 1000
"""From the file that is missed to its repair: longer than `rm -r` mostly takes."""

_CLEANING_MS = 10
"""Between two rounds of killing what is left."""

# Python ignores the first two, and this process or whoever began it in the background the others;
# ignored, they would stay so in the job.
_RESET_SIGNALS = tuple(
    int(number)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
)

_JOB_UMASK = 0o022
"""
As after a login: results in a volume can be read by others who may enter its folder, and changed
by no other account. The agent's own umask, 077, would make results that only one account can read.
"""

_EXIT_NOT_FOUND = 127
_EXIT_NOT_EXECUTABLE = 126


def run(
    job_dir: str, supervisor: Supervisor, descriptor: int, inherited: Sequence[int] = ()
) -> NoReturn:
    """
    Supervise one job, and exit.

    Args:
        job_dir: The job's directory.
        supervisor: Made from what lies there as `launch`, by the caller before it forks: all
            that is done there costs a tenth, since no page has to be copied for it.
        descriptor: That file, open for reading and writing and by no other account.
        inherited: Descriptors to be closed once the job's lock is held. The spawner's lock is
            among them, so whoever gets that one knows that each supervisor holds its own or is
            gone.
    """
    os.chdir(job_dir)
    if not (_lock(descriptor) and _claim()):
        os._exit(EXIT_SECOND)
    for other in inherited:
        os.close(other)
    _leave_pid(descriptor)
    _stamp(descriptor)
    os.setsid()
    outcome = supervisor.supervise(descriptor)
    result.write(layout.RESULT, outcome)
    # Without Python's own exit: no buffers, no threads, and two milliseconds less.
    os._exit(EXIT_DONE)


def inherit_signals() -> None:
    """
    Take the signals as a supervisor needs them.

    For the spawner, before it forks: the table is inherited, and setting it once for all saves
    each supervisor the wrappers of `signal`, which are slow when their pages are first touched.
    """
    for number in (signal.SIGCHLD, signal.SIGTERM, REPAIR):
        signal.signal(number, _note)
    # A terminal's interrupt and its end are for whoever started the agent.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _lock(descriptor: int) -> bool:
    # An agent that has just started tests the lock by holding it for an instant.
    for _ in range(20):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return True
    return False


def _claim() -> bool:
    """Make the start a fact. Renaming is exclusive, and needs no space on a full disk."""
    try:
        os.rename(layout.LAUNCH, layout.STARTED)
    except FileNotFoundError:
        return False
    return True


def _leave_pid(descriptor: int) -> None:
    try:
        os.lseek(descriptor, 0, os.SEEK_END)
        os.write(descriptor, b"%d\n" % os.getpid())
    except OSError:
        pass  # A full disk: who needs the pid then looks at the lock instead.


def _stamp(descriptor: int) -> None:
    """Give the file the time of the start by the clock since boot; that needs no space on a full disk."""
    since_boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    # Without it the job counts as older than every process.
    with contextlib.suppress(OSError):
        os.utime(descriptor, ns=(since_boot, since_boot))


class _CannotStart(Exception):
    """The host could not do its part; the job has executed nothing."""


class Supervisor:
    """
    One job while it runs. Made before the fork and used after it; the job's clocks start when
    it is made. Expects the job's directory as the current one.
    """

    def __init__(self, job: Launch) -> None:
        self._job = job
        self._started_at_ms = _wall_ms()
        self._started_ms = _boot_ms()
        self._main_pid = 0
        self._main_status: int | None = None
        self._limit: Limit | None = None
        self._log = joblog.Writer(
            layout.OUTPUT, head_bytes=job.log_head_bytes, tail_bytes=job.log_tail_bytes
        )
        self._notices = Notices(job.job_uid)
        self._output = -1
        self._repair_at_ms: int | None = None
        self._started = -1
        self._control = -1
        self._control_text = b""
        self._contact = -1
        self._ending = Ending(
            started_ms=self._started_ms,
            max_duration_ms=job.max_duration_ms,
            grace_ms=job.grace_ms,
            checkpoint_lead_ms=None if job.checkpoint_signal is None else job.checkpoint_lead_ms,
            silence_ms=job.silence_ms,
        )

    def supervise(self, started: int) -> Result:
        """
        Run the job to its end; returns when no process of it is left.

        `started` is the descriptor of the job's file of that name, with the lock.
        """
        self._started = started
        kernel.become_subreaper()
        try:
            wakeup = self._prepare()
            self._start()
        except _CannotStart as error:
            return self._result(Cause.PREPARE_FAILED, None, None, str(error))
        if self._main_status is None:
            self._watch(wakeup)
        self._clean()
        self._drain()
        # A job may have removed all of this. While the output is open, it can be put back.
        self.repair()
        self._log.close()
        return self._outcome()

    def repair(self) -> None:
        """Make the job's directory whole, where the job has removed it or files of it."""
        uid = self._job.job_uid
        self._repair_at_ms = None
        if self._control < 0:
            return
        try:
            if not repair.is_whole(uid, self._started, self._control):
                repair.make_whole(uid, self._started, self._control)
            if self._log.restore():
                # A host that looked while the file was gone has found no output.
                self._notices.output()
        except OSError as error:
            # The agent's root is gone too, or the disk is full.
            sys.stderr.write(f"the directory of job {uid} cannot be created again: {error}\n")

    def _look_at_directory(self) -> None:
        """Have output that comes now be seen, where the job has removed the file for it."""
        if os.stat(".").st_nlink == 0:
            self.repair()
        elif self._repair_at_ms is None and self._log.is_removed():
            # It is being emptied, perhaps: what is made in it now would keep it from being removed.
            self._repair_at_ms = _boot_ms() + _REPAIR_MS

    # -- start ------------------------------------------------------------------------------

    def _prepare(self) -> int:
        """Open all that may fail before the command runs; returns the wake-up descriptor."""
        try:
            # For writing too: else it would be at its end whenever nobody else has it open.
            self._control = os.open(layout.CONTROL, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            if self._job.memory_bytes is not None:
                self._limit = limits.impose(
                    self._job.memory_limit, self._job.job_uid, self._job.memory_bytes
                )
            if self._job.binds:
                mounts.enter(self._job.binds, self._job.account)
            if self._job.silence_ms is not None:
                self._contact = os.open(layout.CONTACT_FROM_JOB, os.O_RDONLY | os.O_CLOEXEC)
                self._hear()
        except OSError as error:
            raise _CannotStart(f"the host cannot set up the job: {error}") from error
        if self._ending.is_silent(_boot_ms()):
            # The start came late, and by now another host may have the job.
            raise _CannotStart(self._explain_silence())
        return _wake_on_signals()

    def _start(self) -> None:
        self._output, write_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._output, False)
        home = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        account = self._job.account
        try:
            if self._limit is not None:
                self._limit.enter()
            process_tag.put_on(process_tag.of_job(self._job.job_uid, process_tag.base()))
            if account is not None:
                # A command may open its output again by its name, as `tee /dev/stderr` does.
                os.fchown(write_end, account.uid, account.gid)
            # Also the directory is opened as the account: it may be behind a link of that account.
            with credentials.Assumed(account):
                os.chdir(self._job.directory)
                error = self._spawn(write_end)
        except OSError as failure:
            raise _CannotStart(f"the host cannot start the job: {failure}") from failure
        finally:
            if self._limit is not None:
                self._limit.leave()
            os.fchdir(home)
            os.close(home)
            os.close(write_end)
        if error is not None:
            self._fail_as_a_shell_would(error)

    def _spawn(self, write_end: int) -> OSError | None:
        """Start the command; returns what the kernel says of an executable that is none."""
        account = self._job.account
        before = os.umask(_JOB_UMASK if account is None else account.umask)
        try:
            # vfork(2) inside: the page tables of this process are not copied once more. A group
            # of its own keeps `kill 0` in a command from hitting this process.
            self._main_pid = os.posix_spawn(
                self._job.executable,
                self._job.argv,
                self._job.env,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, write_end, 1),
                    (os.POSIX_SPAWN_DUP2, write_end, 2),
                ],
                setpgroup=0,
                setsigmask=(),
                setsigdef=_RESET_SIGNALS,
            )
        except OSError as error:
            if error.errno not in {errno.ENOENT, errno.EACCES, errno.ENOEXEC}:
                raise
            return error
        finally:
            os.umask(before)
        return None

    def _fail_as_a_shell_would(self, error: OSError) -> None:
        self._log.write(f"{self._job.executable}: {error.strerror}\n".encode())
        missing = error.errno == errno.ENOENT
        self._main_status = (_EXIT_NOT_FOUND if missing else _EXIT_NOT_EXECUTABLE) << 8

    # -- while it runs ----------------------------------------------------------------------

    def _watch(self, wakeup: int) -> None:
        poller = select.poll()
        for descriptor in (self._output, self._control, wakeup):
            poller.register(descriptor, select.POLLIN)
        look_at_ms = _boot_ms()
        while self._main_status is None:
            now_ms = _boot_ms()
            if self._limit is not None and self._limit.interval_ms and now_ms >= look_at_ms:
                look_at_ms = now_ms + self._limit.interval_ms
                if self._limit.exceeded():
                    self._signal_all(signal.SIGKILL)
            if self._ending.is_silent(now_ms):
                self._hear()
                self._ending.end_silence(now_ms)
            self._take_due_steps(now_ms)
            if self._repair_at_ms is not None and now_ms >= self._repair_at_ms:
                self.repair()
            for descriptor, _ in poller.poll(self._wait_ms(now_ms, look_at_ms)):
                if descriptor == wakeup:
                    self._take_signals(wakeup)
                elif descriptor == self._control:
                    self._take_requests()
                elif not self._take_output():
                    poller.unregister(self._output)
            self._notices.send_due()

    def _wait_ms(self, now_ms: int, look_at_ms: int) -> int | None:
        waits = [self._ending.wait_ms(now_ms), self._notices.wait_ms()]
        if self._limit is not None and self._limit.interval_ms:
            waits.append(max(look_at_ms - now_ms, 0))
        if self._repair_at_ms is not None:
            waits.append(max(self._repair_at_ms - now_ms, 0))
        known = [wait for wait in waits if wait is not None]
        longest = _WAIT_MS_MAX if self._job.silence_ms is None else _WAIT_MS_MAX_SILENCE
        return min(*known, longest) if known else None

    def _hear(self) -> None:
        """Read when the controller was heard; what cannot be read says nothing new."""
        try:
            known = contact.read(self._contact)
        except OSError:
            return
        if known is not None:
            self._ending.hear(known[1])

    def _take_signals(self, wakeup: int) -> None:
        came = os.read(wakeup, 512)
        if REPAIR in came:
            self.repair()
        if signal.SIGTERM in came:
            # The host is shutting down, most likely; the job then says how far it got.
            self._ending.ask(Cause.SIGNAL, None, _boot_ms())
        self._reap()

    def _reap(self) -> bool:
        """Collect all that has ended; False when no child is left to wait for."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._main_pid:
                self._main_status = status

    def _take_output(self) -> bool:
        """Keep what has come; False at its end."""
        try:
            data = os.read(self._output, _READ_BYTES)
        except BlockingIOError:
            return True
        self._look_at_directory()
        self._log.write(data)
        if data:
            self._notices.output()
        return bool(data)

    def _take_requests(self) -> None:
        """Read lines of the control FIFO: `stop CAUSE GRACE_MS`, the grace `-` for the job's own."""
        self._control_text += os.read(self._control, select.PIPE_BUF)
        *lines, self._control_text = self._control_text.split(b"\n")
        for line in lines:
            try:
                _, cause, grace = line.decode().split(" ")
                request = Cause(cause), None if grace == "-" else int(grace)
            except ValueError:
                continue  # Written by hand, perhaps; the job need not suffer for it.
            self._ending.ask(*request, _boot_ms())

    def _take_due_steps(self, now_ms: int) -> None:
        step = self._ending.due(now_ms)
        while step is not None:
            if step is Step.CHECKPOINT:
                self._send_checkpoint(now_ms)
            else:
                self._signal_all(signal.SIGTERM if step is Step.TERM else signal.SIGKILL)
            step = self._ending.due(now_ms)

    def _send_checkpoint(self, now_ms: int) -> None:
        assert self._job.checkpoint_signal is not None
        pids = processes.descendants(os.getpid())
        willing = processes.catching(pids, self._job.checkpoint_signal)
        processes.send(willing, self._job.checkpoint_signal)
        if not willing:
            self._ending.skip_checkpoint(now_ms)

    def _signal_all(self, number: int) -> None:
        pids = processes.descendants(os.getpid())
        processes.send(pids, number)
        if number == signal.SIGTERM:
            # A stopped process does not see it before it goes on.
            processes.send(pids, signal.SIGCONT)

    # -- the end ------------------------------------------------------------------------------

    def _clean(self) -> None:
        """Kill until none is left. All that the job started is below this process by now."""
        if not self._reap():
            return
        self._notices.cleaning()
        while True:
            self._signal_all(signal.SIGKILL)
            if not self._reap():
                return
            # What the dying still wrote is taken in, or a full pipe would hold them.
            while self._output_waits() and self._take_output():
                pass
            time.sleep(_CLEANING_MS / 1000)

    def _output_waits(self) -> bool:
        return bool(select.select([self._output], [], [], 0)[0])

    def _drain(self) -> None:
        """Read what the pipe still holds. No process of the job is left to write more."""
        while self._output_waits() and self._take_output():
            pass

    def _outcome(self) -> Result:
        status = self._main_status
        assert status is not None, "a job ended without its command"
        exit_code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        cause = self._cause(exit_code)
        if cause is Cause.EXITED:
            return self._result(cause, exit_code, None)
        if cause is Cause.SIGNAL:
            return self._result(cause, None, number)
        return self._result(cause, None, None, self._explain(cause, exit_code, number))

    def _cause(self, exit_code: int | None) -> Cause:
        # A job that lost one process to its limit and succeeded all the same has succeeded.
        if self._limit is not None and exit_code != 0 and self._limit.killed():
            return Cause.OOM
        asked = self._ending.cause
        if asked is not None and asked is not Cause.SIGNAL:
            return asked
        return Cause.SIGNAL if exit_code is None else Cause.EXITED

    def _explain(self, cause: Cause, exit_code: int | None, number: int | None) -> str:
        if cause is Cause.OOM:
            return f"the job needed more than its {self._job.memory_bytes} bytes of memory"
        end = f"exit code {exit_code}" if number is None else f"signal {number}"
        if cause is Cause.MAX_DURATION:
            seconds = (self._job.max_duration_ms or 0) // 1000
            return f"the job ran longer than its {seconds} s and ended with {end}"
        if cause is Cause.LOST:
            return self._explain_silence()
        if cause is Cause.INTERRUPTED:
            return f"{TAKEN_AWAY}, and the job ended with {end}"
        return f"the job was stopped and ended with {end}"

    def _explain_silence(self) -> str:
        seconds = (self._job.silence_ms or 0) // 1000
        return f"its host heard no controller for {seconds} s (`on_silence`)"

    def _result(
        self, cause: Cause, exit_code: int | None, number: int | None, message: str = ""
    ) -> Result:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        # Of the largest process, in KiB, where nothing counts the job as a whole.
        peak = usage.ru_maxrss * 1024 or None
        if self._limit is not None:
            peak = self._limit.peak_bytes() or peak
            self._limit.close()
        return Result(
            *self._job[:6],
            cause.value,
            exit_code,
            number,
            self._started_at_ms,
            # The clock of the host may have been set meanwhile, and has not run for the job.
            self._started_at_ms + _boot_ms() - self._started_ms,
            peak,
            int((usage.ru_utime + usage.ru_stime) * 1000),
            self._log.total_bytes,
            message,
        )


def _wake_on_signals() -> int:
    """Have the end of a child and a request to terminate show as bytes of a pipe."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    return read_end


def _note(_number: int, _frame: Any) -> None:
    """Nothing to do here: the byte in the pipe tells."""


def _boot_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
