"""One apply as the ledger knows it: entered, begun step by step, and over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Accepted:
    """
    A plan's entry into the ledger.

    state: `new`, `resumed` (accepted before and not finished), `already-applied`.
    `done` are the keys of steps that are already carried out.
    """

    apply_uid: str
    state: str
    done: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Begun:
    """Uids of a step's operation, and of its resource: minted when it is new."""

    operation_uid: str
    resource_uid: str


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What came of one step; `error` empty when it is done. `outputs` are kept with the row."""

    key: str
    error: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ApplyRecord:
    """One apply of the history. state: `running`, `done`, `failed`, `interrupted`."""

    uid: str
    plan_digest: str
    state: str
    who: str
    commit: str
    started_at_ms: int
    finished_at_ms: int | None
    summary: str
