"""
The judge of an apply: sees what is entered, begun and written down, and what the world does.

It keeps its own record of what was applied and by which rules, and compares everything with
that. Nothing of it is read by what it judges. Its parts see to plans, steps, hosts and directories;
what runs, and what a restored ledger has forgotten, is seen to here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fleetform.spec.desired import ResourceKey
from simulation.apply.entries import Entries
from simulation.apply.evidence import Evidence
from simulation.apply.instances import Instances
from simulation.apply.outcomes import Outcomes
from simulation.apply.overrides import Override, Overrides
from simulation.apply.ports import Disk
from simulation.apply.record import Applied, Record
from simulation.apply.rule import Rule
from simulation.apply.volumes import Volumes

__all__ = ["Judge", "Snapshot"]

_KNOWN = {
    "made": "SELECT 1 FROM instances WHERE uid = ?",
    "released": "SELECT 1 FROM instances WHERE uid = ? AND state IN ('terminating', 'terminated')",
    "volume": "SELECT 1 FROM operations WHERE uid = ?",
    "run": "SELECT 1 FROM jobs WHERE run_uid = ? AND state NOT IN ('waiting', 'reserved')",
}
"""How a copy shows that it knows of something that was done: then to take it up again is right."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the judge believed when a copy of the ledger was made."""

    record: Record
    to_go: frozenset[str]
    done_in_world: int
    applies: tuple[str, ...]
    carried_out: Counter[str]
    overrides: Mapping[int, Override]


@dataclass(slots=True)
class Judge(Evidence):
    """
    What all its parts go by, and the parts.

    `has_no_witness`: an older ledger was put back, and no host is left that could tell.
    """

    has_no_witness: bool = False
    above: Overrides = field(init=False)
    entries: Entries = field(init=False)
    instances: Instances = field(init=False)
    outcomes: Outcomes = field(init=False)
    volumes: Volumes = field(init=False)

    def __post_init__(self) -> None:
        self.above = Overrides(self.require)
        self.volumes = Volumes(self)
        self.instances = Instances(self)
        self.entries = Entries(self, self.above, self.volumes)
        self.outcomes = Outcomes(self, self.above, self.entries, self.instances, self.volumes)

    # -- what runs ------------------------------------------------------------------------

    def began(self, name: str, run_uid: str, attempt: int, fleet: str) -> None:
        """A process of a run exists on a host of this fleet."""
        self.above.check_beginning(name, fleet, (run_uid, attempt), self.now)
        self.note(self.now, f"began {name} {run_uid[:8]}/{attempt}")
        self.effect("run", run_uid, f"{name} was started")
        times, others = self.executions.begin(name, run_uid, attempt)
        self.uses.begin(run_uid, fleet, self.record)
        self.require(Rule.ONCE, times == 1, f"{name} {run_uid[:8]}/{attempt} began {times} times")
        self.require(Rule.ALONE, not others, f"{name} runs beside {others}")

    def ended(self, name: str, run_uid: str, attempt: int, *, how: str) -> None:
        """`how`: `done`, `failed`, `stopped`, or `lost` with its host."""
        self.note(self.now, f"ended {name} {run_uid[:8]}/{attempt}: {how}")
        self.executions.end(run_uid, attempt, how)
        self.uses.end(run_uid)

    def requeued(self, run_uid: str) -> None:
        self.executions.requeued(run_uid)

    def left(self, unasked: Sequence[str]) -> None:
        """Names have left the tree; `unasked` are runs of theirs that go on all the same."""
        self.require(Rule.SEEN, not unasked, f"{unasked} go on")

    def managed(self, who: str, fence: int, newest: int) -> None:
        """Somebody has caused something under their fence, while this was the newest."""
        self.above.check_resting(who, self.now)
        self.require(
            Rule.FENCED, fence == newest, f"{who} acts with fence {fence}, and {newest} is taken"
        )

    # -- restored ledgers -------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """What is believed now, for a copy of the ledger that is made now."""
        return Snapshot(
            # Documents are never changed, so that they may be shared.
            self.record.copy(),
            frozenset(self.instances.to_go),
            len(self.done_in_world),
            tuple(self.entries.of),
            self.entries.carried_out.copy(),
            dict(self.above.overrides),
        )

    def restored(self, marks: Snapshot, disk: Disk, *, is_known: bool) -> None:
        """
        The ledger is that copy again: what was applied since is known to nobody.

        `is_known` tells whether some host is left that can know of it: what nobody remembers
        nobody can find out.
        """
        version, made = self.record.version, self.record.left_paths | self.volumes.paths()
        self.record = marks.record.copy()
        self.instances.to_go = set(marks.to_go)
        self.above.overrides = dict(marks.overrides)
        if is_known:
            self.record.version = {key: number + 1 for key, number in version.items()}
        else:
            self.entries.carried_out = marks.carried_out.copy()
            self.executions.forget_how_often()
            self.has_no_witness = True
        # Nothing is removed for being unknown: data of which no ledger tells stays where it is.
        self.record.left_paths |= made - _paths(disk)
        self.outgrown = is_known and any(
            not disk.ask(_KNOWN[kind], (uid,))
            for kind, uid in self.done_in_world[marks.done_in_world :]
        )
        self.instances.take_back(disk)
        begun = disk.ask("SELECT run_uid FROM jobs WHERE state NOT IN ('waiting', 'reserved')")
        self.uses.forget_all_but({uid for (uid,) in begun})
        if not self.outgrown:
            # This copy may have been made when it was, and nobody is left who knows better.
            self.entries.unfounded.clear()
        self.note(self.now, f"restored{', outgrown' if self.outgrown else ''}")
        self.entries.of = {uid: self.entries.of[uid] for uid in marks.applies}

    def rebuilt(self, disk: Disk) -> None:
        """Somebody has put it together again: from here on we believe what it says of runs."""
        self.outgrown = False
        self.instances.take_back(disk)
        # A host's template is made up of what is declared now.
        self.instances.to_go.clear()
        self.record.left = {
            path: (name, uid)
            for name, uid, path in disk.ask(
                "SELECT volume, volume_uid, path FROM snapshots WHERE place = path"
            )
        }
        for kind, name, uid, document, digest, execution, own, archived in disk.ask(
            "SELECT kind, name, uid, document, digest, execution_digest, own_digest, archived"
            " FROM resources"
        ):
            key = ResourceKey(kind, name)
            before = self.record.resources.get(key)
            self.record.version[key] = self.record.version.get(key, 0) + 1
            self.record.resources[key] = Applied(
                document=json.loads(document),
                execution_digest=execution,
                own_digest=own,
                digest=digest,
                archived=bool(archived),
                mark=before.mark if before else 0,
                run_uid=uid if kind == "run" else "",
            )


def _paths(disk: Disk) -> set[str]:
    # A tombstone, such as one whose creation was cut off, has no directory of its own.
    rows = disk.ask(
        "SELECT document ->> 'path' FROM resources WHERE kind = 'volume' AND archived = 0"
    )
    return {path for (path,) in rows}
