"""The controller of an environment as people see it: which process drives the runs, and where."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.agents.protocol.naming import first_digits
from fleetform.model.leadership import BACKGROUND, Holder
from fleetform.model.redaction import fingerprint
from fleetform.views.moments import age
from fleetform.views.table import Cell, Column, Table, make_table, row_of

if TYPE_CHECKING:
    from fleetform.model.apply import ApplyRecord
    from fleetform.views.history import OperationRow


class ControllerKind(enum.StrEnum):
    """
    BACKGROUND: left behind by an apply that was detached or interrupted. APPLY, SERVE: the
    commands. OTHER: a command that holds the environment for a moment, such as `state restore`.
    """

    BACKGROUND = "background"
    APPLY = "apply"
    SERVE = "serve"
    OTHER = "other"


_KINDS = {
    BACKGROUND: ControllerKind.BACKGROUND,
    "apply": ControllerKind.APPLY,
    "serve": ControllerKind.SERVE,
}


@dataclass(frozen=True, slots=True)
class ControllerRow:
    """
    The process that holds the manager lease.

    Attributes:
        command: What it does, such as `serve`; empty for one that has not written it down yet.
        host: The machine on which `pid` counts.
        since_ms: Unix milliseconds.
        log: Path on `host`; empty where the kind has none, or where it is another machine's.
        variables: Names of the environment variables that it has besides the usual ones (HOME, USER,
            LANG, TZ, PATH and FLEETFORM_*). Their values are never shown.
        warning: Why the machine may end it early; empty where nothing is known to.
    """

    kind: ControllerKind
    command: str
    who: str
    pid: int
    host: str
    since_ms: int
    log: str = ""
    variables: tuple[str, ...] = ()
    warning: str = ""


def controller_row(
    holder: Holder, *, log: str = "", variables: tuple[str, ...] = (), warning: str = ""
) -> ControllerRow:
    """Make the row of a holder; the rest is known of a background controller of this machine."""
    kind = _KINDS.get(holder.command, ControllerKind.OTHER)
    return row_of(ControllerRow, holder, kind=kind, log=log, variables=variables, warning=warning)


def controller_lines(row: ControllerRow | None, *, now_ms: int) -> tuple[str, ...]:
    """Say who drives the runs, a line each fact; the warning is not among them."""
    if row is None:
        return ("no controller is running",)
    holder = Holder(row.pid, row.who, row.command, row.since_ms, row.host)
    lines = [f"{held_by(holder)}, for {age(row.since_ms, now_ms) or '0s'}"]
    if row.log:
        lines.append(f"log: {row.log}")
    if row.variables:
        lines.append(f"additional variables: {', '.join(row.variables)}")
    return tuple(lines)


# Who manages which environment, what is open, and what waits, as rows.


@dataclass(frozen=True, slots=True)
class LockRow:
    """
    One environment of this user's state folder.

    Attributes:
        environment: Its name as it was applied last; empty where nothing was.
        uid: Its first eight characters, which tell two of one name apart; the whole is a key (`model.redaction`).
        fingerprint: Stands for the whole uid; plans of the environment have the same.
        held: Whether a process manages it now; the rest is empty where none does.
        pid: 0 for a process that has not written it down yet.
        fence: Of a lease; 0 for a file lock.
        left_ms: How long a lease holds if it is not renewed; None for a file lock.
    """

    environment: str
    uid: str
    fingerprint: str
    held: bool
    command: str = ""
    who: str = ""
    pid: int = 0
    host: str = ""
    since_ms: int | None = None
    fence: int = 0
    left_ms: int | None = None


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """One apply that was entered and is not over."""

    apply: str
    plan: str
    who: str
    commit: str
    since_ms: int
    open_steps: int


@dataclass(frozen=True, slots=True)
class LockShown:
    """One environment: the process that manages it, its open steps, and applies that wait."""

    lock: LockRow
    open_operations: tuple[OperationRow, ...]
    waiting: tuple[WaitingRow, ...]
    taken_over: str
    """A sentence while a takeover pauses `serve`; else empty."""


def held_by(holder: Holder) -> str:
    """Say who that is in a few words: what it does, for whom, and where it can be found."""
    where = f"(pid {holder.pid} on {holder.host})"
    command = holder.command or "a process"
    # `serve` acts for no particular user.
    return f"{command} {where}" if holder.who == command else f"{command} of {holder.who} {where}"


def lock_row(environment: str, uid: str, holder: Holder | None) -> LockRow:
    digits, mark = first_digits(uid), fingerprint(uid)
    if holder is None:
        return LockRow(environment, digits, mark, held=False)
    return row_of(LockRow, holder, environment=environment, uid=digits, fingerprint=mark, held=True)


def locks_table(rows: Iterable[LockRow], *, now_ms: int) -> Table:
    columns: tuple[Column[LockRow], ...] = (
        Column("ENVIRONMENT", lambda row: row.environment),
        Column("UID", lambda row: Cell(row.uid, "dim")),
        Column("CONTROLLER", lambda row: row.command if row.held else Cell("none", "dim")),
        Column("WHO", lambda row: row.who),
        Column("PID", lambda row: str(row.pid) if row.pid else "", right=True),
        Column("MACHINE", lambda row: row.host),
        Column("FOR", lambda row: age(row.since_ms, now_ms), right=True),
    )
    return make_table(columns, rows)


def waiting_table(rows: Iterable[WaitingRow], *, now_ms: int) -> Table:
    columns: tuple[Column[WaitingRow], ...] = (
        Column("APPLY", lambda row: row.apply[:12]),
        Column("PLAN", lambda row: row.plan[:12]),
        Column("WHO", lambda row: row.who),
        Column("OPEN STEPS", lambda row: str(row.open_steps), right=True),
        Column("FOR", lambda row: age(row.since_ms, now_ms), right=True),
    )
    return make_table(columns, rows)


def waiting_row(record: ApplyRecord, open_steps: int) -> WaitingRow:
    return WaitingRow(
        record.uid, record.plan_digest, record.who, record.commit, record.started_at_ms, open_steps
    )
