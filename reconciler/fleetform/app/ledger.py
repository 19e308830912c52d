"""
Opens the ledger for writing, and refuses one that hosts have outgrown.

A lost or restored ledger is recognised by hosts that remember it: an agent that has the
environment's uid and another ledger's id, a higher epoch or fence, or more of its commits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.clock import RandomIds, SystemClock
from fleetform.app.generations import lost, mark_if_behind
from fleetform.app.problems import LedgerProblem, Problem, RecoveringProblem
from fleetform.controllers.fencing import FencedHosts
from fleetform.model.figures import first_of
from fleetform.model.ledger import LedgerStatus
from fleetform.model.scaling import places_with_offers
from fleetform.providers.registry import environment_variables, provider_names
from fleetform.providers.routing import RoutedHosts
from fleetform.spec.checks.hosts import provider_of
from fleetform.spec.private_folder import make_private_folder
from fleetform.store.backup import BackupError
from fleetform.store.errors import DamagedLedgerError, LedgerError
from fleetform.store.reads import Reads

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.leadership import ManagerLease
    from fleetform.model.live import Live
    from fleetform.model.plan import Plan
    from fleetform.providers.contract.checks import HostChecker
    from fleetform.providers.contract.hosts import HostProvider, InstanceRequest
    from fleetform.providers.contract.observed import InstanceSeen
    from fleetform.store.ledger import StoredLedger


_NAMES_SHOWN = 8


def open_for_writing(workspace: Workspace) -> StoredLedger:
    """
    Open or make the ledger; one that is older than what this machine knows is marked as recovering.

    Raises:
        LedgerProblem: It cannot be opened: damaged, newer, on a network file system; its server
            does not answer.
    """
    uid = workspace.environment.uid
    try:
        ledger = workspace.backend().open_writer(uid, RandomIds(), SystemClock())
        try:
            mark_if_behind(ledger, uid)
        except BaseException:
            ledger.close()
            raise
    except LedgerError as problem:
        raise LedgerProblem(str(problem), problem.advice) from problem
    return ledger


def host_provider(workspace: Workspace) -> HostProvider:
    """
    Return what has the hosts of all fleets; each fleet has its own provider.

    Raises:
        LedgerProblem: The address of the ledger cannot be used: what is kept of clouds is there.
    """
    return routed_hosts(workspace)


def routed_hosts(workspace: Workspace) -> RoutedHosts:
    """Return the same with what only some providers have, such as previews."""
    uid = workspace.environment.uid
    return RoutedHosts(workspace.state, uid, workspace.backend().stacks(uid))


def fenced_hosts(hosts: HostProvider, manager_lease: ManagerLease, fence: int) -> FencedHosts:
    """Return the hosts for a controller with this lease and fence."""
    if isinstance(hosts, RoutedHosts):
        hosts.act_under(fence)
    return FencedHosts(hosts, manager_lease)


def provider_variables(workspace: Workspace) -> tuple[str, ...]:
    """
    Name the environment variables that the providers of the environment's fleets read.

    A controller without a fleet in a cloud gets no credentials of it. Where the configuration has
    errors, its fleets are not known, and all providers count.
    """
    desired = workspace.load().desired
    if desired is None:
        return environment_variables(provider_names())
    declared = desired.resources.values()
    book = workspace.read(lambda reader: reader.read_book([]), None)
    return environment_variables(
        {provider_of(one.document) for one in declared if one.key.kind == "fleet"}
        | {one.document.get("backend", "") for one in declared if one.key.kind == "volume"}
        | {one.provider for one in (book.instances if book else ())}
    )


def host_checker(workspace: Workspace) -> HostChecker:
    """Return what can say what the hosts of all fleets are like."""
    return routed_hosts(workspace)


async def refuse_if_outgrown(
    ledger: StoredLedger, hosts: HostProvider, manager_lease: ManagerLease | None = None
) -> None:
    """
    Compare the ledger with the hosts that have the environment's uid.

    Args:
        ledger: Whose knowledge is in question.
        hosts: Who is asked.
        manager_lease: That was just taken, before anything was done under it.

    Raises:
        RecoveringProblem: A host remembers another ledger, or more than this one knows.
    """

    def read_live() -> Live:
        live = ledger.read_live()
        if manager_lease is None or not manager_lease.holder.fence:
            return live
        # A lease comes with its fence: a host that has heard that one heard it from another ledger.
        return replace(live, fence=manager_lease.holder.fence - 1)

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


async def refuse_if_hosts_know(ledger: StoredLedger, hosts: HostProvider, plan: Plan) -> None:
    """
    Ask the hosts of other machines that a plan would set up, if this ledger has never had any.

    Their agents outlive a ledger, and only they know that there was one: without this an empty
    ledger would start every run once more on the hosts that have forgotten nothing. A host that does
    not answer proves nothing, and refuses to be set up later if it has an agent.

    Raises:
        RecoveringProblem: A host has an agent of this environment.
    """
    standing = ledger.read_standing()
    if standing.status is not LedgerStatus.EMPTY:
        return
    # Here: most that open a ledger run a loop of their own.
    import asyncio

    from fleetform.providers.contract.hosts import InstanceRequest

    requests = [
        InstanceRequest(
            "", place.get("name", ""), step.resource.name, {},
            provider=place["provider"], endpoint=place["endpoint"],
        )
        for step in plan.steps
        for place in places_with_offers(step.arguments)
        if "endpoint" in place
    ]  # fmt: skip
    found = await asyncio.gather(
        *(_instances_on(hosts, standing.environment_uid, one) for one in requests)
    )
    names = [one.name for one, there in zip(requests, found, strict=True) if there]
    if names:
        proof = f"{_names(names)} this environment, and the ledger is empty"
        ledger.begin_recovery(proof)
        raise recovering(proof)


async def _instances_on(
    hosts: HostProvider, environment_uid: str, request: InstanceRequest
) -> Sequence[InstanceSeen]:
    from fleetform.providers.contract.errors import ProviderError

    try:
        return await hosts.instances_on(environment_uid, request)
    except ProviderError:
        return ()


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
        instances: What hosts remember.
        live: What the ledger said before the hosts were asked.
        read_live: Reads the ledger again: the manager of now writes first, and then tells
            hosts. What a host has heard by then is in the ledger, unless that is an older one.
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
    known = {one.uid for one in live.instances} | live.released_hosts
    # An instance is written down before it is made, and gone before it is written off.
    unknown = [one.name for one in instances if one.uid not in known]
    return f"{_names(unknown)} this environment, and the ledger does not know it" if unknown else ""


def _obeys_another(one: InstanceSeen, live: Live) -> bool:
    # A rebuilt ledger has a higher epoch than all before it, and hosts obey it from its hello on.
    return bool(one.ledger_id) and one.ledger_id != live.ledger_id and one.epoch >= live.epoch


def _knows_more(one: InstanceSeen, live: Live) -> bool:
    if (one.epoch, one.fence) > (live.epoch, live.fence):
        return True
    # A manager of a month has one fence: a copy from within it shows by this alone.
    return one.epoch == live.epoch and one.commits > live.serial


def _names(hosts: Sequence[str]) -> str:
    shown = first_of(hosts, _NAMES_SHOWN)
    return f"host {shown} knows" if len(hosts) == 1 else f"hosts {shown} know"


# Keeps the ledger that is there before another takes its place.
# One that can be read is backed up. One that cannot is put aside with its log: without it the file
# would lack its last commits.

KEPT_MAX = 10
"""How many backups of one kind stay: of a large ledger each is as large as the ledger."""


def keep_ledger(workspace: Workspace, *, who: str, before: str) -> str:
    """
    Back up the ledger, or move it away if it cannot be read.

    Args:
        workspace: Whose ledger; the caller manages it.
        who: For the backup.
        before: What is about to be done: it is in the backup's name.

    Returns:
        Where it is kept now; nothing where there was no ledger.
    """
    now_ms = SystemClock().now_ms()
    folder = _folder(workspace)
    try:
        reader = workspace.reader()
        if reader is None:
            return ""
        assert isinstance(reader, Reads)
        with contextlib.closing(reader):
            return str(backup_before(workspace, before, partial(reader.backup, who=who)))
    except (LedgerError, LedgerProblem) as problem:
        if not is_damaged(workspace, problem):
            raise
        aside = folder / f"damaged-{now_ms}"
        workspace.backend().put_aside(workspace.environment.uid, aside)
        return str(aside)


def backup_before(workspace: Workspace, before: str, write: Callable[..., object]) -> Path:
    """
    Have a backup written into the state folder; the oldest of its kind beyond `KEPT_MAX` go.

    Args:
        workspace: Whose ledger.
        before: What is about to be done: it is in the backup's name.
        write: Takes the backup's path and `now_ms`, and writes it.
    """
    now_ms = SystemClock().now_ms()
    folder, prefix = _folder(workspace), f"before-{before}-"
    target = folder / f"{prefix}{now_ms}.jsonl"
    with backup_problems():
        write(target, now_ms=now_ms)
    for old in sorted(folder.glob(f"{prefix}[0-9]*.jsonl"), key=_moment)[:-KEPT_MAX]:
        old.unlink(missing_ok=True)
    return target


def _folder(workspace: Workspace) -> Path:
    folder = workspace.paths.environment / "backups"
    make_private_folder(folder)
    return folder


def _moment(backup: Path) -> int:
    digits = backup.stem.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


def is_damaged(workspace: Workspace, problem: LedgerError | LedgerProblem) -> bool:
    """Tell whether it is a ledger that cannot be read, and that may be moved away."""
    cause = problem.__cause__ if isinstance(problem, LedgerProblem) else problem
    return isinstance(cause, DamagedLedgerError) and workspace.backend().can_put_aside


@contextlib.contextmanager
def backup_problems() -> Iterator[None]:
    """Turn what is wrong with a backup into a person's problem."""
    try:
        yield
    except BackupError as problem:
        raise Problem(str(problem), problem.advice) from problem
