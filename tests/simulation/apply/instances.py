"""Hosts as the judge knows them: who may be made, who gives way, and who was let go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetform.model.plan import Step
from simulation.apply.evidence import Evidence
from simulation.apply.ports import Disk
from simulation.apply.rule import Rule

__all__ = ["Instances"]


class Instances:
    """
    Attributes:
        let_go: Uids of instances that are up and belong to no fleet, by somebody's decision.
        to_go: Uids of instances that somebody has asked for others of.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.let_go: set[str] = set()
        self.to_go: set[str] = set()
        self._evidence = evidence
        self._places: dict[str, str] = {}
        self._may_end: set[str] = set()

    def made(self, uid: str, place: str, *, written: bool, others: Mapping[str, str]) -> None:
        """
        A host exists.

        `others` are the names of those that exist beside it, by uid: the ledger's where it knows
        one, for a host that stands in for another gets its name when that one has gone.
        """
        seen = self._evidence
        seen.note(seen.now, f"made instance {uid[:8]} at {place}")
        seen.effect("made", uid, f"{place} was made")
        seen.require(Rule.INTENDED, written, f"{place} was made as {uid[:8]}")
        twins = [
            one[:8] for one, name in others.items() if name == place and one not in self.let_go
        ]
        seen.require(Rule.ALONE, not twins, f"{place} is {uid[:8]} and {twins}")
        self._places[uid] = place

    def released(
        self, uid: str, place: str, *, fleet: str, leaving: bool, ends: Mapping[str, str]
    ) -> None:
        """`ends` is what was at work there: names by uid of the run."""
        seen = self._evidence
        seen.note(seen.now, f"released {place}")
        planned = uid in self._may_end or any(
            step.verb == "fleet.remove" and step.resource.name == fleet
            for step in seen.operations.values()
        )
        names = sorted(ends.values())
        seen.require(Rule.GIVES_WAY, planned or not ends, f"{place} was released under {names}")
        seen.effect("released", uid, f"{place} was released")
        seen.require(Rule.INTENDED, leaving, f"{place} was released")
        self._places.pop(uid, None)

    def take_fleet(self, step: Step, hosts: Mapping[str, str], *, told: bool) -> None:
        """
        Note whose hosts they are, and which of them are to give way.

        `told`: the plan said that this ends work, as it must of what was being exchanged already.
        """
        name, said = step.resource.name, step.arguments
        mine = {uid for uid, host in hosts.items() if host.startswith(f"{name}-")}
        before = self._evidence.record.resources.get(step.resource)
        if step.verb == "fleet.adopt":
            self._evidence.happened("fleet taken in")
        self.let_go -= mine
        if step.verb != "fleet.update":
            return
        asked = {uid for uid in mine if hosts[uid] in said.get("exchange", ())}
        # One that is too many goes anyway, and stays where it is wanted again before it has gone.
        wanted = {one["name"] for one in said["instances"]}
        self.to_go |= {uid for uid in asked if hosts[uid] in wanted}
        if asked:
            self._evidence.happened("host replaced")
        if _strategy(said["document"]) == "recreate":
            others = before is not None and _division(before.document) != _division(
                said["document"]
            )
            hastened = told and before is not None and _strategy(before.document) != "recreate"
            self._may_end |= mine if others or hastened else asked

    def forget_fleet(self, fleet: str) -> None:
        """Its hosts stay up, and are nobody's; its name is free."""
        self.let_go |= {uid for uid, place in self._places.items() if place.startswith(f"{fleet}-")}

    def take_back(self, disk: Disk) -> None:
        """Hosts of which this ledger knows the fleet are let go no more."""
        rows = disk.ask("SELECT uid FROM instances WHERE fleet <> '' AND state <> 'terminated'")
        self.let_go -= {uid for (uid,) in rows}


def _division(document: Mapping[str, Any]) -> tuple[str, int]:
    """What hosts are made from; anything else changes in place."""
    return document.get("sharing", "exact"), document.get("blocks", 1)


def _strategy(document: Mapping[str, Any]) -> str:
    return str((document.get("update") or {}).get("strategy", ""))
