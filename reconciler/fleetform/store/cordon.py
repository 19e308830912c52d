"""
Hosts on which nothing begins any more, because somebody has agreed that they end.

Who agreed was told who is at work there. A run that were placed later would end with its host, and
nobody has been asked. A fleet that is removed or let go is closed as a whole from the moment its
plan is entered. Where hosts are exchanged and wait for nobody, those that are to go are closed: by
the plan until its step is done, and from then on by what the fleet is known to want.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fleetform.model.plan import Plan, Step
from fleetform.model.rollout import LEAVING, RESTING
from fleetform.model.verbs import Verb
from fleetform.store.database import Transaction, to_json
from fleetform.store.rollouts import leaving_fleets

if TYPE_CHECKING:
    from fleetform.store.statements import Statements

__all__ = ["Closing", "closings_of", "read_closing"]


@dataclass(frozen=True, slots=True)
class _Exchange:
    """Hosts of fleets that go: those of another template, and those that are named."""

    fleets: frozenset[str]
    template: str
    hosts: frozenset[str] = frozenset()

    def ends(self, fleet: str, host: str, template: str) -> bool:
        if fleet not in self.fleets:
            return False
        return host in self.hosts or template not in {"", self.template}


@dataclass(frozen=True, slots=True)
class Closing:
    """What one reading of the ledger says."""

    leaving: frozenset[str]
    exchanges: tuple[_Exchange, ...]

    def reason(self, fleet: str, host: str, template: str) -> str:
        """Say why nothing begins on a host, which was made from `template`; empty: it may."""
        if fleet in self.leaving:
            return LEAVING
        return RESTING if any(one.ends(fleet, host, template) for one in self.exchanges) else ""


def read_closing(connection: Statements | Transaction) -> Closing:
    return Closing(leaving_fleets(connection), (*_entered(connection), *_under_way(connection)))


def _entered(connection: Statements | Transaction) -> list[_Exchange]:
    """Exchanges that a plan is about to begin, and one that it has begun and not ended."""
    rows = connection.execute(
        "SELECT closes FROM operations INDEXED BY operations_open"
        " WHERE state IN ('planned', 'intended') AND resource_kind = 'fleet' AND closes <> ''"
    )
    said = [json.loads(closes) for (closes,) in rows]
    return [
        _Exchange(frozenset(one["fleets"]), one["template"], frozenset(one["hosts"]))
        for one in said
    ]


def _under_way(connection: Statements | Transaction) -> list[_Exchange]:
    """What fleets are known to want, of those that wait for nobody."""
    rows = connection.execute(
        "SELECT name, outputs FROM resources WHERE kind = 'fleet' AND outputs <> ''"
        " AND outputs <> '{}'"
    )
    # Of many fleets few are of this kind, and a document is parsed only where its text says so.
    kept = [(name, json.loads(text)) for name, text in rows if _RECREATE in text]
    return [
        _Exchange(frozenset({name}), one["template"])
        for name, one in kept
        if "template" in one and _waits_for_nobody(one)
    ]


_RECREATE = '"recreate"'


def _waits_for_nobody(document: Mapping[str, Any]) -> bool:
    return bool((document.get("update") or {}).get("strategy") == "recreate")


def closings_of(plan: Plan) -> dict[str, str]:
    """
    What steps of a plan close from its entry on, by their keys; kept with their operations.

    A fleet that is renamed first has its earlier name until then, and so have its hosts.
    """
    earlier = {
        step.resource.name: step.arguments["from"]
        for step in plan.steps
        if step.verb == Verb.RESOURCE_MOVE and step.resource.kind == "fleet"
    }
    return {
        step.key: _closing_of(step, earlier.get(step.resource.name))
        for step in plan.steps
        if step.verb == Verb.FLEET_UPDATE and _waits_for_nobody(step.arguments["document"])
    }


def _closing_of(step: Step, earlier: str | None) -> str:
    fleet = step.resource.name
    hosts = list(step.arguments.get("exchange", ()))
    if earlier is not None:
        hosts += [earlier + host.removeprefix(fleet) for host in hosts if host.startswith(fleet)]
    return to_json(
        {
            "fleets": [fleet] if earlier is None else [fleet, earlier],
            "hosts": hosts,
            "template": step.arguments.get("template", ""),
        }
    )
