"""
The controller of an environment as people see it: which process drives the runs, and where.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from fleetform.model.leadership import BACKGROUND, Holder
from fleetform.views.locks import held_by
from fleetform.views.moments import age

__all__ = ["ControllerKind", "ControllerRow", "controller_lines", "controller_row"]


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
        variables: Names of the environment variables that it has beside the usual ones (HOME, USER,
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
    return ControllerRow(
        kind=_KINDS.get(holder.command, ControllerKind.OTHER),
        command=holder.command,
        who=holder.who,
        pid=holder.pid,
        host=holder.host,
        since_ms=holder.since_ms,
        log=log,
        variables=variables,
        warning=warning,
    )


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
