"""
The environment itself: its rules are a change like any other.

A plan is judged by the rules last applied, so what a commit loosens helps the next plan and
never itself.
"""

from __future__ import annotations

from fleetform.model.plan import Action, Change, Reason
from fleetform.model.verbs import Verb
from fleetform.plan.diff import changed_fields
from fleetform.plan.draft import Proposal, make_step
from fleetform.spec.desired import Environment, ResourceKey, Rules


def propose_rules(environment: Environment, applied: Rules) -> Proposal | None:
    """Compare rules with those last applied; the default ones before the first apply."""
    if environment.rules == applied:
        return None
    key = ResourceKey("environment", environment.name)
    wanted = environment.rules.document()
    return Proposal(
        Change(
            key=key,
            action=Action.UPDATE,
            reasons=(Reason.CONTROL_CHANGED,),
            type="environment",
            fields=changed_fields("environment", {"rules": applied.document()}, {"rules": wanted}),
            steps=(make_step(Verb.RULES_SET, key, {"rules": wanted}),),
        )
    )
