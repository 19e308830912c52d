"""
Reads the state of an environment, also where half of it cannot be read.

No plan is made and no host is contacted: the answer is the ledger's, the manager lease's and git's.
What cannot be read is part of the answer and never counts as empty.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from fleetform.agents.protocol.naming import first_digits
from fleetform.api.waiting import StuckRuns, stuck_runs
from fleetform.app.blocked import Blocked, read_whole_applies
from fleetform.app.controllers import read_controller
from fleetform.app.generations import behind, known_generation
from fleetform.app.problems import LedgerProblem
from fleetform.model.ledger import LedgerStatus
from fleetform.model.redaction import fingerprint
from fleetform.model.refusals import LedgerUnavailable, LedgerUnusable
from fleetform.plan.exit import exit_code_of_status
from fleetform.spec.tree.git import Commit, count_ahead
from fleetform.views.attention import attention
from fleetform.views.cut_off import attention_text, status_cut_off, status_left
from fleetform.views.overrides import in_force_lines
from fleetform.views.reasons import HELD_BY
from fleetform.views.status import (
    AppliedRow,
    BlockedChange,
    BlockedRow,
    LedgerRow,
    Status,
    drift_rows,
    hosts_row,
    in_progress_rows,
    runs_row,
)

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.history import HistoryEntry
    from fleetform.model.overview import Overview, TroubledHost
    from fleetform.model.ports import Reader
    from fleetform.store.generations import Generation
    from fleetform.views.controllers import ControllerRow


class _Reading(NamedTuple):
    """What the ledger says; `overview` is None where it says nothing."""

    ledger: LedgerRow
    overview: Overview | None = None
    applied: AppliedRow | None = None
    destroyed_at_ms: int | None = None
    last_state: str = ""
    blocked: BlockedRow | None = None
    stuck: StuckRuns = StuckRuns()


def read_status(workspace: Workspace, *, now_ms: int) -> Status:
    """Read it; git and the ledger are asked at the same time."""
    commit = Commit(workspace.root)
    try:
        reading = _read(workspace, now_ms)
        controller = _controller(workspace)
    except BaseException:
        commit.drop()
        raise
    ledger, found, applied, destroyed_at_ms, last_state, blocked, stuck = reading
    here = commit.read()
    found, cut_off = _cut_off(workspace, found, now_ms, is_controlled=controller is not None)
    needs = attention(
        ledger,
        last_state,
        controller,
        found,
        blocked,
        blocked_runs=len(stuck.without_account),
        hostless_runs=len(stuck.without_hosts),
    )
    needs = (*filter(None, [attention_text(cut_off)]), *needs)
    return Status(
        environment=workspace.environment.name,
        uid=first_digits(workspace.environment.uid),
        fingerprint=fingerprint(workspace.environment.uid),
        ledger=ledger,
        applied=applied,
        destroyed_at_ms=destroyed_at_ms,
        working_copy=here,
        commits_ahead=_ahead(workspace, applied, here),
        controller=controller,
        hosts=None
        if found is None
        else hosts_row(replace(found, troubled_hosts=(*cut_off, *found.troubled_hosts))),
        runs=None
        if found is None
        else runs_row(found, {**stuck.without_hosts, **stuck.without_account}),
        drift=() if found is None else drift_rows(found),
        blocked=blocked,
        in_progress=() if found is None else in_progress_rows(found),
        rollouts={} if found is None else found.rollouts,
        overrides=() if found is None else in_force_lines(found.overrides, now_ms),
        attention=needs,
        exit_code=exit_code_of_status(
            is_trusted=ledger.condition in {"ready", "empty"},
            has_failed=found is not None and found.troubled_count > 0,
            needs_attention=bool(needs),
        ),
        at_ms=now_ms,
    )


def _cut_off(
    workspace: Workspace, found: Overview | None, now_ms: int, *, is_controlled: bool
) -> tuple[Overview | None, tuple[TroubledHost, ...]]:
    """Split the hosts whose creation was cut off from the overview of the ledger, which then has those that no process creates."""
    if found is None or not found.uncreated:
        return found, ()
    # Here: most environments have none, and the provider of a cloud takes long to load.
    from fleetform.app.cut_off import cut_off_hosts
    from fleetform.app.ledger import host_provider

    uids = [one.uid for one in found.uncreated]
    cut_off = cut_off_hosts(host_provider(workspace), uids, is_controlled=is_controlled)
    found, troubled = status_cut_off(found, cut_off, now_ms=now_ms)
    return (found if is_controlled else status_left(found, cut_off)), troubled


def _ahead(workspace: Workspace, applied: AppliedRow | None, here: str) -> int | None:
    """Count the commits that are checked out and not applied; None where git does not know."""
    before = "" if applied is None else applied.commit.partition("+")[0]
    head = here.partition("+")[0]
    return count_ahead(workspace.root, before, head) if before and head else None


def _controller(workspace: Workspace) -> ControllerRow | None:
    try:
        return read_controller(workspace)
    except (LedgerProblem, LedgerUnavailable):
        # The lease lies in a ledger that cannot be read, as the line on the ledger says.
        return None


# -- the ledger ----------------------------------------------------------------------------


def _read(workspace: Workspace, now_ms: int) -> _Reading:
    known = known_generation(workspace.environment.uid)
    try:
        reader = workspace.reader()
        if reader is None:
            return _Reading(_without_ledger(workspace))
        with contextlib.closing(reader):
            return _read_ledger(reader, known, now_ms)
    except LedgerProblem as problem:
        cause = problem.__cause__
        return _Reading(LedgerRow(_condition(cause), problem.message, problem.advice))
    except (LedgerUnusable, LedgerUnavailable) as problem:
        return _Reading(
            LedgerRow(_condition(problem), str(problem), getattr(problem, "advice", ""))
        )


def _read_ledger(reader: Reader, known: Generation | None, now_ms: int) -> _Reading:
    found = reader.read_overview()
    condition = LedgerRow(found.status.value)
    if found.status is LedgerStatus.RECOVERING:
        condition = LedgerRow(found.status.value, found.note, _REBUILD)
    elif proof := behind(reader.read_standing(), known):
        condition = LedgerRow(
            LedgerStatus.RECOVERING.value, f"it is an older copy: {proof}", _REBUILD
        )
    last = reader.read_applies(limit=1)
    whole = read_whole_applies(reader)
    return _Reading(
        condition,
        found,
        applied=None if whole.applied is None else _applied(whole.applied),
        destroyed_at_ms=None if whole.destroyed is None else whole.destroyed.at_ms,
        last_state=last[0].state if last else "",
        blocked=None if whole.blocked is None else _blocked(whole.blocked),
        stuck=stuck_runs(reader, now_ms=now_ms) if found.work_count else StuckRuns(),
    )


def _applied(entry: HistoryEntry) -> AppliedRow:
    return AppliedRow(
        entry.commit, entry.state, entry.who, entry.at_ms, entry.digest, entry.summary
    )


_REBUILD = "`fleetform state rebuild` asks the hosts"


def _without_ledger(workspace: Workspace) -> LedgerRow:
    """Tell an environment that was never applied from one whose ledger was lost."""
    # Only here: otherwise no host is asked.
    from fleetform.app.ledger import proof_of_loss
    from fleetform.app.plan import nothing_yet

    if proof := proof_of_loss(workspace, nothing_yet(workspace.environment.uid)):
        return LedgerRow(LedgerStatus.RECOVERING.value, f"it was lost: {proof}", _REBUILD)
    return LedgerRow(LedgerStatus.EMPTY.value)


def _condition(problem: BaseException | None) -> str:
    from fleetform.store import errors

    names = (
        (errors.DamagedLedgerError, "damaged"),
        (errors.OlderLedgerError, "older"),
        (errors.NewerLedgerError, "newer"),
        (errors.ForeignLedgerError, "foreign"),
        (LedgerUnavailable, "unreachable"),
    )
    return next((name for kind, name in names if isinstance(problem, kind)), "unreadable")


def _blocked(found: Blocked) -> BlockedRow:
    changes = (
        BlockedChange(str(one.change.key), HELD_BY[one.by], one.detail, one.cure)
        for one in found.held
    )
    return BlockedRow(found.apply.digest, found.apply.at_ms, found.apply.who, tuple(changes))
