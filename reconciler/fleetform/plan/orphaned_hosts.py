"""
Hosts that were let go, and fleets that are declared where they were.

They are up, under the names that they had, with whatever runs on them. A fleet that would make
others under those names is refused by the machine they are on, so the plan holds it and says how
they are taken back. A fleet that somebody began to make so takes them in with the same words.
"""

from __future__ import annotations

import json

from fleetform.model.live import LiveResource
from fleetform.model.plan import HeldBy
from fleetform.plan.draft import Proposal, Sheet
from fleetform.plan.hosts import ends_unfinished
from fleetform.plan.kinds.fleet import propose_taking_in, recreates, was_made
from fleetform.spec.desired import Declared, ResourceKey

__all__ = ["hold_taken_names", "may_be_there", "taken_in"]

_MAKES = frozenset({"fleet.make", "fleet.update"})


def taken_in(sheet: Sheet, declared: Declared, row: LiveResource) -> Proposal | None:
    """What an entry of `import:` means for a fleet that is there; None where it means nothing."""
    if declared.key.kind != "fleet" or declared.key not in sheet.desired.imports:
        return None
    if was_made(row) and recreates(json.loads(row.document), declared.document):
        return None
    if ends_unfinished(sheet, declared, row):
        return None
    proposal = propose_taking_in(declared, row)
    wanted = {one["name"] for one in proposal.change.steps[0].arguments["instances"]}
    return proposal if _in_the_way(sheet, declared.key, wanted) else None


def may_be_there(sheet: Sheet, declared: Declared) -> bool:
    """Tell whether there can be what an entry of `import:` names; of hosts the ledger knows it."""
    return declared.key.kind != "fleet" or bool(sheet.live.let_go)


def hold_taken_names(sheet: Sheet) -> None:
    for key in sorted(sheet.changes) if sheet.live.let_go_names else ():
        if key.kind != "fleet":
            continue
        wanted = {
            one["name"]
            for step in sheet.changes[key].steps
            if step.verb in _MAKES
            for one in step.arguments["instances"]
        }
        names = sorted(_in_the_way(sheet, key, wanted))
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            sheet.hold(
                key,
                HeldBy.DEPENDENCY,
                f"host {names[0]}{more} was released and still runs under that name",
                f"write `import: [{key}]` in environment.yaml to adopt it with the jobs that run there",
            )


def _in_the_way(sheet: Sheet, fleet: ResourceKey, wanted: set[str]) -> set[str]:
    """Names of let-go hosts that a fleet wants, and has no host of its own with that ever answered."""
    own = {one.name for one in sheet.live.instances if one.fleet == fleet.name and one.install_id}
    return (wanted & sheet.live.let_go_names) - own
