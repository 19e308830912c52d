"""The environment as one row: which it is, what it holds, and the state of its ledger."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.model import figures
from fleetform.model.redaction import fingerprint
from fleetform.views.overrides import in_force_lines
from fleetform.views.table import row_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleetform.model.instance import Instance
    from fleetform.model.leadership import Holder
    from fleetform.model.live import Live
    from fleetform.spec.desired import Environment


@dataclass(frozen=True, slots=True)
class RunningController:
    """
    The process that applies plans and drives runs.

    `command` is its command, such as `serve` or `apply`. `pid` is its process id on `host`, and 0
    while it starts.
    """

    command: str
    who: str
    pid: int
    host: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class EnvironmentRow:
    """
    One environment. `fingerprint` stands for its uid; its plans contain the same fingerprint.

    `status` is `empty` before the first apply. `serial` grows with every change of the
    ledger. `resources` counts the existing resources by kind. `controller` is null if no controller
    is running: runs and hosts are then as the last controller saw them. `notes` are sentences for
    people: first the overrides in force, such as a takeover, then that no controller is running, why
    the ledger is recovering, and hosts that do not answer.
    """

    name: str
    fingerprint: str
    status: str
    ledger_id: str
    epoch: int
    serial: int
    resources: dict[str, int]
    controller: RunningController | None
    notes: tuple[str, ...]


def environment_row(
    environment: Environment, live: Live | None, *, controller: Holder | None, now_ms: int
) -> EnvironmentRow:
    """
    Make the row.

    Args:
        environment: Which it is.
        live: What its ledger says; None where nothing has been applied.
        controller: Who holds the manager lease; None: no controller is running.
        now_ms: For what is in force, and for ages.
    """
    mark = fingerprint(environment.uid)
    if live is None:
        return EnvironmentRow(
            environment.name, mark, "empty", "", 0, 0, {}, _running(controller), ()
        )
    kinds = Counter(key.kind for key, row in live.resources.items() if not row.archived)
    return row_of(
        EnvironmentRow,
        live,
        name=environment.name,
        fingerprint=mark,
        resources=dict(sorted(kinds.items())),
        controller=_running(controller),
        notes=(
            *in_force_lines(live.overrides, now_ms),
            *(() if controller is not None else (uncontrolled(live.instances, now_ms),)),
            *live.notes,
        ),
    )


def _running(holder: Holder | None) -> RunningController | None:
    if holder is None:
        return None
    return row_of(RunningController, holder)


def uncontrolled(instances: Iterable[Instance], now_ms: int) -> str:
    """Say that no controller is running, and how old what is said of hosts and runs may be."""
    seen = [one.seen_at_ms for one in instances if one.seen_at_ms is not None]
    age = f", last observed {figures.span(max(0, now_ms - min(seen)))} ago" if seen else ""
    return f"no controller is running: the states of hosts and runs may be outdated{age}"


_FRESH_MS = 45_000
"""A controller takes as long until it gives up a host without power (`agents.protocol.link`)."""


def outdated_hosts(instances: Iterable[Instance], now_ms: int) -> str:
    """Say, where no controller is running, that hosts may have died since; empty if all were just heard."""
    there = tuple(instances)
    is_old = any(
        one.seen_at_ms is not None and now_ms - one.seen_at_ms > _FRESH_MS for one in there
    )
    return uncontrolled(there, now_ms) if is_old else ""
