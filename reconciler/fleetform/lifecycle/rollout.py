"""
Exchanging the hosts of a fleet whose template changed: who is next, and what happens to them.

A host is made from a template: how it is divided among jobs cannot change under jobs that hold
parts of it. Decided from rows alone, in every round anew, so that the next manager goes on where a
dead one stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from fleetform.model.instance import Instance, InstanceState
from fleetform.model.rollout import SURGE, Exchange, Move, Template
from fleetform.model.rollout_status import RolloutStatus

__all__ = ["Place", "next_moves", "place_of", "status_of"]


@dataclass(frozen=True, slots=True)
class Place:
    """
    One host of the fleet.

    Attributes:
        number: Its place; `SURGE` more for one that comes early.
        is_outdated: It was made from another template.
        is_ready: It answers.
        is_idle: Nothing is on it, and nothing is kept of what was.
        is_resting: It gets nothing more.
        is_leaving: It is about to go.
    """

    uid: str
    number: int
    is_outdated: bool
    is_ready: bool = True
    is_idle: bool = True
    is_resting: bool = False
    is_leaving: bool = False


def place_of(instance: Instance, template: Template, occupied: AbstractSet[str]) -> Place:
    """Return what a rollout sees of an instance; `occupied` are the uids of those that are not idle."""
    return Place(
        uid=instance.uid,
        number=instance.number,
        is_outdated=instance.template_digest not in {"", template.digest},
        is_ready=instance.state is InstanceState.READY,
        is_idle=instance.uid not in occupied,
        is_resting=bool(instance.drained),
        is_leaving=instance.state is InstanceState.TERMINATING,
    )


def status_of(template: Template, hosts: Sequence[Place]) -> RolloutStatus:
    """Say how far the rollout of a fleet is."""
    there = {one.number: one for one in hosts if not one.is_leaving}
    placed = [there[number] for number in template.places if number in there]
    waiting = [one for one in placed if one.is_outdated]
    return RolloutStatus(
        hosts=len(template.places),
        updated=len(placed) - len(waiting),
        waiting=len(waiting),
        busy=sum(not one.is_idle for one in waiting),
    )


def next_moves(template: Template, hosts: Iterable[Place]) -> tuple[Exchange, ...]:
    """
    Say what is to be done now.

    Args:
        template: What is wanted.
        hosts: All of the fleet that are not gone yet.

    Returns:
        Moves that may be made at once, each host in one of them at most. Empty when all hosts are
        of the template, or nothing can be done before something else has happened.
    """
    there = {one.number: one for one in hosts}
    if template.strategy == "surge":
        return tuple(_surge(template, there))
    return tuple(_in_turn(template, there))


def _in_turn(template: Template, there: dict[int, Place]) -> Iterable[Exchange]:
    """A place is empty while its host is exchanged."""
    away = 0
    old: list[Place] = []
    for number in template.places:
        host, early = there.get(number), there.get(number + SURGE)
        if host is None:
            # One that came early, when the fleet was exchanged otherwise, has this place now.
            if early is None or early.is_leaving:
                yield Exchange(Move.MAKE, number=number)
            else:
                yield Exchange(Move.SETTLE, early.uid, number)
            away += 1
        elif host.is_leaving or not host.is_outdated:
            away += not host.is_ready or host.is_leaving
            if early is not None and not host.is_leaving:
                yield from _leave_or_rest(early)
        elif host.is_resting and template.strategy != "recreate":
            away += 1
            if host.is_idle:
                yield Exchange(Move.LEAVE, host.uid)
        else:
            old.append(host)
    for host in _soonest(old)[: max(0, template.at_once - away)]:
        if template.strategy == "recreate":
            yield Exchange(Move.END, host.uid)
        else:
            yield Exchange(Move.LEAVE if host.is_idle else Move.REST, host.uid)


def _surge(template: Template, there: dict[int, Place]) -> Iterable[Exchange]:
    """The new host is there before the old one gets nothing more."""
    under_way = 0
    old: list[Place] = []
    for number in template.places:
        host, early = there.get(number), there.get(number + SURGE)
        if host is None:
            under_way += 1
            if early is None:
                yield Exchange(Move.MAKE, number=number)
            elif not early.is_leaving:
                yield Exchange(Move.SETTLE, early.uid, number)
        elif early is not None:
            under_way += 1
            if not (host.is_leaving or host.is_outdated) and early.is_outdated:
                yield from _leave_or_rest(early)
                continue
            if host.is_leaving or not early.is_ready:
                continue
            if host.is_idle and (host.is_resting or host.is_outdated):
                yield Exchange(Move.LEAVE, host.uid)
            elif not host.is_resting:
                yield Exchange(Move.REST, host.uid)
        elif host.is_leaving:
            under_way += 1
        elif host.is_outdated:
            old.append(host)
    for host in _soonest(old)[: max(0, template.at_once - under_way)]:
        yield Exchange(Move.MAKE, number=host.number + SURGE)


def _leave_or_rest(early: Place) -> Iterable[Exchange]:
    """End or rest a host that came early for a template that is not wanted any more."""
    if early.is_idle and not early.is_leaving:
        yield Exchange(Move.LEAVE, early.uid)
    elif not (early.is_resting or early.is_leaving):
        yield Exchange(Move.REST, early.uid)


def _soonest(hosts: Sequence[Place]) -> list[Place]:
    """Who is idle first: nothing has to be waited for."""
    return sorted(hosts, key=lambda one: (not one.is_idle, one.number))
