"""
Adopts single instances of clouds that the ledger does not know, with the jobs that run there.

For a ledger that is the newest one, so no other host is asked: one that an older copy has replaced is rebuilt (`app.rebuild`).
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.app.cloud_instances import adopt, choose, list_unknown
from fleetform.app.handover import become_manager
from fleetform.app.ledger import host_provider, open_for_writing
from fleetform.app.problems import Problem, RecoveringProblem
from fleetform.app.rebuild import fleet_steps
from fleetform.app.serve import locked
from fleetform.controllers.fencing import FencedHosts
from fleetform.model.figures import counted
from fleetform.model.instance import InstanceState
from fleetform.model.ledger import LedgerStatus
from fleetform.model.recovery import Evidence, Recovered
from fleetform.providers.contract.errors import AgentMissing, ProviderError
from fleetform.spec.checks.hosts import nodes_max
from fleetform.spec.desired import ResourceKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleetform.app.workspace import Workspace
    from fleetform.model.live import Live
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.providers.contract.observed import HostSeen, InstanceSeen
    from fleetform.spec.desired import Desired

__all__ = ["adopt_instances"]

_REBUILD = "put the newest ledger back, or `fleetform state rebuild`, which asks all hosts"


async def adopt_instances(
    workspace: Workspace,
    desired: Desired,
    ids: Sequence[str],
    *,
    who: str,
    notice: Callable[[str], None],
) -> tuple[Recovered, ...]:
    """
    Give instances to the fleets that their tags name, and return what was adopted.

    Args:
        workspace: Whose ledger.
        desired: The configuration: it says how many hosts a fleet may have, and what the runs are.
        ids: Of the cloud.
        who: For the events.
        notice: Told what is happening.

    Raises:
        Locked: Another process manages the environment.
        Problem: An instance cannot be adopted; nothing was changed.
    """
    lock = await become_manager(workspace, who=who, command="fleet adopt", notice=notice)
    if lock is None:
        raise locked(workspace)
    with lock, contextlib.closing(open_for_writing(workspace)) as ledger:
        hosts = FencedHosts(host_provider(workspace), lock)
        live = ledger.read_live()
        if live.status is LedgerStatus.RECOVERING:
            raise RecoveringProblem("the ledger is recovering", _REBUILD)
        found = await _chosen(live, hosts, desired, ids)
        _require_places(live, desired, found)
        seen = {
            one.uid: answer
            for one in found
            if (answer := await _look(live, hosts, one)) is not None
        }
        try:
            adopted = await adopt(found, hosts, notice)
        except ProviderError as problem:
            raise Problem(str(problem), "run the same command again") from problem
        evidence = Evidence(
            desired,
            tuple(
                dataclasses.replace(one, host_key=seen[one.uid].host_key)
                if one.uid in seen
                else one
                for one in adopted.values()
            ),
            seen,
            {},
            without_agent=frozenset(one.uid for one in found if one.uid not in seen),
        )
        return ledger.adopt_evidence(
            evidence,
            fleet_steps(desired),
            who=who,
            now_ms=SystemClock().now_ms(),
            mark_missing=False,
            is_rebuild=False,
        )


async def _chosen(
    live: Live, hosts: HostProvider, desired: Desired, ids: Sequence[str]
) -> list[InstanceSeen]:
    return choose(ids, *await list_unknown(live, hosts, desired))


def _require_places(live: Live, desired: Desired, found: Sequence[InstanceSeen]) -> None:
    """Make sure that each fleet may have so many hosts: the next change would release the others."""
    for fleet in dict.fromkeys(one.fleet for one in found):
        key = ResourceKey("fleet", fleet)
        declared = desired.resources.get(key)
        if declared is None or key not in live.resources:
            raise Problem(
                f"fleet {fleet} of {_names(found, fleet)} is not declared and applied",
                f"declare fleet {fleet} and apply it, or end the instance with `fleetform fleet terminate`",
            )
        most = nodes_max(declared.document)
        there = sum(
            one.fleet == fleet and one.is_created and one.state is not InstanceState.TERMINATING
            for one in live.instances
        )
        new = sum(one.fleet == fleet for one in found)
        if most is not None and there + new > most:
            raise Problem(
                f"fleet {fleet} has {counted(there, 'host')} of {most}: there is no place for"
                f" {_names(found, fleet)}",
                f"raise `nodes` of fleet {fleet} to {there + new} first",
            )


def _names(found: Sequence[InstanceSeen], fleet: str) -> str:
    return ", ".join(str(one.endpoint["id"]) for one in found if one.fleet == fleet)


async def _look(live: Live, hosts: HostProvider, instance: InstanceSeen) -> HostSeen | None:
    """
    Ask the agent of an instance what runs there; None: it has none.

    Raises:
        Problem: It does not answer, or obeys a ledger that is newer than this one.
    """
    try:
        seen = await hosts.look(instance)
    except AgentMissing:
        return None
    except ProviderError as problem:
        raise Problem(
            f"{instance.endpoint['id']} does not report its jobs: {problem}",
            "try again once it answers, or end it with `fleetform fleet terminate`",
        ) from problem
    if seen.ledger_id != live.ledger_id or seen.epoch > live.epoch:
        raise RecoveringProblem(
            f"the agent of {instance.endpoint['id']} obeys a newer ledger than this one", _REBUILD
        )
    return seen
