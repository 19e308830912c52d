"""
Puts a lost or restored ledger together again: from its hosts, and from the tree.

Every host that bears the environment's uid must answer, or be declared lost by a person: a
job on a host that was not asked may still run. Then the ledger takes an epoch above all that
anybody has heard of, each host is told, and what they remember is written in one transaction.
Until that is done the ledger is recovering, and whoever tries again begins anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.app.clock import RandomIds, SystemClock
from fleetform.app.cloud_instances import adopt, list_unknown
from fleetform.app.driving import fence_of
from fleetform.app.generations import (
    behind,
    hosts_know_all,
    known_generation,
    note_generation,
)
from fleetform.app.handover import become_manager
from fleetform.app.host_check import PARALLEL_MAX
from fleetform.app.ledger import (
    host_provider,
    is_damaged,
    keep_ledger,
    open_for_writing,
    prove_outgrown,
)
from fleetform.app.problems import LedgerProblem, Problem, RecoveringProblem
from fleetform.app.serve import locked
from fleetform.controllers.fencing import FencedHosts
from fleetform.model.existence import ended_text, place_of
from fleetform.model.instance import CLOUDS, LOCAL, Instance, InstanceState, request_of
from fleetform.model.ledger import LedgerStatus
from fleetform.model.recovery import Difference, Evidence, Recovered, differences
from fleetform.model.volume import is_disk
from fleetform.plan.kinds.fleet import is_elsewhere, lost_hosts, places_of, propose_create
from fleetform.providers.contract.errors import AgentMissing, ProviderError
from fleetform.providers.contract.hosts import Identity, InstanceRequest
from fleetform.providers.contract.observed import InstanceSeen
from fleetform.spec.checks.hosts import provider_of
from fleetform.spec.names import natural_order
from fleetform.store.errors import LedgerError
from fleetform.store.opening import ledger_in_memory

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.leadership import ManagerLease
    from fleetform.model.live import Live
    from fleetform.model.plan import Step
    from fleetform.model.ports import Clock
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.providers.contract.observed import HostSeen, VolumeSeen
    from fleetform.spec.desired import Desired
    from fleetform.store.generations import Generation
    from fleetform.store.ledger import StoredLedger


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """
    What a rebuild came to.

    `needed`: the ledger did not know everything that its hosts know. `epoch` is the one that
    holds from now on; with a trial, the one that holds already. `differs` is what a trial that
    begins from nothing does not find as the ledger has it. `kept` is where the ledger that was
    there is kept, as a backup or put aside; empty where none was, or nothing was changed.
    """

    needed: bool
    epoch: int
    found: tuple[Recovered, ...]
    differs: tuple[Difference, ...] = ()
    kept: str = ""


async def rebuild(
    workspace: Workspace,
    desired: Desired,
    *,
    who: str,
    lost: Sequence[str],
    trial: bool,
    notice: Callable[[str], None],
    from_nothing: bool = False,
) -> Rebuilt:
    """
    Fill the ledger from what its hosts remember; with `trial` only say what would come of it.

    Args:
        workspace: Whose ledger.
        desired: The tree: it says what the digests that hosts keep stand for.
        who: For the events.
        lost: Names of hosts that a person says are gone for good.
        trial: Nothing is written, and hosts go on obeying whom they obey.
        notice: Told which process is waited for, and what is recorded of instances of clouds.
        from_nothing: A trial as if there were no ledger, compared with the one that is there.

    Raises:
        Locked: Somebody manages the environment.
        Problem: A host does not answer, or the ledger cannot be used.
    """
    known = None if from_nothing else known_generation(workspace.environment.uid)
    lock = None
    if not trial:
        lock = await become_manager(workspace, who=who, command="state rebuild", notice=notice)
        if lock is None:
            raise locked(workspace)
    with contextlib.ExitStack() as stack:
        kept = ""
        if lock is not None:
            stack.enter_context(lock)
            kept = keep_ledger(workspace, who=who, before="rebuild")
        ledger = stack.enter_context(
            contextlib.closing(_open(workspace, trial=trial, from_nothing=from_nothing))
        )
        hosts = host_provider(workspace)
        if lock is not None:
            hosts = FencedHosts(hosts, lock)
        work = Rebuild(ledger, hosts, desired, who, lost, lock, known=known)
        work.notice = notice
        if trial and not from_nothing:
            # It is a copy, and whoever manages goes on with the ledger that it was taken of.
            work.read_again = functools.partial(_read_again, workspace, ledger)
        result = await work.run(trial=trial)
        if not trial:
            note_generation(ledger)
        if not from_nothing:
            return dataclasses.replace(result, kept=kept)
        return dataclasses.replace(result, differs=_differences(workspace, ledger))


def _differences(workspace: Workspace, rebuilt: StoredLedger) -> tuple[Difference, ...]:
    reader = workspace.reader()
    if reader is None:
        return ()
    with contextlib.closing(reader):
        return differences(reader.read_live(), rebuilt.read_live())


def _open(workspace: Workspace, *, trial: bool, from_nothing: bool) -> StoredLedger:
    if not trial:
        return open_for_writing(workspace)
    if from_nothing or not _is_readable(workspace):
        return ledger_in_memory(
            workspace.environment.uid, RandomIds(), now_ms=SystemClock().now_ms()
        )
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        return ledger.copy()


def _read_again(workspace: Workspace, copy: StoredLedger) -> Live:
    reader = workspace.reader() if _is_readable(workspace) else None
    if reader is None:
        return copy.read_live()
    with contextlib.closing(reader):
        return reader.read_live()


def _is_readable(workspace: Workspace) -> bool:
    """Tell whether there is a ledger; one that is damaged makes way for the rebuilt one."""
    try:
        reader = workspace.reader()
        if reader is None:
            return False
        with contextlib.closing(reader):
            reader.read_live()
    except (LedgerError, LedgerProblem) as problem:
        if is_damaged(workspace, problem):
            return False
        raise
    return True


class Rebuild:
    """One rebuild of one ledger, which may be a copy that is thrown away."""

    def __init__(
        self,
        ledger: StoredLedger,
        hosts: HostProvider,
        desired: Desired,
        who: str,
        lost: Sequence[str],
        manager_lease: ManagerLease | None = None,
        clock: Clock | None = None,
        known: Generation | None = None,
    ) -> None:
        """`known` is how far this machine has seen the ledger come."""
        self._known = known
        self._clock = clock or SystemClock()
        self._ledger = ledger
        self._manager_lease = manager_lease
        self._hosts = hosts
        self._desired = desired
        self._who = who
        self._lost = frozenset(lost)
        self.read_again: Callable[[], Live] = ledger.read_live
        self.notice: Callable[[str], None] = lambda _: None

    async def run(self, *, trial: bool) -> Rebuilt:
        live = self._ledger.read_live()
        requests = remote_requests(self._desired, live.instances)
        here = await self._hosts.inventory(live.environment_uid)
        known, unknown = await self._list_clouds(live)
        clouds = [*known, *unknown]
        self._check_lost([one.name for one in (*here, *clouds)] + [one.name for one in requests])
        instances = [
            *here,
            *await self._survey(live.environment_uid, requests),
            *clouds,
        ]
        asked = [one for one in instances if one.name not in self._lost]
        seen = await self._look(asked, {one.uid for one in unknown})
        instances = [_with_owner(one, seen.get(one.uid)) for one in instances]
        needed = _is_needed(live, self._known, instances, self.read_again)
        if not trial:
            if unknown:
                mine = {one.uid for one in unknown}
                adopted = await self._adopt([one for one in instances if one.uid in mine])
                instances = [adopted.get(one.uid, one) for one in instances]
            seen = await self._take_over(live, [one for one in instances if one.uid in seen], seen)
        evidence = Evidence(
            self._desired,
            tuple(instances),
            seen,
            await self._volumes(live),
            is_complete=not needed or self._all_is_known(here, instances),
            without_agent=frozenset(one.uid for one in asked if one.uid not in seen),
        )
        found = self._ledger.adopt_evidence(
            evidence,
            fleet_steps(self._desired),
            who=self._who,
            now_ms=self._clock.now_ms(),
            mark_missing=needed,
        )
        return Rebuilt(needed, self._ledger.read_live().epoch, found)

    def _check_lost(self, names: Sequence[str]) -> None:
        unknown = sorted(self._lost.difference(names))
        if unknown:
            raise Problem(
                f"no host of this environment is called {', '.join(unknown)}",
                f"there are {', '.join(sorted({*names}, key=natural_order)) or 'none'}",
            )

    def _all_is_known(
        self, here: Sequence[InstanceSeen], all_hosts: Sequence[InstanceSeen]
    ) -> bool:
        """
        Tell whether a run without a record has not run.

        Hosts of other machines were not put back together with the state folder of this one, so it
        is the shares of this machine that may remember too little. A host over SSH that is lost may
        have run anything since: nobody knows what it was given.
        """
        asked = {one.name for one in all_hosts}
        return hosts_know_all(self._known, here) and self._lost <= asked

    async def _survey(
        self, environment_uid: str, requests: Sequence[InstanceRequest]
    ) -> list[InstanceSeen]:
        """Ask the hosts of other machines what they have of this environment; refuse where one is silent."""
        slots = asyncio.Semaphore(PARALLEL_MAX)

        async def ask(request: InstanceRequest) -> Sequence[InstanceSeen]:
            async with slots:
                return await self._hosts.instances_on(environment_uid, request)

        asked = [one for one in requests if one.name not in self._lost]
        answers = await asyncio.gather(*(ask(one) for one in asked), return_exceptions=True)
        found: dict[str, InstanceSeen] = {}
        for request, answer in zip(asked, answers, strict=True):
            if isinstance(answer, ProviderError):
                raise _silent_host(request.name, answer) from answer
            if isinstance(answer, BaseException):
                raise answer
            for instance in answer:
                # One machine may be listed under two names.
                found.setdefault(instance.uid, instance)
        return list(found.values())

    async def _list_clouds(
        self, live: Live
    ) -> tuple[tuple[InstanceSeen, ...], tuple[InstanceSeen, ...]]:
        """
        List the instances of clouds that may have jobs: those of the ledger, and those that it does not know.

        Raises:
            Problem: A cloud does not list its instances.
        """
        unknown, listed = await list_unknown(live, self._hosts, self._desired)
        if listed.problems:
            raise Problem(
                "; ".join(listed.problems),
                "the hosts there may have jobs; run `fleetform state rebuild` again once the cloud answers",
            )
        now_ms = self._clock.now_ms()
        known = tuple(
            _seen_as(row, live.environment_uid)
            for row in live.instances
            if row.is_bought
            and row.is_created
            and not ended_text(
                row,
                listed.clouds.get(place_of(row.provider, row.endpoint), ()),
                now_ms=now_ms,
            )
        )
        return known, unknown

    async def _adopt(self, instances: Sequence[InstanceSeen]) -> dict[str, InstanceSeen]:
        try:
            return await adopt(instances, self._hosts, self.notice)
        except ProviderError as problem:
            raise Problem(str(problem), "run `fleetform state rebuild` again") from problem

    async def _look(
        self, instances: Sequence[InstanceSeen], new: AbstractSet[str]
    ) -> dict[str, HostSeen]:
        """Ask every host what it remembers; refuse where one is silent. Those of `new`, by uid, may have no agent."""
        answers = await asyncio.gather(
            *(self._hosts.look(one) for one in instances), return_exceptions=True
        )
        seen: dict[str, HostSeen] = {}
        for instance, answer in zip(instances, answers, strict=True):
            if isinstance(answer, AgentMissing) and instance.uid in new:
                continue
            if isinstance(answer, ProviderError):
                raise _silent_host(instance.name, answer) from answer
            if isinstance(answer, BaseException):
                raise answer
            seen[instance.uid] = answer
        return seen

    async def _take_over(
        self, live: Live, instances: Sequence[InstanceSeen], seen: dict[str, HostSeen]
    ) -> dict[str, HostSeen]:
        """Raise the epoch above all others and have every host obey it from here on."""
        self._ledger.begin_recovery("`fleetform state rebuild` has not finished")
        heard = [*(one.epoch for one in instances), *(one.epoch for one in seen.values())]
        if self._known is not None:
            heard.append(self._known.epoch)
        epoch = self._ledger.raise_epoch(above=max(heard, default=0))
        fence = fence_of(self._manager_lease, self._ledger, who=self._who)
        identity = Identity(live.environment_uid, live.ledger_id, epoch, fence)
        obeyed: dict[str, HostSeen] = {}
        for instance in instances:
            request = InstanceRequest(
                instance.uid,
                instance.name,
                instance.fleet,
                instance.declared,
                provider=instance.provider,
                endpoint=instance.endpoint,
                host_key=instance.host_key,
            )
            try:
                host = await self._hosts.connect(request, identity, None)
            except ProviderError as problem:
                raise RecoveringProblem(
                    f"host {instance.name} does not accept the new epoch: {problem}",
                    "run `fleetform state rebuild` again",
                ) from problem
            await host.close()
            obeyed[instance.uid] = host.seen
        return obeyed

    async def _volumes(self, live: Live) -> dict[str, VolumeSeen]:
        found: dict[str, VolumeSeen] = {}
        for key, declared in self._desired.resources.items():
            if key.kind == "volume" and not is_disk(declared.document):
                volume = await self._hosts.volume_at(
                    live.environment_uid, declared.document["path"]
                )
                if volume is not None:
                    found[key.name] = volume
        return found


def remote_requests(desired: Desired, instances: Iterable[Instance] = ()) -> list[InstanceRequest]:
    """
    List the hosts of other machines that may have jobs of the environment, without those of clouds, which list their own.

    They are those that the configuration declares, unless lost, and those that the ledger has: a
    backup may have one that has left the configuration since, and its jobs with it.
    """
    known = {
        (one.fleet, one.name): one
        for one in instances
        if one.provider != LOCAL and not one.is_bought
    }
    found: dict[tuple[str, str], InstanceRequest] = {}
    lost: set[tuple[str, str]] = set()
    for key, declared in desired.resources.items():
        if key.kind != "fleet" or not is_elsewhere(declared.document):
            continue
        if provider_of(declared.document) in CLOUDS:
            continue
        lost.update((key.name, name) for name in lost_hosts(declared.document))
        for place in places_of(key.name, declared.document):
            row = known.get((key.name, place["name"]))
            found[key.name, place["name"]] = InstanceRequest(
                uid=row.uid if row is not None else "",
                name=place["name"],
                fleet=key.name,
                declared=place.get("declared", {}),
                provider=place["provider"],
                endpoint=place["endpoint"],
                host_key=row.host_key if row is not None else "",
            )
    for key_of_row, row in known.items():
        if row.state is not InstanceState.TERMINATED and key_of_row not in found.keys() | lost:
            found[key_of_row] = request_of(row)
    return list(found.values())


def _silent_host(name: str, problem: ProviderError) -> RecoveringProblem:
    return RecoveringProblem(
        f"host {name} does not report its jobs: {problem}",
        f"start it again, or, if it is lost permanently, pass --lost {name}: its runs are then unknown",
    )


def _seen_as(row: Instance, environment_uid: str) -> InstanceSeen:
    """Return an instance of a cloud as its row has it: its cloud lists it, or may list it late."""
    return InstanceSeen(
        row.uid, row.name, row.fleet, environment_uid, "", 0, alive=True, provider=row.provider,
        endpoint=row.endpoint, host_key=row.host_key, declared=row.declared,
    )  # fmt: skip


def _with_owner(instance: InstanceSeen, seen: HostSeen | None) -> InstanceSeen:
    """Add whom a host of another machine obeys, which only its agent knows, and the key that it was recognised by."""
    if seen is None or instance.ledger_id:
        return instance
    return dataclasses.replace(
        instance,
        ledger_id=seen.ledger_id,
        epoch=seen.epoch,
        host_key=instance.host_key or seen.host_key,
    )


def _is_needed(
    live: Live,
    known: Generation | None,
    instances: Sequence[InstanceSeen],
    read_again: Callable[[], Live],
) -> bool:
    if behind(live, known):
        return True
    if live.status is LedgerStatus.RECOVERING or prove_outgrown(instances, live, read_again):
        return True
    return live.status is LedgerStatus.EMPTY and bool(instances)


def fleet_steps(desired: Desired) -> dict[str, Step]:
    """Return how the configuration would create each declared fleet, by its name; of a fleet on a cloud without offers."""
    return {
        key.name: propose_create(declared).change.steps[0]
        for key, declared in desired.resources.items()
        if key.kind == "fleet"
    }
