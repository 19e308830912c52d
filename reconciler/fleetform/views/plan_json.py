"""
A plan as JSON for scripts, for pull request bots, and for what reads plans of Terraform.

`plan_document` has its shape and says what each part is; `schemas/plan.json` is made of that.
Documents of steps are not repeated: each change has the whole one, and `plan --out` keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from fleetform.model.plan import Kept, Plan
from fleetform.model.run_state import Outdated
from fleetform.spec.findings import Finding
from fleetform.views import json_value
from fleetform.views.plan_document import (
    PLAN_FORMAT,
    ChangeBody,
    DriftChange,
    KeptBody,
    OverrideBody,
    PlanDocument,
    SummaryBody,
)
from fleetform.views.plan_json_change import change_json
from fleetform.views.plan_paths import nested
from fleetform.views.plan_summary import counts, summary

__all__ = ["errored_json", "to_json"]


def to_json(plan: Plan, *, version: str) -> PlanDocument:
    """
    Return JSON values; whoever prints chooses indentation.

    Args:
        plan: Any, also one that was read from a file or from the history.
        version: Of the program.
    """
    return {
        "format_version": PLAN_FORMAT,
        "fleetform_version": version,
        "applyable": bool(plan.changes),
        "complete": not (plan.held or plan.deferred or plan.recovering),
        "errored": False,
        "environment": plan.environment_name,
        "environment_fingerprint": plan.environment_fingerprint,
        "ledger_id": plan.ledger_id,
        "epoch": plan.epoch,
        "commit": plan.commit,
        "tree_digest": plan.tree_digest,
        "digest": plan.digest,
        "depth": plan.annex.get("depth", "ledger"),
        "summary": cast("SummaryBody", {"text": summary(plan), **counts(plan)}),
        "resource_changes": [change_json(change) for change in plan.changes],
        "resource_drift": _drift(plan),
        "held": [
            {
                "by": one.by.value,
                "detail": one.detail,
                "cure": one.cure,
                "resource_change": change_json(one.change),
            }
            for one in plan.held
        ],
        "deferred": [
            {"why": one.why, "resource_change": change_json(one.change)} for one in plan.deferred
        ],
        "settled": [
            {"address": str(one.key), "state": one.state, "detail": one.detail}
            for one in plan.settled
        ],
        "stale": [
            {
                "address": str(one.key),
                "inherited": one.document is Outdated.INHERITED,
                "edited": one.document is Outdated.DOCUMENT,
                "upstream": [name for name, _ in one.inputs],
                "inputs": [{"name": name, "event": event.value} for name, event in one.inputs],
            }
            for one in plan.stale
        ],
        "progressing": [str(key) for key in plan.progressing],
        "overrides": _overrides(plan),
        "steps": [
            {
                "key": step.key,
                "verb": step.verb,
                "resource": str(step.resource),
                "needs": list(step.needs),
            }
            for step in plan.steps
        ],
        "predicates": [
            {
                "claim": one.claim,
                "resource": None if one.resource is None else str(one.resource),
                "value": one.value,
            }
            for one in plan.predicates
        ],
        "scope": {
            "targets": list(plan.scope.targets),
            "excludes": list(plan.scope.excludes),
            "replaces": list(plan.scope.replaces),
        },
        "recovering": plan.recovering,
        "warnings": list(plan.warnings),
        "kept": None if plan.kept is None else _kept(plan.kept),
        "annex": dict(plan.annex),
    }


def errored_json(
    name: str, fingerprint: str, findings: Sequence[Finding], *, problem: str, version: str
) -> PlanDocument:
    """
    Return the document of a plan that could not be made, for programs that read `errored`.

    Args:
        name: Of the environment.
        fingerprint: Of the environment.
        findings: Of the configuration.
        problem: Why nothing is planned.
        version: Of the program.
    """
    nothing = to_json(Plan(fingerprint, name, "", 0, ()), version=version)
    counts_of_nothing: SummaryBody = {**nothing["summary"], "text": problem}
    return {
        **nothing,
        "complete": False,
        "errored": True,
        "summary": counts_of_nothing,
        "findings": json_value.to_json(findings),
    }


def _drift(plan: Plan) -> list[DriftChange]:
    """What `plan.annex` has of it, one entry a resource, in the order in which it was found."""
    by_address: dict[str, list[Mapping[str, Any]]] = {}
    for one in plan.annex.get("drift", ()):
        by_address.setdefault(one["resource"], []).append(one)
    found: list[DriftChange] = []
    for address, parts in by_address.items():
        kind, _, name = address.partition("/")
        body: ChangeBody = {
            "actions": ["update"],
            "before": nested((one["path"], one["before"]) for one in parts),
            "after": nested((one["path"], one["after"]) for one in parts),
            "after_unknown": {},
            "before_sensitive": {},
            "after_sensitive": {},
        }
        found.append(
            {
                "address": address,
                "mode": "managed",
                "type": kind,
                "name": name,
                "provider_name": f"fleetform/{kind}",
                "change": body,
            }
        )
    return found


def _overrides(plan: Plan) -> list[OverrideBody]:
    return [
        {
            "number": one.number,
            "kind": one.kind.value,
            "target": one.target,
            "reason": one.reason,
            "who": one.who,
            "since_ms": one.since_ms,
            "until_ms": one.until_ms,
        }
        for one in plan.overrides
    ]


def _kept(kept: Kept) -> KeptBody:
    allowed = kept.permissions
    return {
        "plan_id": kept.plan_id,
        "made_at_ms": kept.made_at_ms,
        "who": kept.who,
        "permissions": {
            "allow_destroy": allowed.allow_destroy,
            "allow_restart": allowed.allow_restart,
            "allow_deletes": allowed.allow_deletes,
            "destroy": allowed.destroy,
        },
    }
