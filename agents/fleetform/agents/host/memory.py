"""
What the agent keeps between two lives, and how each piece of it is written down.

The store is a list of entries, each a small JSON object with a `kind`; the last one about
anything wins. What cannot be read from a job's directory is here: whom the agent belongs to,
the highest numbers it has seen, and the record of each job.
"""

from __future__ import annotations

import dataclasses
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fleetform.agents.host.effects import Persist
from fleetform.agents.host.runtimes import PROCESS
from fleetform.agents.protocol.frames import read_value
from fleetform.agents.protocol.messages import Cursor, Event, JobKey, JobRecord
from fleetform.agents.protocol.states import Cause, JobState, moves_forward

TOMBSTONE_DAYS = 30
"""As long as backups of a ledger are kept: an older one must not start a job again."""


class Store(Protocol):
    """
    Where entries lie, each without a newline in it.

    After `commit` what was appended survives everything but a power cut, and that too where one
    of the entries was to be synced. A turn's entries are committed together.
    """

    def load(self) -> list[bytes]: ...
    def append(self, entry: bytes, *, sync: bool) -> None: ...
    def commit(self) -> None: ...


@dataclass(frozen=True)
class StopOrder:
    """A stop that was or will be sent to the supervisor."""

    cause: Cause
    grace_seconds: int | None


@dataclass(frozen=True)
class Entry:
    """
    One job as the agent knows it.

    What the job is to do stands in its directory alone, and goes with it: commands and environment
    may hold what must not stay on a host. `go`: the start is committed, also while it is still being
    prepared. `buried_at_ms` is when the record became a tombstone. `tag` is the job's as in `process_tag`, from its start on.
    """

    record: JobRecord
    boot_id: str
    gpus: tuple[str, ...] = ()
    go: bool = False
    stop: StopOrder | None = None
    buried_at_ms: int = 0
    tag: int = 0
    runtime: str = PROCESS

    @property
    def live(self) -> bool:
        """Tell whether the job may still need its directory, its units and this agent."""
        return self.record.state is not JobState.FINISHED


@dataclass
class Memory:
    """
    All of it; changed by the journal only.

    `install_id` is minted at the agent's first start, so a host that was installed again shows.
    `machine_id` is the machine's own: a copy of the disk in another machine shows.
    `owner_name` is what people call the environment `owner`, and 0 a time that nobody noted.
    """

    install_id: str = ""
    machine_id: str = ""
    owner: str | None = None
    ledger_id: str = ""
    epoch: int = 0
    fence: int = 0
    owner_name: str = ""
    owned_since_ms: int = 0
    entries: dict[JobKey, Entry] = field(default_factory=dict)


def of_identity(memory: Memory) -> Persist:
    """Synced: who owns this host decides what is refused after a power cut."""
    names = (
        "install_id", "machine_id", "owner", "owner_name", "owned_since_ms", "ledger_id", "epoch",
    )  # fmt: skip
    return Persist(_encode("identity", {n: getattr(memory, n) for n in names}), sync=True)


def of_fence(memory: Memory) -> Persist:
    return Persist(_encode("fence", {"fence": memory.fence}))


def of_job(entry: Entry, *, sync: bool = False) -> Persist:
    # Most fields of most entries say nothing; a file read by eye gains from leaving them out.
    said = {k: v for k, v in vars(entry).items() if v and (k, v) != ("runtime", PROCESS)}
    return Persist(_encode("job", said), sync=sync)


def of_removal(keys: Iterable[JobKey]) -> Persist:
    return Persist(_encode("removed", {"keys": list(keys)}))


def restore(entries: Iterable[bytes]) -> Memory:
    """
    Replay entries into what they say at their end.

    Raises:
        ValueError, KeyError or TypeError: One of them was not written by this agent.
    """
    memory = Memory()
    for line in entries:
        fields = json.loads(line)
        kind = fields.pop("kind")
        if kind == "job":
            entry = _read_entry(fields)
            memory.entries[entry.record.key] = entry
        elif kind == "removed":
            for run_uid, attempt, rank in fields["keys"]:
                memory.entries.pop(JobKey(run_uid, attempt, rank), None)
        elif kind in {"identity", "fence"}:
            vars(memory).update(fields)
        else:
            raise ValueError(f"an entry has the unknown kind {kind!r}")
    return memory


def has_requests(entries: Iterable[bytes]) -> bool:
    """Tell whether an agent of an earlier release has written down what jobs were to do."""
    return any(b',"job":{' in line for line in entries)


def snapshot(memory: Memory) -> Iterator[bytes]:
    """Yield the fewest entries that restore the same."""
    yield of_identity(memory).entry
    yield of_fence(memory).entry
    for entry in memory.entries.values():
        yield of_job(entry).entry


# Enums and keys are text and lists to `json`; the dataclasses it does not know have only fields.
_to_json = json.JSONEncoder(separators=(",", ":"), default=vars).encode


def _encode(kind: str, fields: Mapping[str, Any]) -> bytes:
    return _to_json({"kind": kind, **fields}).encode("ascii")


def _read_entry(fields: Mapping[str, Any]) -> Entry:
    stop = fields.get("stop")
    return Entry(
        record=read_value(JobRecord, fields["record"]),
        boot_id=fields.get("boot_id", ""),
        gpus=tuple(fields.get("gpus", ())),
        go=fields.get("go", False),
        stop=None if stop is None else StopOrder(Cause(stop["cause"]), stop["grace_seconds"]),
        buried_at_ms=fields.get("buried_at_ms", 0),
        tag=fields.get("tag", 0),
        runtime=fields.get("runtime", PROCESS),
    )


def bury(entry: Entry, now_ms: int) -> Entry:
    """Reduce a record to what keeps its job from being started again."""
    return Entry(
        record=dataclasses.replace(entry.record, tombstone=True, message=""),
        boot_id=entry.boot_id,
        buried_at_ms=now_ms,
        runtime=entry.runtime,
    )


class Table:
    """
    The jobs an agent knows, found by key and by uid, and who has which unit.

    Indexes over `Memory.entries`, which it alone changes: what may follow what is checked here
    once more.
    """

    def __init__(self, entries: dict[JobKey, Entry]) -> None:
        self._entries = entries
        self._keys = {entry.record.job_uid: key for key, entry in entries.items()}
        self._gpus: dict[str, JobKey] = {}
        for key, entry in entries.items():
            if entry.live:
                self._gpus.update(dict.fromkeys(entry.gpus, key))

    def get(self, key: JobKey) -> Entry | None:
        return self._entries.get(key)

    def by_uid(self, job_uid: str) -> Entry | None:
        key = self._keys.get(job_uid)
        return None if key is None else self._entries[key]

    def holder(self, gpu: str) -> JobKey | None:
        """Return the job that has this GPU; None: it is free."""
        return self._gpus.get(gpu)

    def all(self) -> list[Entry]:
        return list(self._entries.values())

    def put(self, entry: Entry) -> None:
        """Store a job, or its next state."""
        record = entry.record
        known = self._entries.get(record.key)
        assert known is None or not moves_forward(record.state, known.record.state), record
        assert known is None or record.gen >= known.record.gen, record
        self._entries[record.key] = entry
        self._keys[record.job_uid] = record.key
        if entry.live:
            self._gpus.update(dict.fromkeys(entry.gpus, record.key))
        elif known is not None:
            self._release(known)

    def drop(self, keys: Iterable[JobKey]) -> None:
        for key in keys:
            entry = self._entries.pop(key)
            self._release(entry)
            del self._keys[entry.record.job_uid]

    def _release(self, entry: Entry) -> None:
        for gpu in entry.gpus:
            # Somebody else may have it since the job's end.
            if self._gpus.get(gpu) == entry.record.key:
                del self._gpus[gpu]


class EventLog:
    """
    News not yet acknowledged, numbered.

    The log begins anew with each life of the agent, under a new id: a controller with a cursor into
    another log takes all records instead, which are the truth anyway. Only acknowledged events go.

    Attributes: log_id names this log; `oldest` and `newest` are as in `Welcome`.
    """

    def __init__(self, log_id: str) -> None:
        self.log_id = log_id
        self.newest = 0
        self._events: deque[Event] = deque()

    @property
    def oldest(self) -> int:
        return self._events[0].number if self._events else self.newest + 1

    def append(self, record: JobRecord) -> Event:
        self.newest += 1
        event = Event(self.newest, record)
        self._events.append(event)
        return event

    def acknowledge(self, cursor: Cursor) -> None:
        if cursor.log_id == self.log_id:
            while self._events and self._events[0].number <= cursor.number:
                self._events.popleft()

    def covers(self, cursor: Cursor | None) -> bool:
        """Tell whether the events after the cursor are all still here."""
        return (
            cursor is not None
            and cursor.log_id == self.log_id
            and self.oldest - 1 <= cursor.number <= self.newest
        )

    def after(self, number: int) -> list[Event]:
        return [event for event in self._events if event.number > number]
