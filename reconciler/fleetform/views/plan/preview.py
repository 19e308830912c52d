"""What a preview says that a change creates, updates or deletes in a cloud."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleetform.model.plan import Change, Plan
from fleetform.spec.desired import ResourceKey
from fleetform.views.lines import printable
from fleetform.views.plan.offers import host_by_demand

__all__ = [
    "demand_preview_texts",
    "preview_failure",
    "preview_failure_text",
    "preview_name",
    "preview_rows",
    "preview_text",
]


def preview_name(key: ResourceKey) -> str:
    """Return by which name the annex of a plan has the preview of a resource."""
    return key.name if key.kind == "fleet" else str(key)


def preview_rows(plan: Plan, change: Change) -> Sequence[Mapping[str, Any]]:
    """Return the resources of a cloud that a change creates, updates or deletes; empty without a preview."""
    rows: Sequence[Mapping[str, Any]] = plan.annex.get("preview", {}).get(
        preview_name(change.key), ()
    )
    return rows


def preview_failure(plan: Plan, change: Change) -> Mapping[str, Any]:
    """
    Return why the preview of a change failed; empty: it did not.

    `message` and `advice` are sentences, and `passes` tells whether apply may succeed all the same.
    """
    failed: Mapping[str, Any] = plan.annex.get("preview_failed", {}).get(
        preview_name(change.key), {}
    )
    return failed


def preview_failure_text(plan: Plan, change: Change) -> str:
    """Write `account 123456789012 in us-east-1 has no VPC vpc-1; correct …`; empty: it did not fail."""
    failed = preview_failure(plan, change)
    return printable(_failure_text(failed)) if failed else ""


def _failure_text(failed: Mapping[str, Any]) -> str:
    return "; ".join(filter(None, (failed["message"], failed["advice"])))


def preview_text(plan: Plan, change: Change) -> str:
    """
    Write `create 1 aws:ec2/keyPair:KeyPair, 2 aws:ec2/instance:Instance`; empty without a preview.

    An update names the properties that differ: `update 1 aws:ec2/securityGroup:SecurityGroup
    (ingress[0].cidrBlocks: 203.0.113.7/32 → 198.51.100.9/32)`. Of a fleet that has no host until a run needs one, it is
    `for a first host, create …`.
    """
    text = _rows_text(preview_rows(plan, change))
    return f"for a first host, {text}" if text and host_by_demand(change) else text


def demand_preview_texts(plan: Plan) -> Iterator[str]:
    """Yield `Preview of fleet gpus by demand: create 1 aws:ec2/instance:Instance.` of fleets that do not change, or why it failed."""
    changed = {change.key.name for change in plan.changes if change.key.kind == "fleet"}
    for fleet in sorted(plan.annex.get("forecast", {}).get("demand", {}).keys() - changed):
        if rows := plan.annex.get("preview", {}).get(fleet):
            yield printable(f"Preview of fleet {fleet} by demand: {_rows_text(rows)}.")
        if failed := plan.annex.get("preview_failed", {}).get(fleet):
            yield printable(f"Preview of fleet {fleet} by demand failed: {_failure_text(failed)}.")


def _rows_text(rows: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter((row["action"], row["type"], _differences(row)) for row in rows)
    by_action: dict[str, list[str]] = {}
    for (action, kind, differences), count in sorted(counts.items()):
        by_action.setdefault(action, []).append(f"{count} {kind}{differences}")
    return "; ".join(f"{action} {', '.join(parts)}" for action, parts in by_action.items())


def _differences(row: Mapping[str, Any]) -> str:
    said = [
        printable(f"{one['path']}: {_value(one['before'])} → {_value(one['after'])}")
        for one in row.get("properties", ())
    ]
    return f" ({'; '.join(said)})" if said else ""


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
