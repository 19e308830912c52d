"""
Opens the ledger for writing, and refuses one that the world has outgrown.

A lost or restored ledger is told by those who remember it: an agent that bears the
environment's uid and another ledger's id, a higher epoch or fence, or more of its commits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fleetform.app.clock import RandomIds, SystemClock
from fleetform.app.generations import lost, mark_if_behind
from fleetform.app.ledger_address import ledger_address, postgresql
from fleetform.app.problems import LedgerProblem, RecoveringProblem
from fleetform.model.live import LedgerStatus
from fleetform.providers.contract.observed import InstanceSeen
from fleetform.providers.registry import provider
from fleetform.store.errors import LedgerError
from fleetform.store.opening import open_ledger

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.leadership import Tenure
    from fleetform.model.live import Live
    from fleetform.model.ports import Clock, Ids
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.store.ledger import StoredLedger

_NAMES_SHOWN = 8


def open_for_writing(workspace: Workspace) -> StoredLedger:
    """
    Open or make the ledger; one that is older than what this machine knows is marked as recovering.

    Raises:
        LedgerProblem: It cannot be opened: damaged, newer, on a network file system; its server
            does not answer.
    """
    uid, ids, clock = workspace.environment.uid, RandomIds(), SystemClock()
    try:
        ledger = _open(workspace, uid, ids, clock)
        try:
            mark_if_behind(ledger, uid)
        except BaseException:
            ledger.close()
            raise
    except LedgerError as problem:
        raise LedgerProblem(str(problem), problem.advice) from problem
    return ledger


def _open(workspace: Workspace, uid: str, ids: Ids, clock: Clock) -> StoredLedger:
    if (address := ledger_address()) is not None:
        with postgresql():
            from fleetform.store.postgres.opening import open_postgres

            return open_postgres(address, uid, ids, clock)
    return open_ledger(workspace.paths.ledger, uid, ids=ids, clock=clock)


def host_provider(workspace: Workspace) -> HostProvider:
    """Return the provider of this machine; fleets of other kinds come with other providers."""
    return provider("local", state=workspace.state, environment_uid=workspace.environment.uid)


async def refuse_if_outgrown(
    ledger: StoredLedger, hosts: HostProvider, tenure: Tenure | None = None
) -> None:
    """
    Compare the ledger with what bears the environment's uid in the world.

    Args:
        ledger: Whose knowledge is in question.
        hosts: Who is asked.
        tenure: That was just taken, before anything was done under it.

    Raises:
        RecoveringProblem: Somebody remembers another ledger, or more than this one knows.
    """

    def read_live() -> Live:
        live = ledger.read_live()
        if tenure is None or not tenure.holder.fence:
            return live
        # A lease comes with its fence: a host that has heard that one heard it from another ledger.
        return replace(live, fence=tenure.holder.fence - 1)

    # Its server may have failed over to an older copy meanwhile.
    mark_if_behind(ledger, ledger.read_standing().environment_uid)
    live = read_live()
    proof = prove_outgrown(await hosts.inventory(live.environment_uid), live, read_live)
    if proof:
        ledger.begin_recovery(proof)
    elif live.status is LedgerStatus.RECOVERING:
        proof = "; ".join(live.notes)
    else:
        return
    raise recovering(proof)


def recovering(proof: str) -> RecoveringProblem:
    """Put into words that the ledger is not the newest, given the sentence that proves it."""
    return RecoveringProblem(
        f"the ledger was lost or restored from an older copy: {proof}. "
        "Nothing was started or removed",
        "put the newest ledger back into the state folder, or run `fleetform state rebuild`,"
        " which asks the hosts",
    )


def proof_of_loss(workspace: Workspace, live: Live) -> str:
    """Return the sentence that proves that there was a ledger where there is none, or nothing."""
    if proof := lost(live.environment_uid):
        return proof
    if not workspace.paths.hosts.is_dir():
        return ""
    # Here: most that open a ledger run a loop of their own.
    import asyncio

    hosts = host_provider(workspace)
    return outgrown_by(asyncio.run(hosts.inventory(live.environment_uid)), live)


def prove_outgrown(
    instances: Sequence[InstanceSeen], live: Live, read_live: Callable[[], Live]
) -> str:
    """
    Return the sentence that proves the ledger outgrown, or nothing.

    Args:
        instances: What the world remembers.
        live: What the ledger said before the world was asked.
        read_live: Reads the ledger anew: whoever manages meanwhile writes down, and then tells
            hosts. What a host was told by then is in the ledger, unless that is an older one.
    """
    return outgrown_by(instances, live) and outgrown_by(instances, read_live())


def outgrown_by(instances: Sequence[InstanceSeen], live: Live) -> str:
    """Return the sentence that says which hosts know more than this ledger, or nothing."""
    strangers = [one.name for one in instances if _obeys_another(one, live)]
    if strangers:
        return f"{_names(strangers)} another ledger of this environment"
    newer = [
        one.name for one in instances if one.ledger_id == live.ledger_id and _knows_more(one, live)
    ]
    if newer:
        return f"{_names(newer)} a newer state of this ledger"
    known = {one.uid for one in live.instances} | live.let_go
    # An instance is written down before it is made, and gone before it is written off.
    unknown = [one.name for one in instances if one.uid not in known]
    return f"{_names(unknown)} this environment, and the ledger does not know it" if unknown else ""


def _obeys_another(one: InstanceSeen, live: Live) -> bool:
    # A rebuilt ledger has a higher epoch than all before it, and hosts obey it from its hello on.
    return bool(one.ledger_id) and one.ledger_id != live.ledger_id and one.epoch >= live.epoch


def _knows_more(one: InstanceSeen, live: Live) -> bool:
    if (one.epoch, one.fence) > (live.epoch, live.fence):
        return True
    # Whoever manages for a month has one fence: a copy from within it shows by this alone.
    return one.epoch == live.epoch and one.commits > live.serial


def _names(hosts: Sequence[str]) -> str:
    shown = ", ".join(hosts[:_NAMES_SHOWN])
    more = len(hosts) - _NAMES_SHOWN
    if more > 0:
        shown = f"{shown} and {more} more"
    return f"host {shown} knows" if len(hosts) == 1 else f"hosts {shown} know"
