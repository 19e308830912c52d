"""Events: what happened, for people; append-only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fleetform.spec.desired import ResourceKey


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """
    One line of history.

    `kind` is dotted and constant (`run.started`, `job.finished`, `fleet.made`, `plan.applied`);
    values are in `data`. `message` is a sentence. `at_ms` is Unix milliseconds. `number` is given
    by the ledger, 0 before.
    """

    kind: str
    at_ms: int
    message: str
    resource: ResourceKey | None = None
    attempt: int | None = None
    rank: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0
