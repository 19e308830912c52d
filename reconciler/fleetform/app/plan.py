"""From a loaded tree to a plan that a second reader has checked."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fleetform.agents.host import job_environment
from fleetform.app.account import this_account
from fleetform.app.generations import known_generation, lost, with_generation
from fleetform.app.problems import PlanProblem, ScopeProblem
from fleetform.app.silent_hosts import with_asked_hosts
from fleetform.app.unfinished import unfinished_annex
from fleetform.checker import check
from fleetform.model.figures import first_of
from fleetform.model.instance import LOCAL
from fleetform.model.ledger import LedgerStatus
from fleetform.model.live import FleetOffers, Live, RowsOutdated, unchanged_digests
from fleetform.model.plan import WHOLE, HeldBy, Permissions, Plan, Scope
from fleetform.model.verbs import Verb
from fleetform.model.volume import Claim, is_disk
from fleetform.plan.kinds.fleet import is_elsewhere
from fleetform.plan.notes import with_notes
from fleetform.plan.planner import plan
from fleetform.plan.redaction import with_sealed_names
from fleetform.plan.scope import idle_addresses, known_addresses, with_new_names
from fleetform.spec.desired import ResourceKey, digests_of
from fleetform.spec.folders import Places

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Plan
    from fleetform.model.ports import Reader
    from fleetform.model.volume import RetainedData
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.providers.contract.observed import PlaceSeen
    from fleetform.spec.desired import Desired, Loaded


_DIRTY = "+dirty"
"""Behind the commit of a tree that has changes which no commit has."""

_SHOWN_MAX = 6
"""How many addresses are shown where none was typed."""


def make_plan(
    workspace: Workspace,
    loaded: Loaded,
    permissions: Permissions,
    scope: Scope = WHOLE,
    *,
    now_ms: int,
    live: Live | None = None,
    lost: Sequence[str] = (),
    notice: Callable[[str], None] = lambda _: None,
) -> Plan:
    """
    Compare the configuration with the ledger, or with `live` after a refresh.

    `lost` are names of hosts that are gone for good. `notice` says for which hosts it waits.

    For a command; whatever goes on for long asks `checked_plan`.

    Raises:
        LedgerProblem: The ledger cannot be read.
        PlanProblem: The plan breaks an invariant: a bug in fleetform, and it must not be applied.
    """
    assert loaded.desired is not None, "the caller refuses a configuration without an environment"
    compared = functools.partial(
        _compared, workspace, loaded.desired, permissions, scope,
        now_ms=now_ms, lost=lost, notice=notice,
    )  # fmt: skip
    made = compared(live=live)
    if any(one.by is HeldBy.ACCOUNT for one in made.held):
        # Most often somebody has just created the account that an earlier plan asked for.
        again = _with_accounts(workspace, live)
        if again is not None:
            made = compared(live=again)
    annex: dict[str, Any] = {}
    # Who manages the environment hears from its hosts all the time, and notes what is new.
    if made.annex["hosts"]["count"] and (holder := workspace.manager()) is not None:
        annex["watched_by"] = holder.command
    if hostless := _without_hosts(workspace, made, loaded.desired, now_ms):
        annex["without_hosts"] = hostless
    if unfinished := workspace.read(
        functools.partial(unfinished_annex, desired=loaded.desired), []
    ):
        annex["unfinished"] = unfinished
    if any(step.verb.startswith("run.") for step in made.steps):
        annex["forecast"] = _forecast(workspace, made, now_ms)
        if missing := only_on_callers_path(made, loaded.desired, os.environ.get("PATH", "")):
            annex["only_on_callers_path"] = missing
    return dataclasses.replace(made, annex={**made.annex, **annex}) if annex else made


def _with_accounts(workspace: Workspace, live: Live | None) -> Live | None:
    """Return what is live, with the accounts that hosts have now; None before the first apply."""
    # Only here: most plans are held by no account, and need neither a loop nor what drives hosts.
    import asyncio

    from fleetform.app.ledger import host_provider
    from fleetform.app.observe import with_accounts

    if live is None:
        reader = workspace.reader()
        if reader is None:
            return None
        with contextlib.closing(reader):
            live = reader.read_live()
    return asyncio.run(with_accounts(host_provider(workspace), live))


def _compared(
    workspace: Workspace,
    desired: Desired,
    permissions: Permissions,
    scope: Scope,
    *,
    now_ms: int,
    live: Live | None,
    lost: Sequence[str],
    notice: Callable[[str], None],
) -> Plan:
    def checked(live: Live, reader: Reader | None) -> Plan:
        live = with_asked_hosts(workspace, desired, permissions, live, lost=lost, notice=notice)
        live = with_claims(workspace, desired, _without_lost(live, lost))
        if reader is not None:
            live = _with_newer_commit(workspace, desired, live, reader)
        return checked_plan(desired, live, permissions, scope, now_ms=now_ms)

    # Before the ledger is read: the controller goes on meanwhile.
    known = known_generation(desired.environment.uid)
    reader = workspace.reader()
    if reader is None:
        if live is not None:
            return checked(live, None)
        live = with_claims(workspace, desired, _without_ledger(workspace, desired))
        return checked_plan(desired, live, permissions, scope, now_ms=now_ms)
    with contextlib.closing(reader):
        if live is not None:
            return checked(live, reader)
        try:
            # Most that is declared is as it should be, and no more is read of it.
            unchanged = digests_of(desired.resources)
            return checked(with_generation(reader.read_live(unchanged), known), reader)
        except RowsOutdated:
            # It was asked for after all, and another process had committed meanwhile.
            return checked(with_generation(reader.read_live(), known), reader)


def _without_lost(live: Live, lost: Sequence[str]) -> Live:
    """
    Note which hosts are gone for good.

    Raises:
        ScopeProblem: No host of another machine has one of the names.
    """
    if not lost:
        return live
    # One that was bought costs until it is released, whether it answers or not.
    names = {one.name for one in live.instances if one.provider != LOCAL and not one.is_bought}
    unknown = sorted(set(lost) - names)
    if unknown:
        raise ScopeProblem(
            f"no host over SSH is called {', '.join(unknown)}",
            f"there {_there(sorted(names))}" if names else "`fleetform fleet list` lists fleets",
        )
    return dataclasses.replace(live, given_up=frozenset(lost))


def _with_newer_commit(workspace: Workspace, desired: Desired, live: Live, reader: Reader) -> Live:
    """Find out whether the configuration is at an ancestor of the commit that was applied last."""
    here = desired.commit.removesuffix(_DIRTY)
    if not here:
        return live
    last = reader.read_history(limit=1, applies_only=True)
    applied = last[0].commit.removesuffix(_DIRTY) if last else ""
    if applied in {"", here}:
        return live
    # Only here: most plans are of the commit applied last, or of no repository.
    from fleetform.spec.tree.git import is_ancestor

    if not is_ancestor(workspace.root, here, applied):
        return live
    return dataclasses.replace(live, newer_commit=applied)


def _without_hosts(
    workspace: Workspace, made: Plan, desired: Desired, now_ms: int
) -> dict[str, str]:
    """Say why runs in progress cannot start on the fleets that the configuration leaves without hosts, by name of the run."""
    runs = {key.name for key in made.progressing if key.kind == "run"}
    fleets = frozenset(
        key.name
        for key, one in (desired.resources.items() if runs else ())
        if key.kind == "fleet" and (one.document.get("nodes") or {}).get("max") == 0
    )
    if not fleets:
        return {}
    # Here: few configurations have such a fleet.
    from fleetform.api.waiting import runs_left_without_hosts

    book = workspace.read(lambda reader: reader.read_book(), None)
    if book is None:
        return {}
    found = runs_left_without_hosts(book, fleets, now_ms=now_ms)
    return {name: found[name] for name in sorted(found) if name in runs}


def _forecast(workspace: Workspace, made: Plan, now_ms: int) -> dict[str, Any]:
    """What would start and what would wait: for people, and no part of what was decided."""
    # Here and not above: most plans change no run, and need neither book nor scheduler.
    from fleetform.app.forecast import RUNS_MAX, ThisMachine, forecast

    submitted = sum(step.verb == Verb.RUN_SUBMIT for step in made.steps)
    if submitted > RUNS_MAX:
        return {"skipped": f"{submitted} runs are new; the forecast covers up to {RUNS_MAX}"}
    machine = ThisMachine(workspace.state)
    book = workspace.read(lambda reader: reader.read_book(), None)
    return forecast(made, book, person=this_account(), machine=machine, now_ms=now_ms)


def checked_plan(
    desired: Desired,
    live: Live,
    permissions: Permissions,
    scope: Scope = WHOLE,
    *,
    now_ms: int,
) -> Plan:
    live = dataclasses.replace(live, person=this_account(), offers=_Offers(desired))
    desired = with_sealed_names(desired, live)
    _refuse_idle(desired, live, scope)
    scope = with_new_names(desired, scope)
    made = plan(desired, live, permissions=permissions, scope=scope, now_ms=now_ms)
    if violations := check(made, desired, live, permissions, scope):
        raise PlanProblem(
            "this plan is invalid, which is a bug in fleetform: "
            + "; ".join(violation.sentence for violation in violations),
            "nothing was changed; please report it with the output of `fleetform plan --format json`",
        )
    return with_notes(made, live)


class _Offers(Mapping[str, FleetOffers]):
    """The offers for declared fleets on clouds; catalogues are read for those that change."""

    def __init__(self, desired: Desired) -> None:
        self._desired = desired
        self._found: dict[str, FleetOffers] = {}

    def __getitem__(self, name: str) -> FleetOffers:
        # Here: most plans buy no host.
        from fleetform.app.offers import offers_of_fleet

        if name not in self._found:
            document = self._desired.resources[ResourceKey("fleet", name)].document
            self._found[name] = offers_of_fleet(document)
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return (key.name for key in self._desired.resources if key.kind == "fleet")

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _refuse_idle(desired: Desired, live: Live, scope: Scope) -> None:
    """An address that means nothing is a slip: the plan would be of something else than meant."""
    for text, suggestion in idle_addresses(desired, live, scope):
        raise ScopeProblem(
            f"no declared or existing resource matches `{text}`",
            f"did you mean `{suggestion}`?"
            if suggestion
            else f"there {_there(known_addresses(desired, live))}",
        )


def _there(addresses: Sequence[str]) -> str:
    if not addresses:
        return "are no resources yet"
    return f"{'is' if len(addresses) == 1 else 'are'} {first_of(addresses, _SHOWN_MAX)}"


def _without_ledger(workspace: Workspace, desired: Desired) -> Live:
    """Tell an environment that was never applied from one whose ledger was lost."""
    live = nothing_yet(desired.environment.uid)
    if not workspace.paths.hosts.is_dir() and not lost(live.environment_uid):
        return live
    # Only here: a plan of an environment that has a ledger meets no host.
    from fleetform.app.ledger import proof_of_loss

    proof = proof_of_loss(workspace, live)
    if not proof:
        return live
    return dataclasses.replace(live, status=LedgerStatus.RECOVERING, notes=(proof,))


def nothing_yet(environment_uid: str) -> Live:
    """What is live before the first apply."""
    return Live(
        environment_uid=environment_uid,
        ledger_id="",
        epoch=0,
        status=LedgerStatus.EMPTY,
        serial=0,
        resources={},
    )


# Looks at what new volumes would take of this machine, so that a plan can name its owner, or that it
# is a file, or does not exist to be adopted.
# Only where a path leads out of the environment's own folder, is to be adopted as it is found, or
# meets one where data was left, and only for what is about to be made: whether a volume that is
# there is still ours is drift's to say. What was left and is gone by now does not come back, and is
# in no one's way. On other machines the agent finds out, and refuses with the same sentence.


def with_claims(workspace: Workspace, desired: Desired, live: Live) -> Live:
    """Return what is live, with who owns what new volumes would take, and what is really left."""
    if not _new_places(desired, live) and not _left_met(desired, live):
        return live
    # Most plans make no volume of such a path, and need neither a loop nor what drives hosts.
    import asyncio

    from fleetform.app.ledger import host_provider

    return asyncio.run(claimed(host_provider(workspace), desired, live))


async def claimed(hosts: HostProvider, desired: Desired, live: Live) -> Live:
    """As `with_claims`, for a caller with a running event loop."""
    claims: dict[ResourceKey, Claim] = {}
    uid = desired.environment.uid
    for key, path in _new_places(desired, live).items():
        seen = await hosts.place_at(uid, path)
        if seen.is_file:
            claims[key] = Claim(what=path, owner_uid="", is_file=True)
            continue
        if seen.environment_uid not in {"", uid}:
            claims[key] = _claim(path, seen)
            continue
        around = await hosts.volume_around(uid, path)
        if around is not None and not _goes(around.mark, uid, key, desired, live):
            claims[key] = dataclasses.replace(
                _claim(path, around.mark), marker_path=around.mark.path, is_inside=around.is_inside
            )
        elif not seen.exists and key in desired.imports:
            # Last: inside another environment's volume it may not be made either.
            claims[key] = Claim(what=seen.path, owner_uid="", missing=str(key))
    gone = {one for one in _left_met(desired, live) if not await _is_there(hosts, uid, one)}
    if gone:
        left = tuple(one for one in live.left if one not in gone)
        live = dataclasses.replace(live, left=left)
    return dataclasses.replace(live, claims=claims) if claims else live


async def _is_there(hosts: HostProvider, uid: str, left: RetainedData) -> bool:
    seen = await hosts.place_at(uid, left.path)
    return (seen.environment_uid, seen.volume_uid) == (uid, left.uid)


def _claim(path: str, mark: PlaceSeen) -> Claim:
    return Claim(
        what=path,
        owner_uid=mark.environment_uid,
        owner_name=mark.environment_name,
        holds=f"volume {mark.volume_name}" if mark.volume_name else "",
        since_ms=mark.marked_at_ms,
    )


def _goes(mark: PlaceSeen, uid: str, key: ResourceKey, desired: Desired, live: Live) -> bool:
    """
    Tell whether a volume of this environment is this one in its old place, or was removed.

    It lets its place go first then, which is for the planner to see to, and for the agent.
    """
    owner = ResourceKey("volume", mark.volume_name)
    is_known = mark.environment_uid == uid and owner in live.resources
    return is_known and (owner == key or owner not in desired.resources)


def _new_places(desired: Desired, live: Live) -> Mapping[ResourceKey, str]:
    """Paths of volumes that are not there as they are declared, by key, where they are looked at."""
    found = frozenset(desired.imports)
    return {
        key: path
        for key, path in _new_paths(desired, live)
        if path.startswith("/") or (path and key in found)
    }


def _left_met(desired: Desired, live: Live) -> tuple[RetainedData, ...]:
    """What was left where volumes are to be that are not there yet, or around it or within."""
    if not live.left:
        return ()
    coming = Places((path, key) for key, path in _new_paths(desired, live))
    return tuple(one for one in live.left if coming.meets(one.path))


def _new_paths(desired: Desired, live: Live) -> Iterator[tuple[ResourceKey, str]]:
    unchanged = unchanged_digests(live.resources)
    for key, digest in digests_of(desired.resources).items():
        if key.kind != "volume" or unchanged.get(key) == digest:
            continue
        declared = desired.resources[key]
        if is_disk(declared.document):
            continue
        row = live.resources.get(key)
        is_new = row is None or row.archived or row.digest != declared.digest
        if is_new and not _is_elsewhere(desired, declared.document.get("fleet", "")):
            yield key, declared.document.get("path", "")


def _is_elsewhere(desired: Desired, fleet: str) -> bool:
    """Whether the hosts of a fleet are other machines, whose directories only their agents see."""
    declared = desired.resources.get(ResourceKey("fleet", fleet))
    return declared is not None and is_elsewhere(declared.document)


# Finds commands that the caller's PATH has and the job's has not.
# A job does not get the PATH of the shell that plans, so `python` of an activated virtual environment is
# another `python` there, or none. A run would say so only when it fails. Nothing is executed: the first
# word of each line is looked up in the folders of both.

LISTED_MAX = 20
"""A configuration that was written for another machine has as many as it has runs."""

# Variables may stand before the word that is looked up; a word with a `/` is a path and is not.
_FIRST_WORD = re.compile(r"\s*(?:[A-Za-z_]\w*=\S*\s+)*(?P<word>[\w.+-]+)(?=[\s;&|)]|\Z)")

# From here on the script decides by itself where programs are found.
_CHANGES_PATH = re.compile(r"\bPATH=|\A\s*(?:\.|source|eval|module|conda|spack)\s|\bactivate\b")


def only_on_callers_path(plan: Plan, desired: Desired, callers_path: str) -> list[dict[str, str]]:
    """
    Return a row for each run and program: `run`, `program`, and where the caller has it, `found`.

    Only runs that the plan starts or changes, on fleets of this machine: of a sweep, its first
    element stands for all.
    """

    @functools.cache
    def found(program: str, path: str) -> str:
        if shutil.which(program, path=path):
            return ""
        return shutil.which(program, path=callers_path) or ""

    local = {
        key.name: _path_of(desired.resources[key].document)
        for key in desired.resources
        if key.kind == "fleet" and "local" in desired.resources[key].document
    }
    rows = (
        {"run": run, "program": program, "found": place}
        for run, document in _documents(plan)
        if _runs_here(document, local)
        for program in _programs(document)
        for path in _paths(document, local)
        if (place := found(program, path))
    )
    unique = {(row["run"], row["program"]): row for row in rows}
    return list(unique.values())[:LISTED_MAX]


def _documents(plan: Plan) -> Iterator[tuple[str, Mapping[str, Any]]]:
    known = set()
    for change in plan.changes:
        name = change.parent or change.key.name
        for step in change.steps:
            if step.verb in {Verb.RUN_SUBMIT, Verb.RUN_UPDATE} and name not in known:
                known.add(name)
                yield name, step.arguments["document"]


def _runs_here(document: Mapping[str, Any], local: Mapping[str, str]) -> bool:
    if document.get("image") or document.get("runtime", "process") != "process":
        return False
    fleets = set(document.get("fleets") or local)
    return bool(fleets) and fleets <= local.keys()


def _programs(document: Mapping[str, Any]) -> Iterator[str]:
    for line in _lines(document.get("commands") or ()):
        if _CHANGES_PATH.search(line):
            return
        if match := _FIRST_WORD.match(line):
            yield match["word"]


def _lines(commands: Iterable[str]) -> Iterator[str]:
    for command in commands:
        yield from command.splitlines()


def _paths(document: Mapping[str, Any], local: Mapping[str, str]) -> set[str]:
    """The job's PATH on each fleet that the run may be placed on."""
    own = _path_of(document, "")
    return {own or local[fleet] for fleet in document.get("fleets") or local}


def _path_of(document: Mapping[str, Any], default: str = job_environment.PATH) -> str:
    return str((document.get("env") or {}).get("PATH") or default)
