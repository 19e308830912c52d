"""
What a plan would come to at once: the scheduler's own round over what there will be.

`plan` and `schedule` do not know each other, so they meet here. A copy of the book is changed as
the plan would change it, and the scheduler is asked what starts and why the rest waits. It is a
forecast: hosts may say no, and nothing of it is part of what was decided.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fleetform.model.hourly_cost import HourlyCost
from fleetform.model.instance import CLOUDS, Gpu, Instance, InstanceState
from fleetform.model.run import Run, RunState, RunUid, from_document
from fleetform.model.scaling import Scaling
from fleetform.model.scheduler_state import Outcome, SchedulerState
from fleetform.model.verbs import Verb
from fleetform.plan.renames import renames_of
from fleetform.schedule import Policies, queue_from_state, schedule
from fleetform.spec.names import natural_order

if TYPE_CHECKING:
    from pathlib import Path

    from fleetform.model.decision import Decisions
    from fleetform.model.plan import Plan, Step
    from fleetform.model.scaling import ScaleRequest
    from fleetform.schedule import Queue
    from fleetform.spec.renaming import Renames


RUNS_MAX = 3_000
"""Waiting runs above which there is no forecast: a round over so many takes as long as the plan."""

LISTED_MAX = 100
"""Runs of a list in the annex; the total is a field of its own."""

# What keeps a run whatever room there is; `model.decision.Waiting` has all codes.
_NOT_FOR_ROOM = frozenset(
    {
        "dependency",
        "not-before",
        "concurrency",
        "stopped",
        "override",
        "recovering",
        "volume-leaving",
        "master-port",
    }
)

_NOTHING = SchedulerState(0, {}, {}, (), (), (), {})


class Machine(Protocol):
    """The machine of local fleets: asked only where a host of one is not known yet."""

    def size(self) -> MachineSize: ...
    def may_have_gpus(self) -> bool:
        """Tell whether there is a driver; which GPUs it has, it takes seconds to say."""


class _Fate(enum.StrEnum):
    """Where a run is after a round of the scheduler; the name of its list in the annex."""

    STARTS = "starts"
    WAITS = "waits"
    UNKNOWN = "unknown"
    IMPOSSIBLE = "impossible"


def forecast(
    plan: Plan,
    book: SchedulerState | None,
    *,
    person: str = "",
    machine: Machine | None = None,
    now_ms: int,
) -> dict[str, Any]:
    """
    Foretell the first round after a plan.

    Args:
        plan: As it would be carried out.
        book: What the ledger has now; None where there is none yet.
        person: The account of who applies it, and so the owner of the runs that it submits.
        machine: The one whose shares new hosts are; None: their size is not known.
        now_ms: Unix milliseconds.

    Returns:
        JSON values, each with `total` and the first of them: `starts`, `waits`, `impossible`,
        `unknown` (runs for which the plan makes hosts whose size is not known), `ends` (runs that
        the plan ends); or `skipped` with the reason. Only runs that the plan submits are in them, and
        those for which it makes a difference. `demand` has, by fleet, the hosts that are created for
        them beside those of the plan, by which endpoint, and what the fleet costs an hour `before` and
        `after`; it is absent where there are none.
    """
    before = book or _NOTHING
    later = _After(before, machine, person)
    later.rename(renames_of(plan.steps))
    # Runs get their numbers in natural order of their names, and start by them.
    for change in sorted(plan.changes, key=lambda change: natural_order(str(change.key))):
        for step in change.steps:
            later.carry_out(step)
    queue = queue_from_state(later.book())
    if not queue.runs:
        return {}
    if len(queue.runs) > RUNS_MAX:
        return {
            "skipped": f"{len(queue.runs)} runs would wait; the forecast covers up to {RUNS_MAX}"
        }
    decisions = _decisions(later, queue, now_ms)
    after = _fates(later, queue, decisions)
    demand = {one.fleet: one for one in decisions.scale if one.runs}
    names = {run.uid: run.name for run in queue.runs}
    untouched = after.keys() & before.runs.keys()
    if untouched:
        # What waited before and still waits is no news of this plan.
        now = _After(before, machine)
        waiting = queue_from_state(now.book())
        before_it = _decisions(now, waiting, now_ms)
        known = _fates(now, waiting, before_it)
        for one in before_it.scale:
            # They are created without this plan too.
            if (more := demand.pop(one.fleet, one)).hosts > one.hosts:
                demand[one.fleet] = more._replace(hosts=more.hosts - one.hosts)
        after = {
            uid: fate
            for uid, fate in after.items()
            if uid not in untouched or uid not in known or known[uid][0] is not fate[0]
        }
    in_order = sorted(after, key=lambda uid: natural_order(names[uid]))

    def listed(fate: _Fate) -> list[RunUid]:
        return [uid for uid in in_order if after[uid][0] is fate]

    return {
        **{
            str(fate): _listed(names[uid] for uid in listed(fate))
            for fate in (_Fate.STARTS, _Fate.UNKNOWN)
        },
        **{
            str(fate): _listed(
                {"run": names[uid], "reasons": list(after[uid][1])} for uid in listed(fate)
            )
            for fate in (_Fate.WAITS, _Fate.IMPOSSIBLE)
        },
        "ends": _listed(sorted(later.ended, key=natural_order)),
        **({"demand": {name: later.demand(demand[name]) for name in demand}} if demand else {}),
    }


def _decisions(book: _After, queue: Queue, now_ms: int) -> Decisions:
    return schedule(queue, book.instances, Policies(), now_ms=now_ms)


def _fates(
    book: _After, queue: Queue, decisions: Decisions
) -> dict[RunUid, tuple[_Fate, tuple[str, ...]]]:
    never = {one.run_uid: tuple(one.reasons) for one in decisions.impossible}
    never |= {uid: (reason,) for uid, reason in decisions.aborts.items()}
    found: dict[RunUid, tuple[_Fate, tuple[str, ...]]] = {
        one.run_uid: (_Fate.STARTS, ()) for one in decisions.starts
    }
    for run in queue.runs:
        may_get_more = book.may_get_more(run)
        if run.uid in never and run.uid not in decisions.aborts and may_get_more:
            found[run.uid] = (_Fate.UNKNOWN, ())
        elif run.uid in never:
            found[run.uid] = (_Fate.IMPOSSIBLE, never[run.uid])
        elif run.uid in decisions.waiting:
            reasons = decisions.waiting[run.uid]
            if may_get_more:
                reasons = tuple(one for one in reasons if one.code in _NOT_FOR_ROOM)
            fate = _Fate.WAITS if reasons else _Fate.UNKNOWN
            found[run.uid] = (fate, tuple(one.detail for one in reasons))
    return found


def _listed(items: Iterable[Any]) -> dict[str, Any]:
    every = list(items)
    return {"total": len(every), "first": every[:LISTED_MAX]}


@dataclass
class _After:
    """The book as it will be, step by step."""

    before: SchedulerState
    machine: Machine | None = None
    person: str = ""
    ended: set[str] = field(default_factory=set)
    undetected: set[str] = field(default_factory=set)
    """Fleets that get hosts whose size is not known."""
    undetected_gpus: set[str] = field(default_factory=set)
    """Fleets that get hosts of which only the GPUs are not known."""

    def __post_init__(self) -> None:
        self.runs = dict(self.before.runs)
        self.outcomes = dict(self.before.outcomes)
        self.instances = list(self.before.instances)
        self.volume_fleets = dict(self.before.volume_fleets)
        self.volume_hosts = dict(self.before.volume_hosts)
        self.queue_fleets = dict(self.before.queue_fleets)
        self.scaling = dict(self.before.scaling)
        self.default_queue = self.before.default_queue
        self.by_name = {run.name: uid for uid, run in self.runs.items()}
        self.number = max((run.number for run in self.runs.values()), default=0)

    def book(self) -> SchedulerState:
        # What is ended gives back what it holds, sooner or later.
        return replace(
            self.before,
            runs=self.runs,
            attempts={uid: one for uid, one in self.before.attempts.items() if uid in self.runs},
            allocations=tuple(one for one in self.before.allocations if one.run_uid in self.runs),
            outcomes=self.outcomes,
            volume_fleets=self.volume_fleets,
            volume_hosts=self.volume_hosts,
            queue_fleets=self.queue_fleets,
            default_queue=self.default_queue,
            scaling=self.scaling,
        )

    def rename(self, renames: Renames) -> None:
        """Names go first: all other steps are about what is called so then."""
        if not renames:
            return
        self.runs = {uid: _renamed(run, renames) for uid, run in self.runs.items()}
        self.by_name = {run.name: uid for uid, run in self.runs.items()}
        self.outcomes = {
            renames.name("run", name): replace(one, parent=renames.name("run", one.parent))
            for name, one in self.outcomes.items()
        }
        self.instances = [
            replace(one, fleet=renames.name("fleet", one.fleet)) for one in self.instances
        ]
        self.volume_fleets = {
            renames.name("volume", name): renames.name("fleet", fleet)
            for name, fleet in self.volume_fleets.items()
        }
        self.volume_hosts = {
            renames.name("volume", name): hosts for name, hosts in self.volume_hosts.items()
        }
        self.queue_fleets = {
            name: tuple(renames.name("fleet", one) for one in fleets)
            for name, fleets in self.queue_fleets.items()
        }
        self.scaling = {renames.name("fleet", name): one for name, one in self.scaling.items()}

    def carry_out(self, step: Step) -> None:
        name, said = step.resource.name, step.arguments
        if step.verb == Verb.RUN_STOP:
            self.ended.add(name)
            self._drop(name)
        elif step.verb == Verb.RUN_SUBMIT:
            self._drop(name)
            self._submit(name, said)
            self._end_stopped(name)
        elif step.verb == Verb.RUN_UPDATE and "earlier" in said:
            # It is at work already under that name, and what waited for its end is no more.
            self._drop(name)
        elif step.verb in {Verb.RUN_ARCHIVE, Verb.RUN_FORGET}:
            # Runs that depend on a whole sweep no longer count its removed elements.
            self._drop(name)
        elif step.verb == Verb.RUN_UPDATE:
            self._update(name, said)
            self._end_stopped(name)
        elif step.verb in {Verb.FLEET_MAKE, Verb.FLEET_ADOPT, Verb.FLEET_UPDATE}:
            self._set_fleet(name, said)
        elif step.verb in {Verb.FLEET_REMOVE, Verb.FLEET_FORGET}:
            self.instances = [one for one in self.instances if one.fleet != name]
            self.scaling.pop(name, None)
        elif step.verb == Verb.QUEUE_SET:
            self._set_queue(name, said["document"])
        elif step.verb == Verb.QUEUE_REMOVE:
            self.queue_fleets.pop(name, None)
            self.default_queue = "" if self.default_queue == name else self.default_queue
        elif step.verb in {Verb.VOLUME_MAKE, Verb.VOLUME_ADOPT}:
            # A disk is on no fleet.
            if fleet := said.get("fleet"):
                self.volume_fleets[name] = fleet
            self._set_volume_hosts(name, said)
        elif step.verb == Verb.VOLUME_UPDATE:
            self._set_volume_hosts(name, said)

    def _set_volume_hosts(self, name: str, said: Mapping[str, Any]) -> None:
        """The hosts that it is to have; which of them answer, only the apply finds out."""
        self.volume_hosts.pop(name, None)
        if "hosts" in said:
            self.volume_hosts[name] = frozenset(said["hosts"])

    def _drop(self, name: str) -> None:
        uid = self.by_name.pop(name, None)
        if uid is not None:
            del self.runs[uid]
        self.outcomes.pop(name, None)

    def _end_stopped(self, name: str) -> None:
        """End a run that is declared stopped: it never starts, and runs that depend on it are aborted."""
        uid = self.by_name.get(name)
        if uid is not None and self.runs[uid].template.wanted == "stopped":
            outcome = self.outcomes[name]
            self._drop(name)
            self.outcomes[name] = replace(outcome, state=RunState.STOPPED)

    def _submit(self, name: str, said: Mapping[str, Any]) -> None:
        parent, element = said.get("parent", ""), said.get("element", "")
        template = from_document(name, said["document"], parent=parent)
        self.number += 1
        uid = self.by_name[name] = RunUid(f"new {name}")
        self.runs[uid] = Run(
            uid, name, template, RunState.SUBMITTED, self.number, attempt=1, owner=self.person
        )
        self.outcomes[name] = Outcome(RunState.SUBMITTED, parent, element, started=False)

    def _update(self, name: str, said: Mapping[str, Any]) -> None:
        uid = self.by_name.get(name)
        if uid is not None:
            run = self.runs[uid]
            template = from_document(name, said["document"], parent=run.template.parent)
            self.runs[uid] = replace(run, template=template)

    def _set_fleet(self, name: str, said: Mapping[str, Any]) -> None:
        """Hosts that stay, and new ones where it is declared what they have."""
        places = said.get("instances", ())
        # Shares of a machine are known by their numbers, other hosts by their names.
        numbers = {one["number"] for one in places if "number" in one}
        names = {one["name"] for one in places if "number" not in one}
        kept = [
            one
            for one in self.instances
            if one.fleet == name and (one.number in numbers or one.name in names)
        ]
        here = {one.number for one in kept} | {one.name for one in kept if one.name in names}
        made = [
            _host(name, place, said["document"], self.machine, len(places))
            for place in places
            if place.get("number", place["name"]) not in here
        ]
        if None in made:
            self.undetected.add(name)
        elif made and _detects_gpus(said["document"]):
            self.undetected_gpus.add(name)
        self.scaling.pop(name, None)
        if "scaling" in said:
            self.scaling[name] = Scaling.from_step(
                name, said["document"], said["scaling"], sorted(numbers)
            )
        others = [one for one in self.instances if one.fleet != name]
        self.instances = [*others, *kept, *(one for one in made if one is not None)]

    def _set_queue(self, name: str, document: Mapping[str, Any]) -> None:
        self.queue_fleets[name] = tuple(document.get("fleets", ()))
        if document.get("default"):
            self.default_queue = name
        elif self.default_queue == name:
            self.default_queue = ""

    def demand(self, request: ScaleRequest) -> dict[str, Any]:
        """Return what a fleet creates for waiting runs, in JSON values."""
        host = self.scaling[request.fleet].host
        there = [
            one.endpoint
            for one in self.instances
            if one.fleet == request.fleet
            and one.provider in CLOUDS
            and one.state is not InstanceState.TERMINATING
        ]
        after = [*there, *[host.endpoint] * request.hosts]
        return {
            "hosts": request.hosts,
            "runs": request.runs,
            "provider": host.provider,
            "endpoint": dict(host.endpoint),
            "before": HourlyCost.of(there)._asdict(),
            "after": HourlyCost.of(after)._asdict(),
        }

    def may_get_more(self, run: Run) -> bool:
        """Tell whether it may start on hosts whose room is not known before they exist."""
        queue = run.template.queue or self.default_queue
        fleets = run.template.fleets or self.queue_fleets.get(queue, ())
        needs = run.template.requirement.gpu
        growing = self.undetected
        asks = needs is not None and needs.count_min and self.undetected_gpus
        if asks and self.machine is not None and self.machine.may_have_gpus():
            growing = growing | self.undetected_gpus
        return bool(growing.intersection(fleets) if fleets else growing)


def _renamed(run: Run, renames: Renames) -> Run:
    template = run.template
    name = renames.name("run", run.name)
    return replace(
        run,
        name=name,
        template=replace(
            template,
            name=name,
            parent=renames.name("run", template.parent),
            fleets=tuple(renames.name("fleet", one) for one in template.fleets),
            volumes=tuple(
                replace(one, name=renames.name("volume", one.name)) for one in template.volumes
            ),
            depends_on=tuple(
                replace(one, run=renames.name("run", one.run)) for one in template.depends_on
            ),
        ),
    )


def _detects_gpus(document: Mapping[str, Any]) -> bool:
    """Whether the GPUs of a fleet's shares of this machine are those that its agent finds."""
    return "local" in document and "gpu" not in document["local"]


def _host(
    fleet: str,
    place: Mapping[str, Any],
    document: Mapping[str, Any],
    machine: Machine | None,
    parts: int,
) -> Instance | None:
    """A new host: what is declared, else its share of this machine; None where its size is not known."""
    name, declared = place["name"], place.get("declared", document.get("local"))
    if declared is None:
        return _offered_host(fleet, place, document)
    share = MachineSize(0, 0, 0)
    if "local" not in document:
        # The rest is detected on the host itself.
        if not {"cpu", "memory", "gpu"} <= declared.keys():
            return None
    elif not {"cpu", "memory"} <= declared.keys():
        if machine is None:
            return None
        share = machine.size()
    return Instance(
        uid=f"new {name}",
        name=name,
        fleet=fleet,
        number=place.get("number", 0),
        state=InstanceState.READY,
        sharing=document.get("sharing", "exact"),
        blocks=document.get("blocks", 1),
        cpu_millicores=declared.get("cpu", share.cpu_millicores // parts),
        memory_bytes=declared.get("memory", share.memory_bytes // parts),
        disk_bytes=declared.get("disk", share.disk_bytes // parts),
        gpus=tuple(_gpus(declared.get("gpu") or {})),
        boot_id="new",
    )


def _offered_host(
    fleet: str, place: Mapping[str, Any], document: Mapping[str, Any]
) -> Instance | None:
    """A new instance of a cloud, which takes no job at once; None where no offer says its size."""
    if "capacity" not in place:
        return None
    limits = {"min": 0, "max": 0, "idle_seconds": 0, "host": place}
    host = Scaling.from_step(fleet, document, limits, ()).host
    return replace(
        host,
        uid=f"new {place['name']}",
        name=place["name"],
        number=place["number"],
        state=InstanceState.PROVISIONING,
    )


def _gpus(gpu: Mapping[str, Any]) -> Iterator[Gpu]:
    names = gpu.get("name") or ("",)
    memory = (gpu.get("memory") or {}).get("min") or 0
    for index in range((gpu.get("count") or {}).get("min") or 0):
        yield Gpu(f"new-{index}", names[0], memory, index, gpu.get("vendor") or "nvidia")


# What this machine has for the hosts of a local fleet that does not exist yet.
# The same probes as the agent's, so that a forecast and the first greeting of the agent agree.


class MachineSize(NamedTuple):
    """What all hosts of a fleet on one machine share."""

    cpu_millicores: int
    memory_bytes: int
    disk_bytes: int


class ThisMachine:
    """Measures when it is asked: most plans create no host, and need none of the probes."""

    def __init__(self, state: Path) -> None:
        self._state = state.absolute()
        """The state folder, on whose file system jobs get their directories; it may not exist yet."""

    def size(self) -> MachineSize:
        from fleetform.agents.host import probes

        folder = next(one for one in (self._state, *self._state.parents) if one.exists())
        return MachineSize(
            probes.cpu_millicores(),
            probes.measure_memory().total,
            probes.measure_disk(str(folder)).total,
        )

    def may_have_gpus(self) -> bool:
        """Tell whether there is a driver that would know them."""
        from fleetform.agents.host import gpus

        return gpus.present()
