"""
What a person should hear about a plan as a whole before reading what it does.

That much goes, because a tree that was read in part looks like one from which much was taken out;
that a plan goes back, because a pipeline that is run again says nothing of what came since; that
nothing can start, because a run without a host waits and says nothing by itself; and that rules
change, because they are not those by which this plan was judged.
"""

from __future__ import annotations

from fleetform.model.figures import counted
from fleetform.model.plan import Change
from fleetform.model.windows import loosened
from fleetform.plan.draft import LEAVING, Sheet
from fleetform.spec.desired import Rules
from fleetform.spec.names import natural_order

__all__ = ["cautions"]

GOING_MIN = 3
"""Of two resources one is half; nobody needs to be told that."""


def cautions(sheet: Sheet) -> tuple[str, ...]:
    """Return sentences, the gravest first."""
    return (
        *_much_goes(sheet),
        *_goes_back(sheet),
        *_rules_change(sheet),
        *_nowhere_to_run(sheet),
    )


def _much_goes(sheet: Sheet) -> tuple[str, ...]:
    """Held or not: what the budget keeps today goes with the next flag."""
    # Somebody who asks for the removal of everything has been told so.
    if sheet.permissions.destroy:
        return ()
    changes = (*sheet.changes.values(), *(held.change for held in sheet.held.values()))
    going = sum(change.action in LEAVING and _is_there(sheet, change) for change in changes)
    there = len(sheet.present)
    if going < GOING_MIN or going * 2 <= there:
        return ()
    return (
        (
            f"{going} of the {counted(there, 'resource')} that exist are removed from the"
            " configuration: that is more than half."
        ),
    )


def _goes_back(sheet: Sheet) -> tuple[str, ...]:
    """An older commit over the one that it became: a revert is a commit of its own."""
    newer = sheet.live.newer_commit
    if not newer or sheet.permissions.destroy or not (sheet.changes or sheet.held):
        return ()
    return (
        (
            f"Commit {sheet.desired.commit[:12]} is older than {newer[:12]}, which was applied last: this"
            " plan returns to the older configuration."
        ),
    )


def _nowhere_to_run(sheet: Sheet) -> tuple[str, ...]:
    """Runs are submitted, and once this plan is carried out there is no fleet."""
    steps = [step for change in sheet.changes.values() for step in change.steps]
    waiting = [step.resource.name for step in steps if step.verb == "run.submit"]
    if not waiting:
        return ()
    fleets = {key for key in sheet.present if key.kind == "fleet"}
    fleets |= {step.resource for step in steps if step.verb in {"fleet.make", "fleet.adopt"}}
    fleets -= {step.resource for step in steps if step.verb in {"fleet.remove", "fleet.forget"}}
    if fleets:
        return ()
    first = min(waiting, key=natural_order)
    more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
    verb = "wait" if more else "waits"
    cure = "declare a fleet"
    if any(key.kind == "fleet" for key in (*sheet.desired.resources, *sheet.desired.beyond)):
        cure = "each declared fleet is blocked or left out of this plan"
    return ((f"There will be no fleet, so {first}{more} {verb}: {cure}."),)


def _is_there(sheet: Sheet, change: Change) -> bool:
    return sheet.row_key(change) in sheet.present


def _rules_change(sheet: Sheet) -> tuple[str, ...]:
    if not sheet.live.ledger_id:
        return ()  # Before the first apply there is nothing that they could have allowed.
    steps = (step for change in sheet.changes.values() for step in change.steps)
    after = next(
        (Rules.of(step.arguments["rules"]) for step in steps if step.verb == "rules.set"), None
    )
    if after is None:
        return ()
    paths = loosened(sheet.rules, after)
    if not paths:
        return (
            "The changed rules apply from the next plan on; this plan is judged by the rules applied last.",
        )
    verb = "allows" if len(paths) == 1 else "allow"
    return (
        (
            f"{' and '.join(paths)} {verb} more from the next plan on; this plan is judged by the rules"
            " applied last."
        ),
    )
