"""
The shape of a plan as JSON, as types: what `plan` and `show` print with `--format json`.

`resource_changes`, `resource_drift`, `applyable`, `complete` and `errored` are as in the JSON of a
plan of Terraform, so that tools for that JSON read this one too: a bot that counts actions, a page
that shows before and after. The other keys are fleetform's. `plan_schema` writes
`schemas/plan.json` from these types, and a type checker checks `plan.json` against them.
"""

from __future__ import annotations

import enum
import inspect
import json
import types
from collections.abc import Mapping
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from fleetform.model.lineage import InputEvent
from fleetform.model.override import OverrideKind
from fleetform.model.plan import Action, HeldBy, Reason

PLAN_FORMAT = "1.0"
"""
The number after the dot grows with each added key, the one before it when a key changes its meaning.

A reader ignores keys that it does not know, and refuses another number before the dot.
"""

Json = Mapping[str, Any]

Verb = Literal["create", "read", "update", "delete", "no-op", "forget"]


class Importing(TypedDict):
    """An existing resource that is adopted."""

    id: Annotated[str, "The uid of the resource, or its address if it has no uid."]


class ChangeBody(TypedDict):
    """The whole change of the resource: the documents before and after."""

    actions: Annotated[
        list[Verb],
        "Actions in order; two of them are a replacement. `forget` includes archived results, which are kept.",
    ]
    before: Annotated[
        Json | None,
        "The canonical document that was applied last; null if the resource is created, also again.",
    ]
    after: Annotated[
        Json | None, "The canonical document after the change; null if the resource is removed."
    ]
    after_unknown: Annotated[Json | bool, "True at each value that is known only after the apply."]
    before_sensitive: Annotated[
        Json | bool, "True at each value of `before` that is a version of a sensitive value."
    ]
    after_sensitive: Annotated[
        Json | bool, "True at each value of `after` that is a version of a sensitive value."
    ]
    replace_paths: NotRequired[
        Annotated[list[list[str | int]], "The fields that force a replacement."]
    ]
    importing: NotRequired[Importing]


# `class` is a word of Python's.
_Classed = TypedDict("_Classed", {"class": Literal["execution", "control", "cosmetic"]})


class FieldBody(_Classed):
    """One field, before and after. `before` or `after` is missing where the field is not set."""

    path: Annotated[str, 'Names with dots, and `[n]` for items: `files["a.py"].sha256`.']
    before: NotRequired[Any]
    after: NotRequired[Any]
    forces: Annotated[bool, "True if this field forces the replacement."]
    sensitive: NotRequired[
        Annotated[bool, "True if the values are versions of a value that is not shown."]
    ]
    unknown: NotRequired[Annotated[bool, "True if the new value is known only after the apply."]]


class ImpactBody(TypedDict):
    """The impact: running work that the change would end."""

    runs: list[str]
    jobs: int
    gpus: int


class PreviewedPropertyBody(TypedDict):
    """A property of a resource of a cloud: `before` and `after` an update."""

    path: Annotated[str, "In the terms of Pulumi, such as `ingress[0].cidrBlocks`."]
    before: Any
    after: Any


class PreviewedResource(TypedDict):
    """A resource of a cloud that the change of a fleet or volume creates, updates or deletes."""

    action: Annotated[str, "A verb, such as `create`."]
    type: Annotated[str, "The type in the terms of Pulumi, such as `aws:ec2/instance:Instance`."]
    name: str
    properties: NotRequired[
        Annotated[list[PreviewedPropertyBody], "Of an update: the properties that differ."]
    ]


class PreviewError(TypedDict):
    """Why a cloud or its engine did not say what the change of a fleet or volume would do."""

    message: str
    advice: Annotated[str, "What to do; empty if there is nothing to do but try again."]
    passes: Annotated[
        bool,
        "Whether `apply` continues all the same: the cloud does not answer now, or refuses the first offer.",
    ]


class ScalingBody(TypedDict):
    """Between which numbers the hosts of a fleet follow demand."""

    min: Annotated[int, "So many hosts stay without jobs."]
    max: Annotated[int, "The fleet never has more hosts."]
    idle_seconds: Annotated[
        int, "How long another host stays without jobs; negative: without limit."
    ]


class HourlyCostBody(TypedDict):
    """What hosts of a cloud cost per hour."""

    micros: Annotated[int, "Micro-dollars per hour of the hosts whose price is known."]
    unknown_hosts: Annotated[int, "The hosts whose price is not known, and not in `micros`."]


class FleetCostsBody(TypedDict):
    """What a fleet on a cloud costs per hour."""

    before: NotRequired[Annotated[HourlyCostBody, "Before the change."]]
    after: NotRequired[
        Annotated[HourlyCostBody, "After it, by the offers that are asked for first."]
    ]
    during: NotRequired[
        Annotated[
            HourlyCostBody,
            "With the hosts that a rollout creates before others leave; absent without such a rollout.",
        ]
    ]
    most: NotRequired[
        Annotated[
            HourlyCostBody,
            "With all hosts that demand may bring in; absent if their number is fixed.",
        ]
    ]
    limit: NotRequired[
        Annotated[HourlyCostBody, "The same with the dearest of its offers: the upper limit."]
    ]


class OfferBody(TypedDict):
    """An offer by which hosts of a fleet are created; one that its cloud refused lately is passed over for some minutes."""

    instance_type: str
    region: str
    zone: NotRequired[Annotated[str, "Absent where the cloud chooses it."]]
    spot: NotRequired[Annotated[bool, "Absent on demand."]]
    price_micros: NotRequired[
        Annotated[int, "Micro-dollars per hour of one host; absent if unknown."]
    ]
    refused_at_ms: NotRequired[
        Annotated[int, "When the cloud refused it; absent unless that was lately."]
    ]
    problem: NotRequired[Annotated[str, "Why the cloud refused it."]]
    asked_again_at_ms: NotRequired[Annotated[int, "It is not asked for before."]]


class ResourceChange(TypedDict):
    """One resource and its change."""

    address: Annotated[
        str, "Kind and name, such as `run/train`, `fleet/gpu` or `run/sweep[lr=0.1]`."
    ]
    previous_address: NotRequired[Annotated[str, "The address before a renaming."]]
    mode: Literal["managed"]
    type: Annotated[str, "The `type:` of its document."]
    name: Annotated[str, "The name of its document; an element has the name of its sweep or array."]
    index: NotRequired[Annotated[str | int, "The element of its sweep or array."]]
    provider_name: Annotated[str, "The provider of the resource."]
    change: ChangeBody
    action_reason: NotRequired[Annotated[str, "The reason, in the terms of a Terraform plan."]]
    kind: Annotated[
        str, "`fleet`, `queue`, `volume`, `run` or `environment`; later versions may add kinds."
    ]
    action: Annotated[
        str, "The action in the terms of fleetform, more precise than `actions`.", Action
    ]
    reasons: list[Annotated[str, Reason]]
    why: Annotated[str, "The reasons, as a sentence."]
    destructive: Annotated[bool, "True if the change deletes data or hosts, or ends running work."]
    at_stake: Annotated[str, "The impact, as a sentence."]
    stake: ImpactBody | None
    hosts_removed: NotRequired[
        Annotated[list[str], "Of a fleet: the names of the hosts that the change removes."]
    ]
    hosts_set_up: NotRequired[
        Annotated[
            list[str],
            "Of a fleet: the hosts of other machines on which the change installs the agent.",
        ]
    ]
    hosts_created: NotRequired[
        Annotated[
            list[str],
            "Of a fleet on a cloud: the hosts that the change creates; absent without any.",
        ]
    ]
    offers: NotRequired[
        Annotated[
            list[OfferBody],
            "Of a fleet on a cloud that creates or replaces hosts, now or by demand: its offers in the order in which they are asked for.",
        ]
    ]
    hosts_replaced: NotRequired[
        Annotated[
            dict[str, str],
            "Of a fleet on a cloud: the hosts that another template or `--replace` replaces, with the reason; absent without any.",
        ]
    ]
    scaling: NotRequired[
        Annotated[
            ScalingBody,
            "Of a fleet whose hosts follow demand: between which numbers; absent otherwise.",
        ]
    ]
    preview: NotRequired[
        Annotated[
            list[PreviewedResource],
            "Of a fleet or a volume on a cloud, with `--preview`; of a fleet that has no host until a run needs one, for its first host.",
        ]
    ]
    preview_error: NotRequired[
        Annotated[PreviewError, "Why there is no preview; absent unless it failed."]
    ]
    cost_before: Annotated[
        int | None, "Micro-dollars per hour before the change; null if no price is known."
    ]
    cost_after: Annotated[
        int | None,
        "Micro-dollars per hour after the change; for a blocked change, the upper limit.",
    ]
    cost_max: Annotated[
        int | None,
        "Micro-dollars per hour with all hosts that demand may bring in; null if the number is fixed or no price is known.",
    ]
    costs: NotRequired[
        Annotated[
            FleetCostsBody,
            "Of a fleet on a cloud: the same with hosts of unknown price, and with the dearest offers.",
        ]
    ]
    replaces: Annotated[str, "The element that it replaces; else empty."]
    parent: Annotated[str, "The sweep or array of an element; else empty."]
    element: Annotated[str, "The element, such as `lr=0.1` or `3`; else empty."]
    fields: list[FieldBody]
    steps: Annotated[list[str], "The keys of its steps."]


class DriftChange(TypedDict):
    """The drift of one resource: `before` is its applied state, `after` its actual state."""

    address: str
    mode: Literal["managed"]
    type: str
    name: str
    provider_name: str
    change: ChangeBody


class HeldBody(TypedDict):
    """A blocked change."""

    by: Annotated[str, HeldBy]
    detail: Annotated[str, "What blocks the change."]
    cure: Annotated[str, "What unblocks the change."]
    resource_change: ResourceChange


class DeferredBody(TypedDict):
    """A change that `--target` or `--exclude` leaves out of this plan."""

    why: str
    resource_change: ResourceChange


class StepBody(TypedDict):
    """One operation of the apply."""

    key: str
    verb: str
    resource: str
    needs: Annotated[list[str], "The keys of the steps that must end first."]


class PredicateBody(TypedDict):
    """A condition that must still be true when the plan is applied."""

    claim: str
    resource: str | None
    value: str


class SettledBody(TypedDict):
    """A run that ended other than `done`, or whose end is unknown, and that the plan does not re-run."""

    address: str
    state: str
    detail: str


class InputBody(TypedDict):
    """An input whose result has changed since the run started."""

    name: Annotated[str, "The name of a run, of an element, or of a whole large sweep."]
    event: Annotated[str, InputEvent]


class StaleBody(TypedDict):
    """An outdated result: an input or the document has changed since its run started."""

    address: str
    inherited: Annotated[bool, "True if a value that its document inherits has changed."]
    edited: Annotated[bool, "True if its own document has changed."]
    upstream: Annotated[list[str], "The names of the changed inputs."]
    inputs: Annotated[list[InputBody], "The changed inputs, with the kind of each change."]


class HostBody(TypedDict):
    """A host that its fleet works without for now."""

    fleet: str
    host: str
    reason: Annotated[str, "The last failure to reach or to set up the host; empty if unknown."]


class RolloutBody(TypedDict):
    """A rollout that an earlier plan began; hosts that are neither updated nor waiting are being replaced."""

    fleet: str
    hosts: Annotated[int, "So many hosts as the fleet shall have."]
    updated: Annotated[int, "So many of them have the new template."]
    waiting: Annotated[
        int, "So many have an earlier template, and their replacement has not begun."
    ]
    busy: Annotated[int, "So many of those that wait have jobs."]


class OverrideBody(TypedDict):
    """A limited-time decision of a person that outranks the configuration."""

    number: int
    kind: Annotated[str, OverrideKind]
    target: str
    reason: str
    who: str
    since_ms: int
    until_ms: int | None


class ScopeBody(TypedDict):
    """The part of the configuration that the plan covers."""

    targets: list[str]
    excludes: list[str]
    replaces: list[str]


class SummaryBody(TypedDict):
    """The last line of the plan, and its counts."""

    text: str
    create: int
    adopt: int
    update: int
    replace: int
    delete: int
    forget: int
    archive: int
    destructive: int
    held: int
    deferred: int
    settled: int
    progressing: int


class PermissionsBody(TypedDict):
    """The permissions that the flags of the plan gave, beyond the rules."""

    allow_destroy: bool
    allow_restart: bool
    allow_deletes: int | None
    destroy: bool


class KeptBody(TypedDict):
    """The data of a saved plan, which is applied once."""

    plan_id: str
    made_at_ms: int
    who: str
    permissions: PermissionsBody


class PlanDocument(TypedDict):
    """A plan of fleetform."""

    format_version: Annotated[str, "The version of this format."]
    fleetform_version: Annotated[str, "The version of fleetform that prints the plan."]
    applyable: Annotated[bool, "True if the plan has changes to apply."]
    complete: Annotated[
        bool, "True if no change is blocked or deferred, and the ledger is not recovering."
    ]
    errored: Annotated[
        bool,
        "True if the configuration has errors: then nothing is planned, and `findings` has them.",
    ]
    environment: str
    environment_fingerprint: Annotated[
        str, "Equal in all plans of one environment; it stands for the uid, which is not shown."
    ]
    ledger_id: Annotated[str, "The id of the ledger; empty before the first apply."]
    epoch: int
    commit: Annotated[str, "The commit of the configuration; empty outside git."]
    tree_digest: str
    digest: Annotated[str, "The digest of the plan without `annex`."]
    depth: Annotated[
        Literal["ledger", "preview", "refresh"],
        "The source of the state: the ledger, the ledger and offers of clouds, or the actual state.",
    ]
    summary: SummaryBody
    resource_changes: list[ResourceChange]
    resource_drift: Annotated[
        list[DriftChange], "Drift; empty unless the plan compares with the actual state."
    ]
    held: Annotated[list[HeldBody], "The blocked changes: what blocks each, and what unblocks it."]
    deferred: Annotated[
        list[DeferredBody], "The changes that `--target` or `--exclude` leaves out of this plan."
    ]
    settled: Annotated[
        list[SettledBody],
        "The runs that ended other than `done`, or whose end is unknown, and that the plan does not re-run.",
    ]
    stale: Annotated[
        list[StaleBody], "The outdated results: an input or the document has changed since."
    ]
    progressing: Annotated[
        list[str], "The addresses of resources with work in progress that the plan does not change."
    ]
    hosts_joining: Annotated[
        list[HostBody],
        "The hosts that are not set up yet, in fleets that the plan does not change.",
    ]
    hosts_waiting: Annotated[
        list[HostBody],
        "The hosts that are not created because their cloud has refused all offers, in fleets that the plan does not change.",
    ]
    hosts_silent: Annotated[list[HostBody], "The hosts that were set up and are unreachable now."]
    rollouts: Annotated[list[RolloutBody], "The rollouts that are under way."]
    overrides: list[OverrideBody]
    steps: list[StepBody]
    predicates: list[PredicateBody]
    scope: ScopeBody
    recovering: Annotated[
        bool, "True if hosts know a newer state than the ledger: then nothing is changed."
    ]
    warnings: Annotated[list[str], "Warnings about the whole plan."]
    kept: KeptBody | None
    findings: NotRequired[
        Annotated[
            list[Json], "The findings of a configuration with errors, as `validate` prints them."
        ]
    ]
    annex: Annotated[Json, "Times, ages and forecasts for people; the digest does not cover them."]


# The JSON Schema of a plan, made from the types that the plan is written by.
# So it says what is printed and cannot go stale: `fleetform schema --check` compares the file with it.

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_PLAIN: Mapping[Any, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    type(None): "null",
}

Schema = dict[str, Any]


def plan_schema() -> Schema:
    """Return the schema of the output of `plan --format json`, in draft 2020-12; its objects are closed."""
    definitions: dict[str, Schema] = {}
    whole = _object(PlanDocument, definitions)
    return {
        "$schema": _DIALECT,
        "title": "A plan of fleetform",
        **whole,
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    """The same as the file has it."""
    return json.dumps(plan_schema(), indent=1, ensure_ascii=False) + "\n"


@cache
def required_keys(kind: Any) -> tuple[str, ...]:
    """Name the keys that every object of this shape has, in the order in which they are printed."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(name for name, hint in hints.items() if get_origin(hint) is not NotRequired)


def _object(kind: Any, definitions: dict[str, Schema]) -> Schema:
    hints = get_type_hints(kind, include_extras=True)
    return {
        "description": " ".join(inspect.cleandoc(kind.__doc__ or "").split()),
        "type": "object",
        "properties": {name: _schema(hint, definitions) for name, hint in hints.items()},
        "required": list(required_keys(kind)),
        "additionalProperties": False,
    }


def _schema(hint: Any, definitions: dict[str, Schema]) -> Schema:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return _schema(arguments[0], definitions)
    if origin is Annotated:
        return _annotated(arguments, definitions)
    if is_typeddict(hint):
        return _reference(hint, definitions)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in {Union, types.UnionType}:
        return _any_of([_schema(one, definitions) for one in arguments])
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object"}
    return {} if hint is Any else {"type": _PLAIN[hint]}


def _annotated(arguments: tuple[Any, ...], definitions: dict[str, Schema]) -> Schema:
    hint, *notes = arguments
    found = _schema(hint, definitions)
    for note in notes:
        if isinstance(note, str):
            found = {"description": note, **found}
        elif isinstance(note, type) and issubclass(note, enum.Enum):
            found = {**found, "enum": [member.value for member in note]}
    return found


def _reference(kind: Any, definitions: dict[str, Schema]) -> Schema:
    name = kind.__name__.removesuffix("Body")
    if name not in definitions:
        definitions[name] = {}  # Before its parts, or one that holds itself would never end.
        definitions[name] = _object(kind, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _any_of(choices: list[Schema]) -> Schema:
    """Types alone are said in one list, as people write them."""
    if all(choice.keys() == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return {"anyOf": choices}
