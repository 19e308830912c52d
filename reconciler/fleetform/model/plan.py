"""
The plan: an immutable value that leaves apply nothing to choose.

Two enums on purpose: apply branches on `Action`, people read `Reason`. The same inputs give
the same bytes; `digest` covers all but the annex.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fleetform.model.lineage import InputChange, InputEvent
from fleetform.model.override import Override
from fleetform.model.run_state import Outdated, RunState
from fleetform.spec.desired import ResourceKey, Rules

FORMAT_VERSION = 2


class Action(enum.StrEnum):
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    ADOPT = "adopt"
    FORGET = "forget"
    ARCHIVE = "archive"


class Reason(enum.StrEnum):
    """Why a change is in the plan; each has its sentence in `views.reasons`."""

    ABSENT = "absent"
    RETURNED = "returned"
    EXECUTION_CHANGED = "execution-changed"
    CONTROL_CHANGED = "control-changed"
    COSMETIC_CHANGED = "cosmetic-changed"
    INHERITED_CHANGED = "inherited-changed"
    ELEMENT_REPLACED = "element-replaced"
    RERUN_ASKED = "rerun-asked"
    REMOVED = "removed"
    REMOVED_FINISHED = "removed-finished"
    DESTROY_ASKED = "destroy-asked"
    RESUMED = "resumed"
    STATE_WANTED = "state-wanted"
    MOVED = "moved"
    FOUND = "found"
    RELEASED = "let-go"
    REPLACE_ASKED = "replace-asked"
    DRIFTED = "drifted"
    DATA_LOST = "data-lost"
    UNFINISHED = "unfinished"
    HOSTS_LACK_IT = "hosts-lack-it"
    WITHDRAWN = "withdrawn"
    DEFERRED = "deferred"


class HeldBy(enum.StrEnum):
    RUNNING_WORK = "running-work"
    ENDING = "ending"
    DESTRUCTIVE = "destructive"
    BUDGET = "budget"
    PROTECTION = "protection"
    BROKEN_DOCUMENT = "broken-document"
    RECOVERING = "recovering"
    DEPENDENCY = "dependency"
    NOT_SUPPORTED = "not-supported"
    WINDOW = "window"
    OVERRIDE = "override"
    OWNER = "owner"
    DRIFT = "drift"
    ACCOUNT = "account"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """
    One field, before → after, canonical values; `path` is dotted with `[n]` for items.

    `before_set` and `after_set` tell a side where the field is not set from one where it is null.
    `forces` says that this field is why the action is a replacement. `sensitive`: the values are
    versions of what must not be shown, and never the thing itself. `unknown`: what it becomes is
    known only when it has been done.
    """

    path: str
    before: Any
    after: Any
    before_set: bool = True
    after_set: bool = True
    forces: bool = False
    field_class: str = "execution"
    sensitive: bool = False
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """
    One thing that apply does, whole.

    `verb` is one of `model.verbs`: `fleet.make`, `fleet.update`, `fleet.remove`,
    `volume.make`, `volume.adopt`, `volume.update`, `volume.withdraw`, `volume.snapshot`,
    `volume.forget`, `volume.remove`, `run.submit`, `run.update`, `run.stop`, `run.archive`, `run.restore`,
    `run.forget`, `fleet.adopt`, `fleet.forget`, `resource.move`, `rules.set`. `needs` are keys of
    earlier steps.
    `arguments` are JSON values.
    """

    key: str
    verb: str
    resource: ResourceKey
    needs: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Impact:
    """
    Running work that a change would end: how much of it, and no time, which goes into the annex.

    `runs` are the names of the runs that are at work, sorted.
    """

    runs: tuple[str, ...]
    jobs: int = 0
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """
    One resource and one action.

    `uid` and `generation` are of the live row it was planned against; empty and 0 for one
    that does not exist. `replaces` names the removed element that this one takes the place of.
    `destructive` needs permission and counts against the budget; `at_stake` says in words what
    would be lost.
    """

    key: ResourceKey
    action: Action
    reasons: tuple[Reason, ...]
    type: str
    fields: tuple[FieldChange, ...] = ()
    steps: tuple[Step, ...] = ()
    uid: str = ""
    generation: int = 0
    parent: str = ""
    element: str = ""
    replaces: str = ""
    destructive: bool = False
    at_stake: str = ""
    moved_from: str = ""
    """The name it had: the resource is the same, whatever it is called."""
    cost_before: int | None = None
    """Micro-dollars an hour as it is; None where no price is known."""
    cost_after: int | None = None
    cost_max: int | None = None
    """The same with all hosts that demand may bring in; None: the number is fixed, or no price is known."""
    stake: Impact | None = None
    before: Mapping[str, Any] | None = None
    """
    The whole document last applied, with versions for what is sensitive; None where none was.
    """
    after: Mapping[str, Any] | None = None
    """The same as it will be, where no step carries it: of a change that is held."""


def row_key_of(change: Change) -> ResourceKey:
    """Say by which key the ledger knows what is changed."""
    return ResourceKey(change.key.kind, change.replaces or change.moved_from or change.key.name)


@dataclass(frozen=True, slots=True)
class Held:
    """
    A change that is not carried out now, by what, and what would release it.

    `awaited` are runs that are on their way to their end and keep it until then, names by uid.
    """

    change: Change
    by: HeldBy
    detail: str
    cure: str = ""
    awaited: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deferred:
    """A change that this plan leaves out: by a target or an exclusion."""

    change: Change
    why: str


@dataclass(frozen=True, slots=True)
class Settled:
    """A run that ended earlier other than `done`, and that this plan leaves so."""

    key: ResourceKey
    state: str
    detail: str

    @property
    def is_failure(self) -> bool:
        """Tell whether it failed, or may have: a person's stop is no failure."""
        return self.state != RunState.STOPPED


@dataclass(frozen=True, slots=True)
class StaleResult:
    """
    A result whose inputs have changed: it is kept, and `rerun` asks for another execution.

    Attributes:
        document: What changed of its document.
        inputs: Results of other runs that differ from those that it started from, by name.
    """

    key: ResourceKey
    document: Outdated = Outdated.NO
    inputs: tuple[InputChange, ...] = ()


def outdated_by(step: Step) -> Outdated:
    """Tell what a step says of the result that a run has: how its document differs by now."""
    if not step.arguments.get("stale"):
        return Outdated.NO
    return Outdated.DOCUMENT if step.arguments.get("edited") else Outdated.INHERITED


ARCHIVED = "archived"
"""The value of a claim that a run is absent to which its tombstone is no objection."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """
    What must still hold when the plan is applied.

    claim: `generation` (value as text), `absent` (a run also has no tombstone, unless the value is
    `archived`: what has ended since would be run again), `run-not-started`, `ledger` (id and epoch), `rules`
    (those last applied, as canonical JSON, by which what it destroys was judged), `at-work` (nobody
    but these runs is at work where a fleet ends what is, or is forgotten: `model.predicates`),
    `unattached` (nobody at work has the volume mounted but these runs, a JSON list of names, which the
    plan ends before it goes).
    """

    claim: str
    resource: ResourceKey | None
    value: str = ""

    @property
    def is_free_if_archived(self) -> bool:
        """Tell of a claim that something is absent whether it holds next to a tombstone."""
        return self.value == ARCHIVED or self.resource is None or self.resource.kind != "run"


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the person who plans or applies allows beyond the rules."""

    allow_destroy: bool = False
    allow_restart: bool = False
    allow_deletes: int | None = None
    destroy: bool = False
    """Plan the removal of everything."""


@dataclass(frozen=True, slots=True)
class Kept:
    """
    What makes a plan in a file one of its kind: it is carried out once, whatever became of it.

    Attributes:
        plan_id: 32 hex digits, minted when it was written. Two files of equal plans have two.
        made_at_ms: Unix milliseconds.
        who: Who made it.
        permissions: What they allowed; whoever applies it allows nothing beyond.
    """

    plan_id: str
    made_at_ms: int
    who: str
    permissions: Permissions


@dataclass(frozen=True, slots=True)
class Scope:
    """
    What a plan is made of, and what is done although nothing differs.

    All are addresses, `run/train`, with globs: `run/sweep[*]`, `volume/*`. Empty targets mean
    everything.
    """

    targets: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        return not self.targets and not self.excludes


WHOLE = Scope()
"""Everything."""


@dataclass(frozen=True, slots=True)
class Plan:
    """
    Ordered changes, what is held and why, and the predicates.

    `changes` come in the order of their keys, `held` likewise. `progressing` names accepted
    work in progress, which is not a change. `annex` (depth, time, age of what was seen, counts)
    is for people and outside the digest.
    """

    environment_fingerprint: str
    """In the stead of the uid, which is the key of what is sealed (`model.redaction`)."""
    environment_name: str
    ledger_id: str
    epoch: int
    changes: tuple[Change, ...]
    held: tuple[Held, ...] = ()
    settled: tuple[Settled, ...] = ()
    progressing: tuple[ResourceKey, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    rules: Rules | None = None
    commit: str = ""
    tree_digest: str = ""
    digest: str = ""
    format_version: int = FORMAT_VERSION
    annex: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    """Sentences about the plan as a whole, e.g. that nothing is declared."""
    deferred: tuple[Deferred, ...] = ()
    """By key: what differs and is left for another plan."""
    scope: Scope = WHOLE
    overrides: tuple[Override, ...] = ()
    """Overrides in force, which every plan shows."""
    kept: Kept | None = None
    """Of a plan in a file; None for one that is carried out at once."""
    salt: str = ""
    """Of the environment: shown nowhere, so that no words can be tried at the digest."""
    recovering: bool = False
    """The ledger may be wrong about everything, also about what does not differ."""
    destroys: bool = False
    """Everything is to go, whatever the tree declares: `Permissions.destroy`."""

    @property
    def stale(self) -> tuple[StaleResult, ...]:
        """By key: results whose inputs have changed. A note, and so a part of the annex."""
        return tuple(
            StaleResult(
                ResourceKey("run", one["name"]),
                Outdated.DOCUMENT if one.get("edited") else Outdated(one["inherited"]),
                tuple(InputChange(name, InputEvent(event)) for name, event in one["inputs"]),
            )
            for one in self.annex.get("stale", ())
        )

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for change in self.changes for step in change.steps)

    @property
    def is_empty(self) -> bool:
        return not self.changes
