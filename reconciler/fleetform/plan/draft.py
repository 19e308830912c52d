"""
A change that is proposed, on its way through the passes, and the draft that collects them.

This is the one mutable value of the room. A kind proposes; a hold pass may take a proposal out
of `changes` and put it into `held`; nothing is ever put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fleetform.model.live import Live, LiveResource
from fleetform.model.override import Override
from fleetform.model.plan import (
    WHOLE,
    Action,
    Change,
    Deferred,
    FieldChange,
    Held,
    HeldBy,
    Permissions,
    Reason,
    Scope,
    Step,
)
from fleetform.model.verbs import Verb
from fleetform.plan.diff import set_fields
from fleetform.spec.desired import Declared, Desired, ResourceKey, Rules

__all__ = [
    "LEAVING",
    "NOTHING_MOVED",
    "Moves",
    "PlanDraft",
    "Proposal",
    "begins_on",
    "declared_arguments",
    "is_replaced",
    "make_step",
    "propose_change_of",
    "propose_change_of_row",
    "propose_creation",
    "reasons_of",
    "step_key",
]


LEAVING = frozenset({Action.DELETE, Action.FORGET, Action.ARCHIVE})
"""What has no document any more after the plan, whatever becomes of the thing itself."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """
    What a kind answers to a difference.

    `by` is set when the kind knows at once that the change cannot be carried out now.
    `not_started`: it is harmless only as long as the run has not started.
    """

    change: Change
    by: HeldBy | None = None
    detail: str = ""
    cure: str = ""
    not_started: bool = False


@dataclass(frozen=True, slots=True)
class Moves:
    """
    What of the declared moves there is still to do.

    Attributes:
        before: The earlier name of each row that is renamed, by its new one.
        stuck: Declared moves whose new name somebody else has: earlier name and new one.
        mentioning: Rows in which something that is renamed is mentioned, by their names now.
        displaced: The earlier name of each tombstone that gives way, by the name it takes for that.
    """

    before: Mapping[ResourceKey, ResourceKey]
    stuck: tuple[tuple[ResourceKey, ResourceKey], ...] = ()
    mentioning: frozenset[ResourceKey] = frozenset()
    displaced: Mapping[ResourceKey, ResourceKey] = field(default_factory=dict)


NOTHING_MOVED = Moves({})


@dataclass(slots=True)
class PlanDraft:
    """
    Everything a pass may read, and the two tables it writes.

    Attributes:
        rules: Those last applied: a change is never judged by the rules it brings along.
        scope: What the plan is made of, and what is done although nothing differs.
        left_alone: What the tree names and a plan does not touch; see `spec.desired.left_alone`.
        wanted: What is declared, less what is left alone; empty when everything is to be removed.
        present: Live rows that are not tombstones, of the kinds that a plan handles.
        deferred: Changes that the scope leaves for another plan.
        not_started: Rows whose change holds only while their run has not started.
        hastened: Fleets whose hosts are being exchanged, and that wait for nobody from now on.
        in_scope: Keys of changes that the targets mean or need; None where there are none.
        brought: Those of them that only came along, in the order they were found.
        moves: What is renamed; `live` and `present` have the new names already.
        now_ms: Unix milliseconds; for what holds at times only, and never for what is proposed.
        overrides: What people have put above the tree and that is in force now.
    """

    desired: Desired
    live: Live
    permissions: Permissions
    rules: Rules
    scope: Scope = WHOLE
    wanted: Mapping[ResourceKey, Declared] = field(default_factory=dict)
    present: Mapping[ResourceKey, LiveResource] = field(default_factory=dict)
    left_alone: frozenset[ResourceKey] = frozenset()
    changes: dict[ResourceKey, Change] = field(default_factory=dict)
    held: dict[ResourceKey, Held] = field(default_factory=dict)
    deferred: dict[ResourceKey, Deferred] = field(default_factory=dict)
    not_started: set[ResourceKey] = field(default_factory=set)
    hastened: set[ResourceKey] = field(default_factory=set)
    in_scope: frozenset[ResourceKey] | None = None
    brought: dict[ResourceKey, None] = field(default_factory=dict)
    moves: Moves = NOTHING_MOVED
    now_ms: int = 0
    overrides: tuple[Override, ...] = ()

    def add(self, proposal: Proposal) -> None:
        key = proposal.change.key
        assert key not in self.changes, f"two changes of {key}"
        if proposal.by is not None:
            self.held[key] = Held(proposal.change, proposal.by, proposal.detail, proposal.cure)
            return
        self.changes[key] = proposal.change
        if proposal.not_started:
            self.not_started.add(self.row_key(proposal.change))

    def hold(
        self,
        key: ResourceKey,
        by: HeldBy,
        detail: str,
        cure: str = "",
        *,
        waits_for: Mapping[str, str] | None = None,
    ) -> None:
        """Take a change out of the plan and say what keeps it; see `Held`."""
        self.held[key] = Held(self.changes.pop(key), by, detail, cure, waits_for or {})

    def is_left_alone(self, key: ResourceKey, parent: str) -> bool:
        """
        Tell whether its document has an error, or cannot be carried out.

        An element's document is its parent's.
        """
        if not self.left_alone or self.permissions.destroy:
            return False
        return key in self.left_alone or (
            bool(parent) and ResourceKey(key.kind, parent) in self.left_alone
        )

    def known_as(self, key: ResourceKey) -> ResourceKey:
        """The name by which the ledger knows the row that has this one in the plan."""
        return self.moves.before.get(key) or self.moves.displaced.get(key, key)

    @staticmethod
    def row_key(change: Change) -> ResourceKey:
        """The row whose work a change touches: for a pair, that of the removed element."""
        # Asked of each change by half a dozen passes, and hardly any is of a pair.
        return ResourceKey(change.key.kind, change.replaces) if change.replaces else change.key


# Changes as kinds propose them, with what each takes from the document and from the ledger's row.


def propose_creation(declared: Declared, *steps: Step) -> Proposal:
    """Propose to create what has no row."""
    return Proposal(
        Change(
            key=declared.key,
            action=Action.CREATE,
            reasons=(Reason.ABSENT,),
            type=declared.type,
            fields=set_fields(declared.key.kind, declared.document),
            steps=steps,
            parent=declared.parent,
            element=declared.element,
        )
    )


def propose_change_of(
    row: LiveResource,
    declared: Declared | None,
    action: Action,
    reasons: tuple[Reason, ...],
    fields: tuple[FieldChange, ...],
    *steps: Step,
    destructive: bool = False,
    at_stake: str = "",
    not_started: bool = False,
) -> Proposal:
    """
    Propose a change of what has a row.

    `declared` is the document that it gets, and None if it has none any more, or keeps it; `fields` are what differs.
    """
    after = row if declared is None else declared
    change = Change(
        key=after.key,
        action=action,
        reasons=reasons,
        type=after.type,
        fields=fields,
        steps=steps,
        uid=row.uid,
        generation=row.generation,
        parent=after.parent,
        element=after.element,
        destructive=destructive,
        at_stake=at_stake,
    )
    return Proposal(change, not_started=not_started)


def propose_change_of_row(
    row: LiveResource, action: Action, reason: Reason, *steps: Step, **more: Any
) -> Proposal:
    """Propose a change of what has no document, or whose document stays as it is."""
    return propose_change_of(row, None, action, (reason,), (), *steps, **more)


# Steps: a verb, what it acts on, and all it needs to know, so that apply chooses nothing.
# A step's key is `<verb>:<kind>/<name>`. It names the operation across a crash, so it depends on
# nothing but what is done to which resource.


def step_key(verb: str, key: ResourceKey) -> str:
    return f"{verb}:{key}"


def make_step(
    verb: str,
    key: ResourceKey,
    arguments: Mapping[str, Any],
    needs: tuple[str, ...] = (),
) -> Step:
    """Build a step; `needs` are what this change itself asks for, `order` adds the rest."""
    return Step(
        key=step_key(verb, key),
        verb=str(verb),
        resource=key,
        needs=needs,
        arguments={"name": key.name, **arguments},
    )


def declared_arguments(declared: Declared) -> dict[str, Any]:
    """What every step that writes a document carries of it."""
    return {
        "document": declared.document,
        "digest": declared.digest,
        "own_digest": declared.own_digest,
        "execution_digest": declared.execution_digest,
        "type": declared.type,
        "protected": bool(declared.document.get("protect", False)),
    }


# From changed fields to the reasons that a change gives.

# The gravest first: it is what a line in a table has room for.
_REASON_OF_CLASS = {
    "execution": Reason.EXECUTION_CHANGED,
    "control": Reason.CONTROL_CHANGED,
    "cosmetic": Reason.COSMETIC_CHANGED,
}


def reasons_of(changed: Iterable[FieldChange]) -> tuple[Reason, ...]:
    """Return one reason a class of field that changed, the gravest first."""
    classes = {one.field_class for one in changed}
    return tuple(reason for name, reason in _REASON_OF_CLASS.items() if name in classes)


# What a change stands on, and that it is as declared before something begins there.
# A run that begins on a volume which is about to be replaced writes where nobody will look, or into
# data that goes; one that begins on the result of a run which is to run again makes it of what the tree
# has left behind. So what waits for a replacement is told from what waits for something to be there.


def is_replaced(change: Change) -> bool:
    """Tell whether the change makes something else of what others stand on."""
    return change.action is Action.REPLACE


def begins_on(draft: PlanDraft, change: Change, needed: ResourceKey) -> bool:
    """Tell whether this change begins something on `needed`, which it did not stand on or use yet."""
    if change.action in {Action.CREATE, Action.ADOPT, Action.REPLACE}:
        return True
    if any(step.verb == Verb.RUN_SUBMIT for step in change.steps):
        return True
    # What waits, and is told to use it from now on.
    is_updated = change.action is Action.UPDATE and change.key in draft.present
    return (
        is_updated and needed.kind != "run" and needed not in draft.present[change.key].references
    )
