"""
A change that is proposed, on its way through the passes, and the sheet that collects them.

This is the one mutable value of the room. A kind proposes; a hold pass may take a proposal out
of `changes` and put it into `held`; nothing is ever put back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fleetform.model.live import Live, LiveResource
from fleetform.model.override import Override
from fleetform.model.plan import WHOLE, Action, Change, Deferred, Held, HeldBy, Permissions, Scope
from fleetform.spec.desired import Declared, Desired, ResourceKey, Rules

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
class Sheet:
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
        awaited: Mapping[str, str] | None = None,
    ) -> None:
        """Take a change out of the plan and say what keeps it; see `Held`."""
        self.held[key] = Held(self.changes.pop(key), by, detail, cure, awaited or {})

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
