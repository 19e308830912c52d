"""
Saved plans under the same invariants, although their configuration is not read again.

What it wants is what its steps carry, also of what it holds and leaves for another; all else stays
as it is. So every check holds that the ledger can answer: protection, budget, what was permitted
when it was made, finished runs, the rules that were applied last. That its documents are those of
some commit is the digest's to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fleetform.checker.check import check
from fleetform.checker.context import Violation, renamed, renamed_rows
from fleetform.model.plan import Change, Plan, Reason, Step
from fleetform.model.verbs import KINDS, Verb
from fleetform.spec.desired import Declared, Desired, Environment, ResourceKey, Rules
from fleetform.spec.findings import Place
from fleetform.spec.references import Catalogue, Entry, Upstream, mentioned, required

if TYPE_CHECKING:
    from fleetform.model.live import Live, LiveResource

__all__ = ["check_saved"]


def check_saved(plan: Plan, live: Live) -> tuple[Violation, ...]:
    """
    Check a saved plan against the actual state.

    Returns:
        As `check`; what has come to be since it was made may have made it wrong, so a violation
        is no fault of ours here.
    """
    assert plan.kept is not None, "the plan is not from a file"
    if not plan.ledger_id:
        # It was made before there was a ledger; that its resources are absent says the rest.
        live = replace(live, ledger_id="", epoch=plan.epoch)
    return check(plan, _desired(plan, live), live, plan.kept.permissions, plan.scope)


def _desired(plan: Plan, live: Live) -> Desired:
    """The tree that the plan moves the ledger to."""
    resources = {
        key: _as_it_is(row)
        for key, row in renamed_rows(plan, live).items()
        if not row.archived and key.kind in KINDS
    }
    # What is held or left is wanted too: a target brings along what it needs by way of that.
    left = (*(one.change for one in plan.held), *(one.change for one in plan.deferred))
    for change in (*plan.changes, *left):
        # What is only renamed is there as it was.
        steps = [step for step in change.steps if step.verb != Verb.RESOURCE_MOVE]
        for name in {change.key.name, change.replaces} if steps else ():
            resources.pop(ResourceKey(change.key.kind, name), None)
        for step in steps:
            if step.arguments.get("document") is not None:
                resources[step.resource] = _carried(step, change)
    rules = [step.arguments["rules"] for step in plan.steps if step.verb == Verb.RULES_SET]
    if plan.scope.targets:
        resources = _waiting(resources)
    return Desired(
        environment=Environment(
            plan.environment_name,
            live.environment_uid,
            Rules.of(rules[0]) if rules else live.rules or Rules(),
        ),
        resources=dict(sorted(resources.items())),
        commit=plan.commit,
        digest=plan.tree_digest,
        moved=tuple(renamed(plan).items()),
        removed=tuple(one.key for one in plan.changes if Reason.RELEASED in one.reasons),
        imports=tuple(one.key for one in plan.changes if Reason.FOUND in one.reasons),
    )


def _as_it_is(row: LiveResource) -> Declared:
    document = row.parsed
    return Declared(
        key=row.key,
        type=row.type,
        document=document,
        digest=row.digest,
        execution_digest=row.execution_digest,
        own_digest=row.own_digest,
        parent=row.parent,
        element=row.element,
        references=_references(row.key, document),
    )


def _carried(step: Step, change: Change) -> Declared:
    said = step.arguments
    return Declared(
        key=step.resource,
        type=said.get("type", change.type),
        document=said["document"],
        digest=said["digest"],
        execution_digest=said["execution_digest"],
        own_digest=said["own_digest"],
        parent=said.get("parent", ""),
        element=said.get("element", ""),
        references=_references(step.resource, said["document"]),
    )


def _references(key: ResourceKey, document: Mapping[str, Any]) -> tuple[ResourceKey, ...]:
    # Secrets are no resources that a plan changes.
    return required(mentioned(document, key.kind, has_marks=False))


def _waiting(resources: Mapping[ResourceKey, Declared]) -> dict[ResourceKey, Declared]:
    """The same, with the runs that each run waits for; of a sweep, those that it has then."""
    elements: dict[ResourceKey, set[str]] = {}
    for key, one in resources.items():
        if one.parent:
            elements.setdefault(ResourceKey(key.kind, one.parent), set()).add(one.element)
    sweeps = (
        Entry(number, key, "", Place(""), elements=frozenset(own))
        for number, (key, own) in enumerate(elements.items())
    )
    upstream = Upstream(Catalogue.of(sweeps))
    return {
        key: replace(one, upstream=upstream.of(one.document, one.element))
        if "depends_on" in one.document
        else one
        for key, one in resources.items()
    }
