"""
What exists, joined from ledger rows: the other input of a plan.

Documents stay JSON text here and are parsed only where a digest differs, so that a plan with
nothing to do reads ten thousand rows and builds no models.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fleetform.model.run_state import Outdated, RunState
from fleetform.spec.desired import ResourceKey, Rules
from fleetform.spec.references import mentioned, required

if TYPE_CHECKING:
    from fleetform.model.drift import Drift, RecordedDrift
    from fleetform.model.instance import Instance
    from fleetform.model.ledger import LedgerStatus
    from fleetform.model.lineage import InputChange
    from fleetform.model.offers import TriedOffer
    from fleetform.model.override import Override
    from fleetform.model.rollout_status import RolloutStatus
    from fleetform.model.volume import Claim, RetainedData
    from fleetform.providers.offers.catalogue import Offer

__all__ = ["Rows", "RowsOutdated", "changed_rows", "present_rows", "unchanged_digests"]


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """
    A run whose name another one has by now; `document`, as JSON, is what it was submitted with.

    `ending` if somebody has asked it to end.
    """

    uid: str
    document: str
    ending: bool = False


@dataclass(frozen=True, slots=True)
class LiveRun:
    """
    What a plan must know of a run beyond its resource row.

    `gpus` are held now by its running jobs. `rerun_mark` is the high-water mark of `rerun:`; the
    last applied document's own `rerun` counts too. `earlier` is a run that had the name before and is
    not over: who stops this one stops that too, and no third one starts beside it. `executed` is the
    document, as JSON, that a run executes which is not over, where another was applied; else empty.
    """

    state: RunState
    attempt: int
    cause: str = ""
    message: str = ""
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    gpus: int = 0
    stale: Outdated = Outdated.NO
    rerun_mark: int = 0
    earlier: EarlierRun | None = None
    executed: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """
    What one run holds of one fleet at this moment.

    `started_at_ms` is of the run's attempt, Unix milliseconds; None while it has not begun.
    `leaving` of the jobs are on hosts that are drained. `hosts` are the names of those it is on;
    empty: nobody knows, and it may be any of the fleet.
    """

    run: str
    fleet: str
    jobs: int
    gpus: int
    started_at_ms: int | None = None
    leaving: int = 0
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveResource:
    """
    One row of what was applied last.

    `generation` is the spec generation: +1 with each applied change; plans pin it. `archived`
    is a finished run that left the tree: its tombstone keeps uid, digests and result; or a volume
    that does not exist: its creation has not finished (`is_being_created`), or failed, and its uid is kept
    for the next try.
    `protected` can only be lifted by a change that lifts it first. `parent` and `element` are
    as in `Declared`. `operation` is the uid of an unfinished operation, else empty.
    """

    key: ResourceKey
    uid: str
    generation: int
    digest: str
    execution_digest: str
    own_digest: str
    document: str
    type: str
    state: str = "present"
    archived: bool = False
    protected: bool = False
    parent: str = ""
    element: str = ""
    operation: str = ""
    run: LiveRun | None = None
    outputs: str = ""
    """Of a volume: what its steps have reported, as JSON."""
    _parsed: Mapping[str, Any] | None = field(default=None, init=False, repr=False, compare=False)
    _references: frozenset[ResourceKey] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    @property
    def is_being_created(self) -> bool:
        """Whether an apply has begun to create it and has not finished."""
        return self.state == "making"

    @property
    def parsed(self) -> Mapping[str, Any]:
        """
        The document as a value, parsed when it is first asked for; empty if there is none.

        All readers of the row share it, so nobody may change it.
        """
        if self._parsed is None:
            # Its place is in `__slots__`, which `functools.cached_property` cannot fill.
            object.__setattr__(self, "_parsed", json.loads(self.document) if self.document else {})
            assert self._parsed is not None
        return self._parsed

    @property
    def references(self) -> frozenset[ResourceKey]:
        """What the document needs to exist, found when it is first asked for; runs it waits for are not."""
        if self._references is None:
            found = references_of(self.key.kind, self.parsed)
            object.__setattr__(self, "_references", found)
            return found
        return self._references


def references_of(kind: str, document: Mapping[str, Any]) -> frozenset[ResourceKey]:
    """What a canonical document needs to exist; secrets, which are in expressions only, are left out."""
    return frozenset(required(mentioned(document, kind, has_marks=False)))


@dataclass(frozen=True, slots=True)
class FleetOffers:
    """
    The offers for the hosts of a fleet on a cloud, the cheapest first; without any, `problem` says why.

    `warning` is what people should know of them, and what to do.
    """

    offers: tuple[Offer, ...] = ()
    problem: str = ""
    advice: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Live:
    """
    Everything a plan compares with.

    `serial` goes up with every commit and names this reading. `rules` are the rules last
    applied: a change is judged by them; None before the first apply.
    """

    environment_uid: str
    ledger_id: str
    epoch: int
    status: LedgerStatus
    serial: int
    resources: Mapping[ResourceKey, LiveResource]
    instances: tuple[Instance, ...] = ()
    rules: Rules | None = None
    fence: int = 0
    """The highest that the ledger has given out; a host that knows a higher one knows more."""
    notes: tuple[str, ...] = field(default_factory=tuple)
    """Sentences for people: why it is recovering, which host is silent."""
    exchanging: Mapping[str, RolloutStatus] = field(default_factory=dict)
    """By name of a fleet whose hosts are being replaced by others of a new template: how far that is."""
    released_hosts: frozenset[str] = frozenset()
    """Uids of hosts that are up and were released, so that they belong to no fleet any more."""
    released_host_names: frozenset[str] = frozenset()
    """What those are called, each on its machine."""
    left: tuple[RetainedData, ...] = ()
    """Directories of volumes that were released, in the order of their release."""
    retained_disks: Mapping[str, str] = field(default_factory=dict)
    """By name of a volume that was released: the cloud's id of its disk, which was not deleted."""
    overrides: tuple[Override, ...] = ()
    """Overrides that were not lifted when it was read, by number; some may be out of date."""
    claims: Mapping[ResourceKey, Claim] = field(default_factory=dict)
    """Paths of this machine with another owner, by the resource that declares them."""
    work: tuple[Work, ...] = ()
    """By run, then by fleet: what is at work, and where."""
    person: str = ""
    """The account of who makes the plan: what it submits will be this account's."""
    outdated: Mapping[str, tuple[InputChange, ...]] = field(default_factory=dict)
    """By name of a run: how the results that it started from differ from those of now."""
    dependents: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By name of a run or sweep: the runs whose latest attempt started from its results."""
    drift: tuple[Drift, ...] = ()
    """Differences between the actual state and the ledger; empty without a refresh."""
    recorded_drift: tuple[RecordedDrift, ...] = ()
    """What looks found and no look or correction has seen healed since; by resource and path."""
    newer_commit: str = ""
    """The commit applied last where the tree's is one that it was made from; else empty."""
    given_up: frozenset[str] = frozenset()
    """Names of hosts that a person says are gone for good: nothing is asked of them any more."""
    offers: Mapping[str, FleetOffers] = field(default_factory=dict)
    """By name of a fleet on a cloud that is declared: what its new hosts may be."""
    tried_offers: Mapping[str, Sequence[TriedOffer]] = field(default_factory=dict)
    """By name of a fleet on a cloud: the offers of its last apply, by which its hosts are created, in their order."""
    observed_at_ms: int | None = None
    """When the actual state was read, Unix milliseconds; None: this is the ledger alone."""


# Live rows of which most are as they are declared, and nothing more is asked of those.
# A plan with nothing to do compares ten thousand digests. Reading all other columns of these rows and
# making values of them took longer than the rest of it, so they are read when somebody asks.


class RowsOutdated(Exception):
    """The ledger has moved on since the rows were read: what is left of them is another reading."""


class Rows(Mapping[ResourceKey, LiveResource]):
    """
    Rows by key, in order of key.

    Args:
        unchanged: Digests of rows that are as they are declared, and of which a plan has nothing else
            to say: no tombstone, no unfinished operation, no run but one that is done.
        changed: All other rows.
        read_all: Reads the whole of all rows, in the state in which these were read.

    Looking up an unchanged row may raise `RowsOutdated`.
    """

    __slots__ = ("_all", "_changed", "_keys", "_read_all", "_unchanged")

    def __init__(
        self,
        unchanged: Mapping[ResourceKey, str],
        changed: Mapping[ResourceKey, LiveResource],
        read_all: Callable[[], Mapping[ResourceKey, LiveResource]],
    ) -> None:
        self._unchanged = unchanged
        self._changed = changed
        self._read_all = read_all
        self._all: Mapping[ResourceKey, LiveResource] | None = None
        self._keys: list[ResourceKey] | None = None

    @property
    def unchanged(self) -> Mapping[ResourceKey, str]:
        """Digests of rows of which nothing else need be known."""
        return self._unchanged

    @property
    def changed(self) -> Mapping[ResourceKey, LiveResource]:
        """The other rows."""
        return self._changed

    def present(self, kinds: Collection[str]) -> Rows:
        """The rows of these kinds that are no tombstones; an unchanged row is one of them."""
        changed = {
            key: row for key, row in self._changed.items() if not row.archived and key.kind in kinds
        }
        return Rows(self._unchanged, changed, self._whole)

    def __getitem__(self, key: ResourceKey) -> LiveResource:
        row = self._changed.get(key)
        if row is not None:
            return row
        if key not in self._unchanged:
            raise KeyError(key)
        return self._whole()[key]

    def _whole(self) -> Mapping[ResourceKey, LiveResource]:
        if self._all is None:
            self._all = self._read_all()
        return self._all

    def __iter__(self) -> Iterator[ResourceKey]:
        if self._keys is None:
            self._keys = sorted((*self._unchanged, *self._changed))
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._unchanged) + len(self._changed)

    def __contains__(self, key: object) -> bool:
        return key in self._unchanged or key in self._changed


def unchanged_digests(rows: Mapping[ResourceKey, LiveResource]) -> Mapping[ResourceKey, str]:
    """Digests of those rows of which nothing else need be known; none where all are at hand."""
    return rows.unchanged if isinstance(rows, Rows) else {}


def changed_rows(
    rows: Mapping[ResourceKey, LiveResource],
) -> Mapping[ResourceKey, LiveResource]:
    """The rows of which more than a digest may matter, whether they differ or not."""
    return rows.changed if isinstance(rows, Rows) else rows


def present_rows(
    rows: Mapping[ResourceKey, LiveResource], kinds: Collection[str]
) -> Mapping[ResourceKey, LiveResource]:
    """The rows of these kinds that are no tombstones."""
    if isinstance(rows, Rows):
        return rows.present(kinds)
    return {key: row for key, row in rows.items() if not row.archived and key.kind in kinds}
