"""
The agent's mind: what it accepts, what it refuses and what it remembers. Values in, values out.

Each message and each observation goes in here, and effects come out; the daemon carries them
out and decides nothing. The simulation runs the same journal without a daemon. What is promised
whatever is lost, doubled, late or out of order:

- a job key is started at most once, and never after it has been stopped or forgotten;
- units are given to one job at a time;
- states move forward only, and an end, once said, stays what it is.

A command is a copy of a row that has been committed, and `gen`, which counts the changes of the row,
tells how new it is. The checks stand in this order: ledger and epoch when a connection begins
(`admission`), then the boot, then `gen`.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Union

from fleetform.agents.host import admission, memory, process_tag
from fleetform.agents.host.answers import accept, refuse, refuse_boot
from fleetform.agents.host.effects import (
    Announce,
    Effect,
    KillLeftovers,
    Persist,
    RemoveJobDirectory,
    Send,
    SignalStop,
    StartPreparing,
    StartSupervisor,
)
from fleetform.agents.host.layout import is_job_uid
from fleetform.agents.host.memory import Entry, EventLog, Memory, StopOrder, Table
from fleetform.agents.host.result import Result
from fleetform.agents.host.runtimes import PROCESS, RUNTIMES
from fleetform.agents.protocol.frames import job_digest
from fleetform.agents.protocol.messages import (
    CAPABILITIES,
    PROTOCOL_OLDEST,
    Acknowledge,
    Event,
    Forget,
    Hello,
    JobKey,
    JobRecord,
    Prepare,
    Rejected,
    Reply,
    Start,
    StartJob,
    Stop,
    Welcome,
)
from fleetform.agents.protocol.states import MAY_RUN, TAKEN_AWAY, Cause, JobState, moves_forward

Command = Union[Prepare, Start, Stop, Forget, Acknowledge]

_DAY_MS = 24 * 3600 * 1000

_NOT_STARTED = frozenset({JobState.PREPARING, JobState.PREPARED})


class Journal:
    """
    Holds `Memory` and the log of events; nothing else changes them.

    Attributes:
        log: Events not yet acknowledged.
    """

    def __init__(
        self, known: Memory, *, boot_id: str, log_id: str, version: str, tag_base: int = 0
    ) -> None:
        """`tag_base` is `process_tag.base()` of the spawner, from which its jobs are tagged."""
        self._memory = known
        self._tag_base = tag_base
        self._boot_id = boot_id
        self._version = version
        self.log = EventLog(log_id)
        self._table = Table(known.entries)

    # -- what is known ----------------------------------------------------------------------

    @property
    def owner(self) -> str | None:
        return self._memory.owner

    @property
    def owner_name(self) -> str:
        return self._memory.owner_name

    @property
    def memory(self) -> Memory:
        """For writing a shorter store; not to be changed."""
        return self._memory

    def has_live_jobs(self) -> bool:
        return any(entry.live for entry in self._table.all())

    def find(self, job_uid: str) -> JobRecord | None:
        entry = self._table.by_uid(job_uid)
        return None if entry is None else entry.record

    # -- a connection begins ------------------------------------------------------------------

    def hello(self, hello: Hello, now_ms: int = 0) -> tuple[Welcome | Rejected, list[Effect]]:
        """Decide whether to obey, and whom from now on; the effects come before the answer."""
        rejected = admission.objection(hello, self._memory)
        if rejected is not None:
            return rejected, []
        effects = [] if hello.look else admission.adopt(hello, self._memory, now_ms)
        known = self._memory
        covered = self.log.covers(hello.cursor) and not hello.look
        welcome = Welcome(
            owner=known.owner,
            ledger_id=known.ledger_id,
            epoch=known.epoch,
            install_id=known.install_id,
            boot_id=self._boot_id,
            machine_id=known.machine_id,
            log_id=self.log.log_id,
            oldest=self.log.oldest,
            newest=self.log.newest,
            records=None if covered else admission.records(known.entries.values()),
            version=self._version,
            protocol=admission.agreed_protocol(hello) or PROTOCOL_OLDEST,
            capabilities=CAPABILITIES if hello.protocol_newest else (),
        )
        return welcome, effects

    def news_for(self, hello: Hello) -> list[Event]:
        """Return the events to be sent after the welcome; none where it carried all records."""
        if hello.cursor is None or not self.log.covers(hello.cursor):
            return []
        return self.log.after(hello.cursor.number)

    # -- commands -----------------------------------------------------------------------------

    def handle(self, command: Command, now_ms: int) -> list[Effect]:
        """Obey or refuse. `now_ms` is Unix time, for tombstones and display."""
        if isinstance(command, Prepare):
            return self._prepare(command)
        if isinstance(command, Start):
            return self._start(command)
        if isinstance(command, Stop):
            return self._stop(command, now_ms)
        if isinstance(command, Forget):
            return self._forget(command, now_ms)
        self.log.acknowledge(command.cursor)
        return []

    def _prepare(self, command: Prepare) -> list[Effect]:
        job, digest = command.job, job_digest(command.job)
        entry = self._table.get(job.key)
        if job.boot_id != self._boot_id:
            return [refuse_boot(command.id, job.boot_id, self._boot_id, entry)]
        if entry is not None:
            return self._prepare_again(command.id, job, digest, entry)
        objection = self._objection(job)
        if objection is not None:
            return [refuse(command.id, *objection)]
        record = JobRecord(
            job.key,
            job.job_uid,
            job.gen,
            digest,
            JobState.PREPARING,
            run_name=job.run_name,
            execution_digest=job.execution_digest,
        )
        entry = Entry(record, self._boot_id, job.gpus, job.go, runtime=job.runtime)
        return [self._keep(entry), accept(command.id, entry), StartPreparing(job, digest)]

    def _prepare_again(self, id_: int, job: StartJob, digest: str, entry: Entry) -> list[Effect]:
        known = entry.record
        same = job.gen == known.gen and digest == known.digest
        if known.tombstone and not same:
            return [refuse(id_, "stale", "the job was stopped or removed", entry)]
        if job.gen < known.gen:
            return [refuse(id_, "stale", "the agent has a newer command", entry)]
        if digest != known.digest:
            message = "the same job was prepared with other content"
            return [refuse(id_, "conflict", message, entry)]
        effects = self._advance(entry, job.gen, go=job.go) if entry.live else []
        return [*effects, accept(id_, self._known(job.key))]

    def _objection(self, job: StartJob) -> tuple[str, str] | None:
        """Say why a job that is new here is not taken."""
        if not is_job_uid(job.job_uid):
            return "invalid", f"{job.job_uid!r} is not valid as the name of a directory"
        other = self._table.by_uid(job.job_uid)
        if other is not None:
            return "conflict", f"{job.job_uid} is the uid of another job, {other.record.key}"
        if job.runtime not in RUNTIMES:
            known = ", ".join(map(repr, RUNTIMES))
            return (
                "unsupported",
                f"this agent supports the runtime {known} only, not {job.runtime!r}",
            )
        foreign = sorted(set(job.compat) - {"slurm"})
        if foreign:
            return (
                "unsupported",
                f"this agent supports the commands of 'slurm' only, not of {foreign[0]!r}",
            )
        for gpu in job.gpus:
            holder = self._table.holder(gpu)
            if holder is not None:
                return "busy", f"GPU {gpu} is in use by job {holder}"
        return None

    def _start(self, command: Start) -> list[Effect]:
        entry = self._table.get(command.key)
        if command.boot_id != self._boot_id:
            return [refuse_boot(command.id, command.boot_id, self._boot_id, entry)]
        if entry is None:
            return [refuse(command.id, "not_found", "the job was not prepared on this host")]
        known = entry.record
        if command.gen < known.gen or (not entry.live and command.gen > known.gen):
            return [refuse(command.id, "stale", "the job has already passed that step", entry)]
        effects = self._advance(entry, command.gen, go=True) if entry.live else []
        return [*effects, accept(command.id, self._known(command.key))]

    def _advance(self, entry: Entry, gen: int, *, go: bool) -> list[Effect]:
        """Accept a newer row of a live job, and start the job once that is committed."""
        go = go or entry.go
        if (gen, go) == (entry.record.gen, entry.go):
            return []
        newer = _with(dataclasses.replace(entry, go=go), gen=gen)
        if go and newer.record.state is JobState.PREPARED:
            return self._commit_start(newer)
        return [self._keep(newer)]

    def _commit_start(self, entry: Entry) -> list[Effect]:
        # Kept before the spawner is asked: without its directory a job that may have started
        # must not look like one that has not. From here the directory says what the job is.
        tag = process_tag.of_job(entry.record.job_uid, self._tag_base)
        entry = dataclasses.replace(entry, tag=tag)
        starting = _with(entry, state=JobState.STARTING)
        return [self._keep(starting), StartSupervisor(entry.record.job_uid)]

    def _stop(self, command: Stop, now_ms: int) -> list[Effect]:
        entry = self._table.get(command.key)
        if entry is None:
            if self._table.by_uid(command.job_uid) is not None:
                return [
                    refuse(command.id, "conflict", f"{command.job_uid} is the uid of another job")
                ]
            entry = self._never_seen(command)
            return [*self._never_start(entry, now_ms), self._answer(command)]
        if command.job_uid != entry.record.job_uid:
            return [refuse(command.id, "conflict", "the job has another uid on this host", entry)]
        if command.gen < entry.record.gen:
            return [refuse(command.id, "stale", "the agent has a newer command", entry)]
        return [*self._stop_known(command, entry, now_ms), self._answer(command)]

    def _stop_known(self, command: Stop, entry: Entry, now_ms: int) -> list[Effect]:
        newer = _with(entry, gen=command.gen)
        if entry.record.state in _NOT_STARTED:
            return self._never_start(newer, now_ms)
        if not entry.live:
            return [self._keep(newer)] if newer != entry else []
        order = StopOrder(command.cause, command.grace_seconds)
        if entry.stop == order and newer == entry:
            return []
        newer = dataclasses.replace(newer, stop=order)
        return [self._keep(newer), _signal(newer)]

    def _never_seen(self, command: Stop) -> Entry:
        record = JobRecord(command.key, command.job_uid, command.gen, "", JobState.PREPARING)
        return Entry(record, self._boot_id)

    def _never_start(self, entry: Entry, now_ms: int) -> list[Effect]:
        """Leave a tombstone, so that a start which is still under way finds it."""
        ended = _with(
            entry,
            state=JobState.FINISHED,
            cause=Cause.NEVER_STARTED,
            finished_at_ms=now_ms,
        )
        buried = memory.bury(ended, now_ms)
        removal = RemoveJobDirectory(entry.record.job_uid)
        return [self._keep(buried), removal, self._announce(buried)]

    def _forget(self, command: Forget, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        refused = []
        for key in command.keys:
            entry = self._table.get(key)
            if entry is None or entry.record.tombstone:
                continue
            if entry.live:
                refused.append(key)
                continue
            # Synced: a ledger restored from a backup asks for this job once more.
            effects.append(self._keep(memory.bury(entry, now_ms), sync=True))
            effects.append(RemoveJobDirectory(entry.record.job_uid))
        if refused:
            message = f"{len(refused)} of the jobs have not ended"
            body: dict[str, Any] = {"refused": [list(key) for key in refused]}
            return [*effects, Send(Reply(command.id, False, "busy", message, body))]
        return [*effects, Send(Reply(command.id, True))]

    def stop_all(self, now_ms: int) -> list[Effect]:
        """End every job, for an agent that is to go; what has not started never will."""
        effects: list[Effect] = []
        for entry in self.entries():
            if entry.record.state in _NOT_STARTED:
                effects += self._never_start(entry, now_ms)
            elif entry.live and entry.stop is None:
                stopping = dataclasses.replace(entry, stop=StopOrder(Cause.STOPPED, None))
                effects += [self._keep(stopping), _signal(stopping)]
        return effects

    def interrupt(self, now_ms: int, *, grace_seconds: int | None) -> list[Effect]:
        """
        End every job because the host is taken away; what has not started never will.

        The controller hears of it at once, so that it places no other job here while these save their work.
        """
        effects: list[Effect] = []
        order = StopOrder(Cause.INTERRUPTED, grace_seconds)
        for entry in self.entries():
            if entry.record.state in _NOT_STARTED:
                effects += self._never_start(entry, now_ms)
            elif entry.live and entry.stop != order:
                is_first = entry.stop is None or entry.stop.cause is not Cause.INTERRUPTED
                stopping = dataclasses.replace(entry, stop=order)
                effects += [self._keep(stopping), _signal(stopping)]
                if is_first:
                    effects.append(
                        self._announce(_with(stopping, cause=order.cause, message=TAKEN_AWAY))
                    )
        return effects

    # -- observations -----------------------------------------------------------------------

    def prepared(self, job_uid: str) -> list[Effect]:
        """The job's directory is complete."""
        entry = self._table.by_uid(job_uid)
        if entry is None or entry.record.state is not JobState.PREPARING:
            # Stopped while it was being prepared: what has been made since then goes too.
            buried = entry is None or entry.record.tombstone
            return [RemoveJobDirectory(job_uid)] if buried else []
        if entry.go:
            return self._commit_start(entry)
        prepared = _with(entry, state=JobState.PREPARED)
        self._table.put(prepared)
        return [self._announce(prepared)]

    def prepare_failed(self, job_uid: str, message: str, now_ms: int) -> list[Effect]:
        """The host could not make the directory; nothing of the job has run."""
        entry = self._table.by_uid(job_uid)
        if entry is None or entry.record.state not in _NOT_STARTED:
            return [RemoveJobDirectory(job_uid)]
        return self._finish(
            entry, cause=Cause.PREPARE_FAILED, message=message, finished_at_ms=now_ms
        )

    def supervisor_started(self, job_uid: str, now_ms: int) -> list[Effect]:
        """The spawner has forked one, or one of an earlier agent's has been found."""
        entry = self._table.by_uid(job_uid)
        if entry is None or not moves_forward(entry.record.state, JobState.RUNNING):
            return []
        started_at_ms = entry.record.started_at_ms or now_ms
        running = _with(
            entry,
            state=JobState.RUNNING,
            started_at_ms=started_at_ms,
        )
        self._table.put(running)
        return [self._announce(running)]

    def supervisor_refused(self, job_uid: str, message: str, now_ms: int) -> list[Effect]:
        """The spawner could not fork one: no process of the job has existed."""
        entry = self._table.by_uid(job_uid)
        if entry is None or entry.record.state is not JobState.STARTING:
            return []
        return self._finish(
            entry, cause=Cause.PREPARE_FAILED, message=message, finished_at_ms=now_ms
        )

    def supervisor_cleaning(self, job_uid: str) -> list[Effect]:
        """The command has ended, and processes that it left are being killed."""
        entry = self._table.by_uid(job_uid)
        if entry is None or not moves_forward(entry.record.state, JobState.CLEANING):
            return []
        cleaning = _with(entry, state=JobState.CLEANING)
        self._table.put(cleaning)
        return [self._announce(cleaning)]

    def supervisor_ended(self, result: Result) -> list[Effect]:
        """A result has been found in the job's slot."""
        entry = self._table.by_uid(result.job_uid)
        if entry is None or not entry.live:
            return []
        return self._finish(
            entry,
            cause=Cause(result.cause),
            exit_code=result.exit_code,
            signal=result.signal,
            message=result.message,
            started_at_ms=result.started_at_ms,
            finished_at_ms=result.finished_at_ms,
            peak_memory_bytes=result.peak_memory_bytes,
            cpu_time_ms=result.cpu_time_ms,
            log_bytes=result.log_bytes,
        )

    def supervisor_vanished(self, job_uid: str) -> list[Effect]:
        """No supervisor holds the job's lock, and no result is there. It may not run again."""
        entry = self._table.by_uid(job_uid)
        if entry is None or entry.record.state not in MAY_RUN:
            return []
        return [KillLeftovers(job_uid)]

    def unproven(self, job_uid: str, message: str) -> list[Effect]:
        """Its supervisor is dead, and whether all of its processes are cannot be proven."""
        entry = self._table.by_uid(job_uid)
        if entry is None or not moves_forward(entry.record.state, JobState.UNKNOWN):
            return []
        unknown = _with(entry, state=JobState.UNKNOWN, message=message)
        self._table.put(unknown)
        return [self._announce(unknown)]

    def runtime_of(self, job_uid: str) -> str:
        """Return the name of the runtime that a job was prepared with."""
        entry = self._table.by_uid(job_uid)
        return PROCESS if entry is None else entry.runtime

    def tag_of(self, job_uid: str) -> int:
        """Return the tag that a job's processes were started with."""
        entry = self._table.by_uid(job_uid)
        return process_tag.UNTAGGED if entry is None else entry.tag

    def lost(self, job_uid: str, message: str, log_bytes: int, now_ms: int) -> list[Effect]:
        """Nothing of the job runs any more, and its end is unknown."""
        entry = self._table.by_uid(job_uid)
        if entry is None or not entry.live:
            return []
        return self._finish(
            entry,
            cause=Cause.LOST,
            message=message,
            finished_at_ms=now_ms,
            log_bytes=log_bytes,
        )

    def expire(self, now_ms: int) -> list[Effect]:
        """Drop tombstones that no backup can need any more."""
        limit_ms = now_ms - memory.TOMBSTONE_DAYS * _DAY_MS
        old = [
            entry.record.key
            for entry in self._table.all()
            if entry.record.tombstone and entry.buried_at_ms < limit_ms
        ]
        self._table.drop(old)
        return [memory.of_removal(old)] if old else []

    # -- what recovery needs besides ----------------------------------------------------------

    def found_prepared(self, job_uid: str, now_ms: int) -> list[Effect]:
        """The directory is complete and was never started; the start may be committed."""
        entry = self._table.by_uid(job_uid)
        if entry is not None and entry.stop is not None:
            return self._never_start(entry, now_ms)
        if entry is not None and entry.record.state is JobState.STARTING:
            return [StartSupervisor(job_uid)]
        return self.prepared(job_uid)

    def forget_unprepared(self, job_uid: str) -> list[Effect]:
        """
        Drop a job whose directory was never complete: what it is to do is known nowhere here.

        The controller finds it missing and prepares it again, by its newest row.
        """
        entry = self._table.by_uid(job_uid)
        if entry is None or entry.record.state is not JobState.PREPARING:
            return []
        self._table.drop([entry.record.key])
        return [memory.of_removal([entry.record.key])]

    def adopt(self, record: JobRecord) -> list[Effect]:
        """Adopt a job whose directory is here and whose record was lost."""
        if self._table.get(record.key) or self._table.by_uid(record.job_uid):
            return []
        return [self._keep(Entry(record, self._boot_id))]

    def entries(self) -> list[Entry]:
        return self._table.all()

    # -- keeping ------------------------------------------------------------------------------

    def _known(self, key: JobKey) -> Entry:
        entry = self._table.get(key)
        assert entry is not None, key
        return entry

    def _keep(self, entry: Entry, *, sync: bool = False) -> Persist:
        """
        Take an entry in, to be written down.

        Steps that show in the job's directory are only put into the table.
        """
        self._table.put(entry)
        return memory.of_job(entry, sync=sync)

    def _finish(self, entry: Entry, **fields: Any) -> list[Effect]:
        # Not synced: the result lies synced in its slot, and without one a reboot says `lost`.
        ended = _with(entry, state=JobState.FINISHED, **fields)
        ended = dataclasses.replace(ended, stop=None)
        return [self._keep(ended), self._announce(ended)]

    def _announce(self, entry: Entry) -> Announce:
        return Announce(self.log.append(entry.record))

    def _answer(self, command: Stop) -> Send:
        return accept(command.id, self._known(command.key))


def _with(entry: Entry, **fields: Any) -> Entry:
    """Return the entry with its record changed."""
    return dataclasses.replace(entry, record=dataclasses.replace(entry.record, **fields))


def _signal(entry: Entry) -> SignalStop:
    assert entry.stop is not None
    return SignalStop(entry.record.job_uid, entry.stop.cause, entry.stop.grace_seconds)
