"""
A plan as JSON for scripts, for pull request bots, and for what reads plans of Terraform.

`plan.schema` has its shape and says what each part is; `schemas/plan.json` is made of that.
Documents of steps are not repeated: each change has the whole one, and `plan --out` keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar, cast

from fleetform.model import verbs
from fleetform.model.plan import Action, Change, FieldChange, Plan, Reason
from fleetform.model.redaction import sensitive_part
from fleetform.model.run_state import Outdated
from fleetform.spec.checks.hosts import provider_of
from fleetform.spec.findings import Finding
from fleetform.views import json_value
from fleetform.views.plan.groups import LEAVING, document_after, document_before, nested, path_parts
from fleetform.views.plan.notes import (
    hosts_removed,
    hosts_set_up,
    joining_hosts,
    silent_hosts,
    waiting_hosts,
)
from fleetform.views.plan.offers import (
    asked_offers,
    asks_for_hosts,
    hosts_created,
    hosts_replaced,
    scaling_of,
)
from fleetform.views.plan.preview import preview_failure, preview_rows
from fleetform.views.plan.rollouts import rollouts
from fleetform.views.plan.schema import (
    PLAN_FORMAT,
    ChangeBody,
    DeferredBody,
    DriftChange,
    FieldBody,
    HeldBody,
    HostBody,
    ImpactBody,
    KeptBody,
    OfferBody,
    OverrideBody,
    PermissionsBody,
    PlanDocument,
    PredicateBody,
    PreviewedResource,
    PreviewError,
    ResourceChange,
    RolloutBody,
    ScopeBody,
    SettledBody,
    StepBody,
    SummaryBody,
    Verb,
    required_keys,
)
from fleetform.views.plan.summary import counts, summary
from fleetform.views.reasons import reason_sentence


def to_json(plan: Plan, *, version: str) -> PlanDocument:
    """
    Return JSON values; the caller chooses the indentation.

    Args:
        plan: Any, also one that was read from a file or from the history.
        version: Of the program.
    """
    return _body_of(
        PlanDocument,
        plan,
        format_version=PLAN_FORMAT,
        fleetform_version=version,
        applyable=bool(plan.changes),
        complete=not (plan.held or plan.deferred or plan.recovering),
        errored=False,
        environment=plan.environment_name,
        depth=plan.annex.get("depth", "ledger"),
        summary={"text": summary(plan), **counts(plan)},
        resource_changes=[change_json(plan, change) for change in plan.changes],
        resource_drift=_drift(plan),
        held=[
            _body_of(HeldBody, one, resource_change=change_json(plan, one.change))
            for one in plan.held
        ],
        deferred=[
            _body_of(DeferredBody, one, resource_change=change_json(plan, one.change))
            for one in plan.deferred
        ],
        settled=[_body_of(SettledBody, one, address=str(one.key)) for one in plan.settled],
        stale=[
            {
                "address": str(one.key),
                "inherited": one.document is Outdated.INHERITED,
                "edited": one.document is Outdated.DOCUMENT,
                "upstream": [name for name, _ in one.inputs],
                "inputs": [{"name": name, "event": event.value} for name, event in one.inputs],
            }
            for one in plan.stale
        ],
        progressing=[str(key) for key in plan.progressing],
        hosts_joining=[_body_of(HostBody, one) for one in joining_hosts(plan)],
        hosts_waiting=[_body_of(HostBody, one) for one in waiting_hosts(plan)],
        hosts_silent=[_body_of(HostBody, one) for one in silent_hosts(plan)],
        rollouts=[_body_of(RolloutBody, one, fleet=name) for name, one in rollouts(plan).items()],
        overrides=[_body_of(OverrideBody, one) for one in plan.overrides],
        steps=[_body_of(StepBody, step) for step in plan.steps],
        predicates=[_body_of(PredicateBody, one) for one in plan.predicates],
        scope=_body_of(ScopeBody, plan.scope),
        kept=None
        if plan.kept is None
        else _body_of(
            KeptBody, plan.kept, permissions=_body_of(PermissionsBody, plan.kept.permissions)
        ),
        annex=dict(plan.annex),
    )


Body = TypeVar("Body")


def _body_of(shape: type[Body], source: object, **values: Any) -> Body:
    """Return the keys of a shape, in its order: from `values`, else the source's attributes."""
    keys: tuple[str, ...] = required_keys(cast("Any", shape))
    body = {key: values[key] if key in values else _plain(getattr(source, key)) for key in keys}
    return cast("Body", body)


def _plain(value: Any) -> Any:
    """Write a value as JSON has it; an address is a named tuple, and becomes its text."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return str(value) if hasattr(value, "_fields") else [_plain(one) for one in value]
    return value


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
    """What `plan.notes` has of it, one entry a resource, in the order in which it was found."""
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


# One change as JSON: in the words of a plan of Terraform, and in those of fleetform.
# Documents come sealed. What a change was planned against it carries itself; what it leads to as
# well where something in it is sealed, else it is in the step that carries it out.

_ACTIONS: Mapping[Action, list[Verb]] = {
    Action.CREATE: ["create"],
    Action.UPDATE: ["update"],
    Action.REPLACE: ["delete", "create"],
    Action.DELETE: ["delete"],
    Action.ADOPT: ["no-op"],
    Action.FORGET: ["forget"],
    # A resource that leaves the ledger and stays in place is forgotten; a result does just that.
    Action.ARCHIVE: ["forget"],
}

# The first that a change has: what made the difference, gravest first.
_ACTION_REASONS: Mapping[Action, tuple[tuple[Reason, str], ...]] = {
    Action.REPLACE: (
        (Reason.DATA_LOST, "replace_because_tainted"),
        (Reason.REPLACE_ASKED, "replace_by_request"),
        (Reason.RERUN_ASKED, "replace_by_request"),
        (Reason.RESUMED, "replace_by_request"),
        (Reason.EXECUTION_CHANGED, "replace_because_cannot_update"),
        (Reason.ELEMENT_REPLACED, "replace_because_cannot_update"),
        (Reason.RETURNED, "replace_because_cannot_update"),
        (Reason.DRIFTED, "replace_because_tainted"),
    ),
    Action.DELETE: ((Reason.REMOVED, "delete_because_no_resource_config"),),
    Action.ARCHIVE: ((Reason.REMOVED_FINISHED, "delete_because_no_resource_config"),),
    Action.FORGET: ((Reason.REMOVED, "delete_because_no_resource_config"),),
}

_STOPS = verbs.ENDS | {verbs.Verb.RUN_STOP}


def change_json(plan: Plan, change: Change) -> ResourceChange:
    """Describe a change of a plan, as planned or as held."""
    actions = actions_of(change)
    body = _body(change, actions)
    found = _body_of(
        ResourceChange,
        change,
        address=str(change.key),
        mode="managed",
        name=change.parent or change.key.name,
        provider_name=_provider(change, body),
        change=body,
        kind=change.key.kind,
        why=reason_sentence(change),
        stake=None if change.stake is None else _body_of(ImpactBody, change.stake),
        fields=[_field(one) for one in change.fields],
        steps=[step.key for step in change.steps],
    )
    if change.key.kind == "fleet":
        found["hosts_removed"] = list(hosts_removed(plan, change))
        found["hosts_set_up"] = list(hosts_set_up(plan, change))
        if created := hosts_created(plan, change):
            found["hosts_created"] = list(created)
        if replaced := hosts_replaced(change):
            found["hosts_replaced"] = dict(replaced)
        if costs := plan.annex.get("fleet_costs", {}).get(change.key.name):
            found["costs"] = costs
        if asks_for_hosts(plan, change):
            found["offers"] = [cast("OfferBody", dict(one)) for one in asked_offers(plan, change)]
        if scaling := scaling_of(change):
            found["scaling"] = {
                "min": scaling["min"],
                "max": scaling["max"],
                "idle_seconds": scaling["idle_seconds"],
            }
    if rows := preview_rows(plan, change):
        found["preview"] = [cast("PreviewedResource", dict(one)) for one in rows]
    if failure := preview_failure(plan, change):
        found["preview_error"] = cast("PreviewError", dict(failure))
    if change.moved_from:
        found["previous_address"] = str(change.key._replace(name=change.moved_from))
    if change.element:
        number = change.element.isascii() and change.element.isdecimal()
        found["index"] = int(change.element) if number else change.element
    if reason := _action_reason(change):
        found["action_reason"] = reason
    return found


def actions_of(change: Change) -> list[Verb]:
    """What is done, in the words of Terraform and in order."""
    if change.action is Action.REPLACE and _makes_first(change):
        return ["create", "delete"]
    if change.action is Action.UPDATE and change.moved_from and not change.fields:
        return ["no-op"]
    if change.action is Action.ADOPT and any(one.verb in verbs.UPDATES for one in change.steps):
        return ["update"]
    return list(_ACTIONS[change.action])


def _makes_first(change: Change) -> bool:
    """Whether what goes waits for what comes in its place."""
    made = {step.key for step in change.steps if step.verb in verbs.CREATES}
    return any(step.verb in _STOPS and made & {*step.needs} for step in change.steps)


def _action_reason(change: Change) -> str:
    for reason, word in _ACTION_REASONS.get(change.action, ()):
        if reason in change.reasons:
            if word == "delete_because_no_resource_config" and change.element:
                number = change.element.isascii() and change.element.isdecimal()
                return "delete_because_count_index" if number else "delete_because_each_key"
            return word
    return ""


# -- the documents -------------------------------------------------------------------------


def _body(change: Change, actions: list[Verb]) -> ChangeBody:
    # What returns is made, and there is nothing of it now; `fields` say what it was.
    before = None if actions == ["create"] else document_before(change)
    after = document_after(change)
    # What a broken document would become is unknown.
    unknown = after is None and change.action not in LEAVING
    body: ChangeBody = {
        "actions": actions,
        "before": before,
        "after": after,
        "after_unknown": unknown
        or nested((one.path, True) for one in change.fields if one.unknown),
        "before_sensitive": False if before is None else sensitive_part(before),
        "after_sensitive": False if after is None else sensitive_part(after),
    }
    forcing = [path_parts(one.path) for one in change.fields if one.forces]
    if forcing and change.action is Action.REPLACE:
        body["replace_paths"] = forcing
    if change.action is Action.ADOPT:
        body["importing"] = {"id": change.uid or str(change.key)}
    return body


def _provider(change: Change, body: ChangeBody) -> str:
    """Of a fleet where its hosts come from; of all else the kind, which has one way to be done."""
    if change.key.kind != "fleet":
        return f"fleetform/{change.key.kind}"
    document = body["after"] or body["before"] or {}
    # A plan may show a fleet that it blocks, whose hosts have no provider yet.
    unsupported = next((name for name in ("kubernetes", "slurm") if name in document), "clouds")
    return f"fleetform/{provider_of(document) or unsupported}"


def _field(one: FieldChange) -> FieldBody:
    body: dict[str, Any] = {"path": one.path, "class": one.field_class, "forces": one.forces}
    if one.before_set:
        body["before"] = one.before
    if one.after_set:
        body["after"] = one.after
    if one.sensitive:
        body["sensitive"] = True
    if one.unknown:
        body["unknown"] = True
    return body  # type: ignore[return-value]  # `class` cannot be written as a keyword
