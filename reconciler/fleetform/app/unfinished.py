"""
Applies that were entered and have not finished: who entered them, and what they still change.

A resource that such an apply changes has its old document in the ledger. A configuration that says
the same as that old document is no sign that nothing changes: the apply is finished first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fleetform.plan.draft import LEAVING

if TYPE_CHECKING:
    from fleetform.model.apply import ApplyRecord
    from fleetform.model.plan import Change, Plan
    from fleetform.model.ports import Reader
    from fleetform.spec.desired import Desired, ResourceKey

_READ_MAX = 20
"""How many of the newest applies may be unfinished."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """One of them; `rest` is its plan with the changes that have a step to come."""

    who: str
    started_at_ms: int
    rest: Plan


def has_unfinished(reader: Reader) -> bool:
    """Tell whether an apply was entered and has not finished."""
    return any(_running(reader))


def _running(reader: Reader) -> Iterator[ApplyRecord]:
    """Yield their records, the newest first."""
    return (one for one in reader.read_applies(limit=_READ_MAX) if one.state == "running")


def read_unfinished(reader: Reader) -> tuple[Unfinished, ...]:
    """Read them, oldest first."""
    # Here: most ledgers have none.
    from fleetform.plan.serialize import load as load_plan

    found = []
    for record in reversed([*_running(reader)]):
        if (body := reader.read_plan(record.plan_digest)) is None:
            continue
        plan = load_plan(body)
        to_come = {
            one.key
            for one in reader.read_operations(record.uid)
            if one.state in {"planned", "intended"}
        }
        left = tuple(
            change for change in plan.changes if any(step.key in to_come for step in change.steps)
        )
        found.append(Unfinished(record.who, record.started_at_ms, replace(plan, changes=left)))
    return tuple(found)


def differing(unfinished: Unfinished, desired: Desired | None) -> tuple[ResourceKey, ...]:
    """Name the resources that are declared otherwise now than the apply leaves them."""
    # `destroy` removes what is declared: that it still is says nothing.
    if desired is None or unfinished.rest.destroys:
        return ()
    return tuple(one.key for one in unfinished.rest.changes if _differs(one, desired))


def _differs(change: Change, desired: Desired) -> bool:
    declared = desired.resources.get(change.key)
    if change.action in LEAVING:
        return declared is not None
    made = [step.arguments["digest"] for step in change.steps if "digest" in step.arguments]
    return bool(made) and (declared is None or declared.digest != made[-1])


def unfinished_annex(reader: Reader, desired: Desired) -> list[Mapping[str, Any]]:
    """State them for the annex of a plan that is made meanwhile."""
    return [
        {
            "who": one.who,
            "started_at_ms": one.started_at_ms,
            "plan": one.rest.digest,
            "changes": [[change.action.value, str(change.key)] for change in one.rest.changes],
            "differing": [str(key) for key in differing(one, desired)],
        }
        for one in read_unfinished(reader)
        if one.rest.changes
    ]
