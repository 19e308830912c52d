"""
A plan as JSON for scripts; the shape is stable within a `version`.

    {"version": 1, "environment", "environment_uid", "commit", "digest", "depth",
     "summary": {"text", "create", "update", "replace", "delete", "forget", "archive", "adopt",
                 "destructive", "held", "settled", "progressing"},
     "changes": [{"address", "kind", "name", "type", "action", "reasons", "why", "destructive",
                  "at_stake", "replaces", "parent", "element",
                  "fields": [{"path", "before"?, "after"?, "class", "forces"}], "steps": [key]}],
     "steps": [{"key", "verb", "resource", "needs"}],
     "held": [{"change": as above, "by", "detail", "cure"}],
     "settled": [{"address", "state", "detail"}], "progressing": [address],
     "warnings": [sentence], "annex": {…}}

A field that is not set on a side lacks that key there. Documents are not repeated: `plan --out`
keeps them.
"""

from __future__ import annotations

from typing import Any

from fleetform.model.plan import Change, FieldChange, Plan
from fleetform.views.plan_summary import counts, summary
from fleetform.views.reasons import reason_sentence

__all__ = ["VERSION", "to_json"]

VERSION = 1


def to_json(plan: Plan) -> dict[str, Any]:
    """Return JSON values; whoever prints chooses indentation."""
    return {
        "version": VERSION,
        "environment": plan.environment_name,
        "environment_uid": plan.environment_uid,
        "commit": plan.commit,
        "digest": plan.digest,
        "depth": plan.annex.get("depth", "ledger"),
        "summary": {"text": summary(plan), **counts(plan)},
        "changes": [_change(change) for change in plan.changes],
        "steps": [
            {
                "key": step.key,
                "verb": step.verb,
                "resource": str(step.resource),
                "needs": list(step.needs),
            }
            for step in plan.steps
        ],
        "held": [
            {
                "change": _change(one.change),
                "by": one.by.value,
                "detail": one.detail,
                "cure": one.cure,
            }
            for one in plan.held
        ],
        "settled": [
            {"address": str(one.key), "state": one.state, "detail": one.detail}
            for one in plan.settled
        ],
        "progressing": [str(key) for key in plan.progressing],
        "warnings": list(plan.warnings),
        "annex": dict(plan.annex),
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "address": str(change.key),
        "kind": change.key.kind,
        "name": change.key.name,
        "type": change.type,
        "action": change.action.value,
        "reasons": [reason.value for reason in change.reasons],
        "why": reason_sentence(change),
        "destructive": change.destructive,
        "at_stake": change.at_stake,
        "replaces": change.replaces,
        "parent": change.parent,
        "element": change.element,
        "fields": [_field(one) for one in change.fields],
        "steps": [step.key for step in change.steps],
    }


def _field(one: FieldChange) -> dict[str, Any]:
    body: dict[str, Any] = {"path": one.path, "class": one.field_class, "forces": one.forces}
    if one.before_set:
        body["before"] = one.before
    if one.after_set:
        body["after"] = one.after
    return body
