"""
The jobs an agent knows, found by key and by uid, and who has which unit.

The one place where entries change; what may follow what is checked here once more.
"""

from __future__ import annotations

from collections.abc import Iterable

from fleetform.agents.host.memory import Entry
from fleetform.agents.protocol.messages import JobKey
from fleetform.agents.protocol.states import moves_forward


class Table:
    """Indexes over `Memory.entries`, which it alone changes."""

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
        """Take in a job, or its next state."""
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
