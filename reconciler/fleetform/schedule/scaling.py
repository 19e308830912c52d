"""
Which hosts fleets lack for the runs that wait for room, and which hosts no run needs.

A run that finds no room in a round counts on hosts that come: first on those that are being created, of any
fleet that it may use, then on hosts that a fleet may create. What it counts on is allotted in this round, so
that a burst of runs asks for as many hosts as it fills, in one request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from fleetform.model.decision import Waiting
from fleetform.model.figures import counted, first_of
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.rollout import SURGE
from fleetform.model.run import Run, RunUid
from fleetform.schedule.demand import Take
from fleetform.schedule.equivalence_class import EquivalenceClass, Option
from fleetform.schedule.space import Fleet, Held, Space

if TYPE_CHECKING:
    from fleetform.model.scaling import ScaleRequest, Scaling

__all__ = ["Growth"]

_COMING = frozenset({InstanceState.PROVISIONING, InstanceState.RECOVERING})
"""States of hosts that take jobs soon without anything being created."""

_CREATED_FOR = frozenset({InstanceState.PROVISIONING, InstanceState.UNCREATED})

_NAMED_MAX = 5

_REUSE = Waiting("scaling", "`creation_policy: reuse` lets no host be created for it")


class _Claim(NamedTuple):
    """What one node of a run counts on."""

    space: Space
    take: Take
    gpus: tuple[str, ...]


@dataclass(slots=True)
class _GangHosts:
    """
    The hosts of one fleet that gangs of one class may count on: free ones of `now`, and those that come, in order.

    Units are only taken within a round, so a host that has no room is never looked at again.
    """

    now: list[tuple[Space, Take]]
    coming: list[tuple[Space, Take]]

    def find(self, count: int) -> list[_Claim]:
        """Return up to so many hosts that come and have room."""
        found: list[_Claim] = []
        looked = 0
        for space, take in self.coming if count > 0 else ():
            if len(found) == count:
                break
            looked += 1
            gpus = space.free.choose(take)
            if gpus is not None:
                found.append(_Claim(space, take, gpus))
        self.coming[:looked] = [(one.space, one.take) for one in found]
        return found


class Growth:
    """The hosts that fleets may create in one round; mutable, and of one round only."""

    def __init__(
        self, scaling: Mapping[str, Scaling], instances: Sequence[Instance], nodes: int
    ) -> None:
        """`nodes` is how many hosts all waiting runs need together."""
        self._scaling = scaling
        self._taken = {name: set(one.places) for name, one in scaling.items()}
        for instance in instances:
            if instance.fleet in self._taken:
                self._taken[instance.fleet].add(instance.number % SURGE)
        # A host that has not been created has the accounts of those that are there: or each run that none
        # of them may have would create one more.
        self._reported = {one.fleet: one for one in instances if one.agent_account}
        self.uncreated = tuple(self._uncreated(nodes))
        self._candidates: dict[int, deque[tuple[Space, Take]]] = {}
        self._gang_hosts: dict[tuple[int, int], _GangHosts] = {}
        self._needed: set[str] = set()
        self._runs: dict[str, set[RunUid]] = {name: set() for name in scaling}
        self._hosts: dict[str, set[str]] = {name: set() for name in scaling}

    def _uncreated(self, nodes: int) -> Iterator[Instance]:
        for name in sorted(self._scaling):
            scaling, taken = self._scaling[name], self._taken[name]
            free = (number for number in range(scaling.most) if number not in taken)
            like = self._reported.get(name, scaling.host)
            for number, _ in zip(free, range(min(nodes, scaling.most - len(taken))), strict=False):
                yield replace(
                    scaling.host,
                    uid=f"new {name}-{number}",
                    name=f"{name}-{number}",
                    fleet=name,
                    number=number,
                    state=InstanceState.UNCREATED,
                    agent_account=like.agent_account,
                    accounts=like.accounts,
                )

    # -- what runs count on -----------------------------------------------------------------------

    def claim(self, run: Run, equivalence: EquivalenceClass) -> tuple[Waiting, ...]:
        """Let a run that lacks room count on hosts that come, and say on which; empty: on none."""
        if equivalence.nodes == 1:
            claims = self._claim_one(equivalence)
        else:
            tried = [self._claim_gang(equivalence, option) for option in equivalence.options]
            claims = min(filter(None, tried), key=_created, default=[])
        coming: list[Instance] = []
        for space, take, gpus in claims:
            space.free.remove(
                Held(take.cpu_millicores, take.memory_bytes, take.disk_bytes, gpus, take.blocks, None)
            )  # fmt: skip
            instance = space.instance
            self._needed.add(instance.uid)
            if instance.state in _CREATED_FOR:
                coming.append(instance)
            if instance.state is InstanceState.UNCREATED:
                self._hosts[instance.fleet].add(instance.uid)
                self._runs[instance.fleet].add(run.uid)
        return tuple(Waiting("scaling", sentence) for sentence in _waits_for(coming))

    def _claim_one(self, equivalence: EquivalenceClass) -> list[_Claim]:
        candidates = self._candidates.get(id(equivalence))
        if candidates is None:
            found = [one for option in equivalence.options for one in _coming(equivalence, option)]
            candidates = self._candidates[id(equivalence)] = deque(sorted(found, key=_order))
        while candidates:
            space, take = candidates[0]
            gpus = space.free.choose(take)
            if gpus is not None:
                return [_Claim(space, take, gpus)]
            # Units are only taken within a round, so it has no room for a later run of the class either.
            candidates.popleft()
        return []

    def _claim_gang(self, equivalence: EquivalenceClass, option: Option) -> list[_Claim]:
        key = (id(equivalence), id(option))
        hosts = self._gang_hosts.get(key)
        if hosts is None:
            coming = sorted(_coming(equivalence, option), key=_order)
            hosts = self._gang_hosts[key] = _GangHosts([*option.able()], coming)
        hosts.now = [
            (space, take)
            for space, take in hosts.now
            if space.instance.uid not in self._needed and space.free.choose(take) is not None
        ]
        lacking = equivalence.nodes - len(hosts.now)
        found = hosts.find(lacking)
        if len(found) < lacking:
            # The jobs on the other hosts end some day, and then the gang needs these beside them.
            lacking = equivalence.nodes - option.ready
            if not 0 < lacking <= len(found):
                # There is less room for each later gang of the class.
                hosts.now, hosts.coming = [], []
        if not 0 < lacking <= len(found):
            return []
        self._needed.update(space.instance.uid for space, _ in hosts.now)
        return found[:lacking]

    def limits(self, equivalence: EquivalenceClass) -> tuple[Waiting, ...]:
        """Say why no host is created for the runs of a class that count on none."""
        fleets = [
            option.fleet.name
            for option in equivalence.options
            if option.fleet.name in self._scaling and option.takes
        ]
        if fleets and not equivalence.may_create:
            return (_REUSE,)
        return tuple(
            Waiting("scaling", f"fleet {name} has at most {counted(most, 'host')}")
            for name in fleets
            if len(self._taken[name]) + len(self._hosts[name]) >= (most := self._scaling[name].most)
        )

    # -- the outcome ------------------------------------------------------------------------------

    def requests(self, fleets: Mapping[str, Fleet]) -> tuple[ScaleRequest, ...]:
        """Return the hosts that waiting runs count on, and those that a fleet has too few of."""
        if not self._scaling:
            return ()
        # Here: most environments have no such fleet.
        from fleetform.model.scaling import ScaleRequest

        asked = []
        for name, scaling in sorted(self._scaling.items()):
            there = len(_existing(fleets.get(name)))
            hosts = max(len(self._hosts[name]), scaling.least - there)
            if hosts > 0 and len(self._taken[name]) < scaling.most:
                asked.append(ScaleRequest(name, hosts, len(self._runs[name])))
        return tuple(asked)

    def spare(self, fleets: Mapping[str, Fleet]) -> tuple[str, ...]:
        """Return the hosts beyond the least number of their fleet that have no jobs and that no run needs."""
        found: list[str] = []
        for name, scaling in sorted(self._scaling.items()):
            spaces = _existing(fleets.get(name))
            idle = [
                space.instance.uid
                for space in reversed(spaces)
                if not (space.held or space.hold or space.instance.drained)
                and space.instance.uid not in self._needed
            ]
            found += idle[: max(0, len(spaces) - scaling.least)]
        return tuple(found)


def _waits_for(hosts: Iterable[Instance]) -> Iterator[str]:
    """Say which hosts a run waits for: those that are, or will be created are counted, and those that cannot be now are named."""
    creating: dict[tuple[str, str], int] = {}
    others: dict[str, list[str]] = {}
    for one in hosts:
        if one.waits_for_capacity:
            others.setdefault(one.message or "waiting for capacity", []).append(one.name)
        elif one.has_failed:
            others.setdefault(f"not created: {one.message}", []).append(one.name)
        else:
            when = "will create" if one.state is InstanceState.UNCREATED else "is creating"
            creating[one.fleet, when] = creating.get((one.fleet, when), 0) + 1
    for (name, when), count in creating.items():
        yield f"waits for {counted(count, 'host')} that fleet {name} {when}"
    for why, names in others.items():
        yield f"waits for host{'s' if len(names) > 1 else ''} {first_of(names, _NAMED_MAX)}: {why}"


def _coming(equivalence: EquivalenceClass, option: Option) -> Iterator[tuple[Space, Take]]:
    """Yield the hosts of a fleet that come, or may be created for a run, with what a node takes of each."""
    for space in option.fleet.spaces:
        take = option.takes.get(space.rack.number)
        state = space.instance.state
        is_new = state is InstanceState.UNCREATED
        if take is None or space.instance.drained:
            continue
        if state in _COMING or (is_new and equivalence.may_create):
            yield space, take


def _order(candidate: tuple[Space, Take]) -> tuple[bool, bool, int]:
    """What exists comes before what must be created, and a cheaper host before a dearer one."""
    instance = candidate[0].instance
    if instance.state is not InstanceState.UNCREATED:
        return (False, False, 0)
    price = instance.endpoint.get("price_micros")
    return (True, price is None, int(price or 0))


def _created(claims: Iterable[_Claim]) -> int:
    return sum(one.space.instance.state is InstanceState.UNCREATED for one in claims)


def _existing(fleet: Fleet | None) -> list[Space]:
    """Return the hosts that exist or are being created, without those that come before another leaves."""
    return [
        space
        for space in (fleet.spaces if fleet is not None else ())
        if space.instance.state is not InstanceState.UNCREATED and space.instance.number < SURGE
    ]
