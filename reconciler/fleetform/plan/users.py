"""
Who is at work on what is to go: on a volume's data, or on the hosts of a fleet that is forgotten.

Told from every row that may have something at work, tombstones among them: what has left the tree
goes on until its end. Who is on its way there already is waited for, and apply follows the plan; for
all others somebody has to decide first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetform.model.live import LiveResource
from fleetform.model.plan import HeldBy
from fleetform.model.rows import restless_rows
from fleetform.plan.draft import Sheet
from fleetform.plan.phase import Execution, executions
from fleetform.spec.desired import ResourceKey

__all__ = ["User", "hold_while_used", "users"]

User = tuple[LiveResource, Execution]
"""The row of a name, and what is at work under it: itself, or the run that it waits for."""


def users(sheet: Sheet) -> Iterator[User]:
    """Find all that is at work, in order of name."""
    rows = restless_rows(sheet.live.resources)
    for key in sorted(rows):
        if key.kind == "run":
            yield from ((rows[key], one) for one in executions(rows[key]))


def hold_while_used(
    sheet: Sheet, key: ResourceKey, here: Sequence[User], told: tuple[str, str]
) -> None:
    """
    Hold a change until nobody uses what it takes away.

    Args:
        sheet: The plan so far.
        key: That of the change.
        here: Who is at work there, one at least, in order of name.
        told: How it uses that, as a clause behind one name and behind several.
    """
    names = list(dict.fromkeys(str(row.key) for row, _ in here))
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    clause = f"{names[0]}{others} {told[1] if others else told[0]}"
    if all(one.ending for _, one in here):
        sheet.hold(
            key,
            HeldBy.ENDING,
            f"{clause}, and {'are' if others else 'is'} still ending",
            f"`fleetform apply` waits until {'they have' if others else 'it has'} ended",
            awaited={one.uid: row.key.name for row, one in here},
        )
        return
    when = "they have" if others else "it has"
    sheet.hold(key, HeldBy.RUNNING_WORK, clause, f"plan again once {when} ended")
