"""Jobs, journals and disks of memory for the agent's unit tests."""

from __future__ import annotations

import dataclasses
from typing import Any

from fleetform.agents.host import memory
from fleetform.agents.host.effects import Announce, Effect, Persist, Send
from fleetform.agents.host.journal import Journal
from fleetform.agents.host.memory import Memory
from fleetform.agents.host.result import Result
from fleetform.agents.protocol.messages import Hello, JobKey, JobRecord, Prepare, Reply, StartJob
from fleetform.agents.protocol.states import Cause

BOOT = "boot-1"
NOW = 1_700_000_000_000

HELLO = Hello("environment", "ledger", 1, 1)


def journal(known: Memory | None = None, *, boot_id: str = BOOT, log_id: str = "log-1") -> Journal:
    """Return a journal that belongs to nobody yet, or goes on from a memory."""
    known = known or Memory(install_id="install", machine_id="machine")
    return Journal(known, boot_id=boot_id, log_id=log_id, version="1")


def job(name: str = "a", **fields: Any) -> StartJob:
    values: dict[str, Any] = {
        "job_uid": f"job-{name}",
        "key": JobKey(name, 1, 0),
        "gen": 1,
        "boot_id": BOOT,
        "run_name": name,
        "commands": ("true",),
    }
    return StartJob(**{**values, **fields})


def prepare(spec: StartJob, id_: int = 1) -> Prepare:
    return Prepare(id_, spec)


def result(name: str = "a", **fields: Any) -> Result:
    values: dict[str, Any] = {
        "job_uid": f"job-{name}",
        "run_uid": name,
        "attempt": 1,
        "rank": 0,
        "gen": 1,
        "digest": "d",
        "cause": Cause.EXITED.value,
        "exit_code": 0,
        "signal": None,
        "started_at_ms": NOW,
        "finished_at_ms": NOW + 5,
        "peak_memory_bytes": 1024,
        "cpu_time_ms": 3,
        "log_bytes": 12,
        "message": "",
    }
    return Result(**{**values, **fields})


def reply(effects: list[Effect]) -> Reply:
    """Return the one answer among the effects."""
    (sent,) = [effect.reply for effect in effects if isinstance(effect, Send)]
    return sent


def announced(effects: list[Effect]) -> list[JobRecord]:
    return [effect.event.record for effect in effects if isinstance(effect, Announce)]


def of_kind(effects: list[Effect], kind: type[Any]) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


class Disk:
    """A store in memory: what is not synced goes with a power cut."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self._synced = 0

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                self.lines.append(effect.entry)
                if effect.sync:
                    self._synced = len(self.lines)

    def cut_power(self) -> None:
        del self.lines[self._synced :]

    def restore(self) -> Memory:
        return memory.restore(self.lines)


def newer(spec: StartJob, gen: int, **fields: Any) -> StartJob:
    return dataclasses.replace(spec, gen=gen, **fields)
