"""From a loaded tree to a plan that a second reader has checked."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from typing import TYPE_CHECKING, Any

from fleetform.app.claims import with_claims
from fleetform.app.generations import known_generation, lost, with_generation
from fleetform.app.problems import PlanProblem, ScopeProblem
from fleetform.checker import check
from fleetform.model.live import LedgerStatus, Live
from fleetform.model.plan import WHOLE, Permissions, Plan, Scope
from fleetform.model.rows import RowsOutdated
from fleetform.plan.notes import with_notes
from fleetform.plan.planner import plan
from fleetform.plan.scope import idle_addresses, known_addresses, with_new_names
from fleetform.plan.sealed_names import with_sealed_names
from fleetform.spec.table import digests_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetform.app.workspace import Workspace
    from fleetform.model.ports import Reader
    from fleetform.spec.desired import Desired, Loaded


_DIRTY = "+dirty"
"""Behind the commit of a tree that has changes which no commit has."""

_SHOWN_MAX = 6
"""How many addresses somebody who named none of them is shown."""


def make_plan(
    workspace: Workspace,
    loaded: Loaded,
    permissions: Permissions,
    scope: Scope = WHOLE,
    *,
    now_ms: int,
    live: Live | None = None,
) -> Plan:
    """
    Compare the tree with the ledger, or with `live` where the world was asked before.

    For a command; whatever goes on for long asks `checked_plan`.

    Raises:
        LedgerProblem: The ledger cannot be read.
        PlanProblem: The plan breaks an invariant; it is a fault of ours and must not be applied.
    """
    assert loaded.desired is not None, "the caller refuses a configuration without an environment"
    made = _compared(workspace, loaded.desired, permissions, scope, now_ms=now_ms, live=live)
    annex: dict[str, Any] = {}
    # Who manages the environment hears from its hosts all the time, and notes what is new.
    if made.annex["hosts"]["count"] and (holder := workspace.manager()) is not None:
        annex["watched_by"] = holder.command
    if any(step.verb.startswith("run.") for step in made.steps):
        annex["forecast"] = _forecast(workspace, made, now_ms)
        if lost := _lost_programs(made, loaded.desired):
            annex["only_on_callers_path"] = lost
    return dataclasses.replace(made, annex={**made.annex, **annex}) if annex else made


def _compared(
    workspace: Workspace,
    desired: Desired,
    permissions: Permissions,
    scope: Scope,
    *,
    now_ms: int,
    live: Live | None,
) -> Plan:
    if live is not None:
        live = with_claims(workspace, desired, live)
        if (reader := workspace.reader()) is not None:
            with contextlib.closing(reader):
                live = _with_newer_commit(workspace, desired, live, reader)
        return checked_plan(desired, live, permissions, scope, now_ms=now_ms)
    # Before the ledger is read: the controller goes on meanwhile.
    known = known_generation(desired.environment.uid)
    reader = workspace.reader()
    if reader is None:
        live = with_claims(workspace, desired, _without_ledger(workspace, desired))
        return checked_plan(desired, live, permissions, scope, now_ms=now_ms)
    with contextlib.closing(reader):
        try:
            # Most that is declared is as it should be, and no more is read of it.
            live = with_generation(reader.read_live(digests_of(desired.resources)), known)
            live = _with_newer_commit(
                workspace, desired, with_claims(workspace, desired, live), reader
            )
            return checked_plan(desired, live, permissions, scope, now_ms=now_ms)
        except RowsOutdated:
            # It was asked for after all, and somebody had committed meanwhile.
            live = with_generation(reader.read_live(), known)
            live = with_claims(workspace, desired, live)
            live = _with_newer_commit(workspace, desired, live, reader)
            return checked_plan(desired, live, permissions, scope, now_ms=now_ms)


def _with_newer_commit(workspace: Workspace, desired: Desired, live: Live, reader: Reader) -> Live:
    """Find out whether the tree is at a commit that the one applied last was made from."""
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


def _forecast(workspace: Workspace, made: Plan, now_ms: int) -> dict[str, Any]:
    """What would start and what would wait: for people, and no part of what was decided."""
    # Here and not above: most plans change no run, and need neither book nor scheduler.
    from fleetform.app.forecasting import RUNS_MAX, forecast
    from fleetform.app.this_machine import ThisMachine

    submitted = sum(step.verb == "run.submit" for step in made.steps)
    if submitted > RUNS_MAX:
        return {"skipped": f"{submitted} runs are new; the forecast covers up to {RUNS_MAX}"}
    machine = ThisMachine(workspace.state)
    reader = workspace.reader()
    if reader is None:
        return forecast(made, None, machine=machine, now_ms=now_ms)
    with contextlib.closing(reader):
        book = reader.read_book()
    return forecast(made, book, machine=machine, now_ms=now_ms)


def _lost_programs(made: Plan, desired: Desired) -> list[dict[str, str]]:
    from fleetform.app.callers_path import only_on_callers_path

    return only_on_callers_path(made, desired, os.environ.get("PATH", ""))


def checked_plan(
    desired: Desired,
    live: Live,
    permissions: Permissions,
    scope: Scope = WHOLE,
    *,
    now_ms: int,
) -> Plan:
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
    shown = ", ".join(addresses[:_SHOWN_MAX])
    more = len(addresses) - _SHOWN_MAX
    return f"{'is' if len(addresses) == 1 else 'are'} {shown}" + (
        f" and {more} more" if more > 0 else ""
    )


def _without_ledger(workspace: Workspace, desired: Desired) -> Live:
    """Tell an environment that was never applied from one whose ledger was lost."""
    live = nothing_yet(desired.environment.uid)
    if not workspace.paths.hosts.is_dir() and not lost(live.environment_uid):
        return live
    # Only here: a plan of an environment that has a ledger meets no host.
    from fleetform.app.opening import proof_of_loss

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
