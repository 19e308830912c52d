"""
The shape of a plan as JSON, as types: what `plan` and `show` print with `--format json`.

`resource_changes`, `resource_drift`, `applyable`, `complete` and `errored` are as in the JSON of a
plan of Terraform, so that what reads that reads this: a bot that counts actions, a page that shows
before and after. What we say beyond it stands beside. `plan_schema` makes `schemas/plan.json` of
these types, and a type checker holds `plan_json` to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from fleetform.model.lineage import InputEvent
from fleetform.model.override import OverrideKind
from fleetform.model.plan import Action, HeldBy, Reason

__all__ = [
    "PLAN_FORMAT",
    "ChangeBody",
    "DriftChange",
    "FieldBody",
    "PlanDocument",
    "ResourceChange",
]

PLAN_FORMAT = "1.0"
"""
Raised behind the dot when something is added, before it when something changes its meaning.

Whoever reads a plan passes over what it does not know, and refuses another number before the dot.
"""

Json = Mapping[str, Any]

Verb = Literal["create", "read", "update", "delete", "no-op", "forget"]


class Importing(TypedDict):
    """What exists already and is taken over."""

    id: Annotated[str, "Its uid where it has one, else its address."]


class ChangeBody(TypedDict):
    """What becomes of the resource, whole: the documents before and after."""

    actions: Annotated[
        list[Verb],
        "In order: two of them are a replacement. Being archived is `forget`: its result is kept.",
    ]
    before: Annotated[
        Json | None, "The canonical document last applied; null where it is made, also once more."
    ]
    after: Annotated[Json | None, "The canonical document as it will be; null where it goes."]
    after_unknown: Annotated[Json | bool, "True at what is known only when it has been done."]
    before_sensitive: Annotated[Json | bool, "True at what is a version of a sensitive value."]
    after_sensitive: Annotated[Json | bool, "The same of `after`."]
    replace_paths: NotRequired[
        Annotated[list[list[str | int]], "The fields that force a replacement."]
    ]
    importing: NotRequired[Importing]


# `class` is a word of Python's.
_Classed = TypedDict("_Classed", {"class": Literal["execution", "control", "cosmetic"]})


class FieldBody(_Classed):
    """One field, before and after. A side on which it is not set lacks its key."""

    path: Annotated[str, 'Dotted, with `[n]` for items: `files["a.py"].sha256`.']
    before: NotRequired[Any]
    after: NotRequired[Any]
    forces: Annotated[bool, "Whether this field is why the resource is replaced."]
    sensitive: NotRequired[Annotated[bool, "The values are versions of what is not shown."]]
    unknown: NotRequired[Annotated[bool, "What it becomes is known only when it has been done."]]


class StakeBody(TypedDict):
    """Running work that the change would end."""

    runs: list[str]
    jobs: int
    gpus: int


class ResourceChange(TypedDict):
    """One resource and what happens to it."""

    address: Annotated[str, "`run/train`, `fleet/gpu`, `run/sweep[lr=0.1]`."]
    previous_address: NotRequired[Annotated[str, "What it was called until now."]]
    mode: Literal["managed"]
    type: Annotated[str, "What its document's `type:` says."]
    name: Annotated[str, "Of the document; an element has its sweep's."]
    index: NotRequired[Annotated[str | int, "Which element of its sweep or array."]]
    provider_name: Annotated[str, "What carries it out."]
    change: ChangeBody
    action_reason: NotRequired[Annotated[str, "In the words of a plan of Terraform."]]
    kind: Annotated[str, "`fleet`, `volume`, `run`, `environment`, and those of later versions."]
    action: Annotated[str, "Ours, finer than `actions`.", Action]
    reasons: list[Annotated[str, Reason]]
    why: Annotated[str, "The reasons as a sentence."]
    destructive: Annotated[bool, "Something is deleted, or running work ends."]
    at_stake: Annotated[str, "What would be lost, in words."]
    stake: StakeBody | None
    cost_before: Annotated[int | None, "Micro-dollars an hour; null where no price is known."]
    cost_after: Annotated[int | None, "The same as it will be; of what is held, its ceiling."]
    replaces: Annotated[str, "The element whose place it takes; empty for none."]
    parent: Annotated[str, "The sweep or array of an element; else empty."]
    element: Annotated[str, "The element's identity in it: `lr=0.1`, `3`."]
    fields: list[FieldBody]
    steps: Annotated[list[str], "Keys of its steps."]


class DriftChange(TypedDict):
    """What the world has become of one resource: before is what it was made, after what is there."""

    address: str
    mode: Literal["managed"]
    type: str
    name: str
    provider_name: str
    change: ChangeBody


class HeldBody(TypedDict):
    """A change that is not carried out now."""

    by: Annotated[str, HeldBy]
    detail: Annotated[str, "What holds it."]
    cure: Annotated[str, "What would release it."]
    resource_change: ResourceChange


class DeferredBody(TypedDict):
    """A change that nobody asked for this time."""

    why: str
    resource_change: ResourceChange


class StepBody(TypedDict):
    """One thing that apply does."""

    key: str
    verb: str
    resource: str
    needs: Annotated[list[str], "Keys of the steps that come first."]


class PredicateBody(TypedDict):
    """What must still hold when the plan is applied."""

    claim: str
    resource: str | None
    value: str


class SettledBody(TypedDict):
    """A run that has ended badly and stays so."""

    address: str
    state: str
    detail: str


class InputBody(TypedDict):
    """An input whose result is not the one that a run started from."""

    name: Annotated[str, "Of a run, of an element, or of a large sweep as a whole."]
    event: Annotated[str, InputEvent]


class StaleBody(TypedDict):
    """An outdated result: its inputs have changed since its run started."""

    address: str
    inherited: Annotated[bool, "What its document inherits has changed."]
    upstream: Annotated[list[str], "Names of the inputs that have changed."]
    inputs: Annotated[list[InputBody], "The same, with how each has changed."]


class OverrideBody(TypedDict):
    """What somebody has put above the tree for a while."""

    number: int
    kind: Annotated[str, OverrideKind]
    target: str
    reason: str
    who: str
    since_ms: int
    until_ms: int | None


class ScopeBody(TypedDict):
    """What the plan was made of."""

    targets: list[str]
    excludes: list[str]
    replaces: list[str]


class SummaryBody(TypedDict):
    """The last line, and the counts behind it."""

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
    """What was allowed beyond the rules."""

    allow_destroy: bool
    allow_restart: bool
    allow_deletes: int | None
    destroy: bool


class KeptBody(TypedDict):
    """Of a plan in a file: it is carried out once."""

    plan_id: str
    made_at_ms: int
    who: str
    permissions: PermissionsBody


class PlanDocument(TypedDict):
    """A plan of fleetform."""

    format_version: Annotated[str, "Of this document; see `PLAN_FORMAT`."]
    fleetform_version: Annotated[str, "Of the program that prints it."]
    applyable: Annotated[bool, "Whether there is anything to carry out."]
    complete: Annotated[
        bool, "Whether nothing is left once it is: nothing is held or deferred, or may be wrong."
    ]
    errored: Annotated[bool, "Always false: what cannot be planned is an error and no plan."]
    environment: str
    environment_fingerprint: Annotated[
        str, "The same in all plans of one environment; stands for its uid, which is not shown."
    ]
    ledger_id: Annotated[str, "Empty before the first apply."]
    epoch: int
    commit: Annotated[str, "Of the tree; empty outside git."]
    tree_digest: str
    digest: Annotated[str, "Of the plan, over all but the annex."]
    depth: Annotated[
        Literal["ledger", "preview", "refresh"], "Whom it asked: its ledger, clouds, the world."
    ]
    summary: SummaryBody
    resource_changes: list[ResourceChange]
    resource_drift: Annotated[
        list[DriftChange], "What the world has become; empty where nobody has asked it."
    ]
    held: list[HeldBody]
    deferred: list[DeferredBody]
    settled: list[SettledBody]
    stale: list[StaleBody]
    progressing: Annotated[list[str], "Addresses of accepted work that goes on by itself."]
    overrides: list[OverrideBody]
    steps: list[StepBody]
    predicates: list[PredicateBody]
    scope: ScopeBody
    recovering: Annotated[
        bool, "Whether the ledger may be wrong about everything: then nothing is changed."
    ]
    warnings: Annotated[list[str], "Sentences about the plan as a whole."]
    kept: KeptBody | None
    annex: Annotated[Json, "Times, ages, forecasts: for people, and outside the digest."]
