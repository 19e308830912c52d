"""
Takes an environment over from `serve`, visibly and for a while, so that somebody can work by hand.

What takes over is an override of the ledger: `serve` sees it, ends what it is making, lets the
environment go, and takes it up again when the override has run out or was lifted.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.app.opening import open_for_writing
from fleetform.app.problems import Locked
from fleetform.app.serving import takeover
from fleetform.model.override import Override, OverrideKind
from fleetform.views.moments import moment

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.ports import Progress

__all__ = ["take_over"]

_LOOK_SECONDS = 0.05

_PATIENCE_SECONDS = 120.0
"""How long `serve` may take to end what it is making: a step waits for a host for a minute."""


async def take_over(
    workspace: Workspace, *, who: str, reason: str, for_ms: int, progress: Progress
) -> Override:
    """
    Have `serve` rest from now on, and return once it does.

    Args:
        workspace: Whose environment.
        who: Shown wherever the override is.
        reason: The same.
        for_ms: After that, `serve` takes up again by itself.
        progress: Told whom we wait for.

    Raises:
        Locked: Somebody else has taken over, or whoever holds the environment does not let go.
    """
    now_ms = SystemClock().now_ms()
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        taken = takeover(ledger.read_overrides(), now_ms)
        if taken is not None and taken.who != who:
            raise Locked(
                f"{taken.who} has already taken over{_until(taken)}: {taken.reason}",
                f"ask that person, or end it with `fleetform emergency lift {taken.number}`",
            )
        if taken is not None:
            ledger.lift_overrides([taken.number], who=who, now_ms=now_ms)
        put = ledger.put_overrides(
            OverrideKind.TAKEOVER,
            (),
            reason=reason,
            who=who,
            now_ms=now_ms,
            until_ms=now_ms + for_ms,
        )
        (override,) = put.overrides
    progress.notice(
        f"taken over{_until(override)}; `fleetform emergency lift {override.number}` ends the"
        " takeover"
    )
    await _wait(workspace, override, progress)
    return override


async def _wait(workspace: Workspace, override: Override, progress: Progress) -> None:
    """Wait until `serve` has let go; another `apply` is not in the way, and is followed."""
    told = False
    deadline = SystemClock().boot_ms() + int(_PATIENCE_SECONDS * 1000)
    while (holder := workspace.manager()) is not None and holder.command in {"serve", ""}:
        if not told and holder.command:
            progress.notice(f"waiting for serve (pid {holder.pid}) to release the environment")
            told = True
        if SystemClock().boot_ms() > deadline:
            raise Locked(
                f"serve (pid {holder.pid} on {holder.host}) has not released the environment",
                f"check what it does, or end it: `fleetform lock break --force`. The takeover lasts"
                f"{_until(override)}",
            )
        await asyncio.sleep(_LOOK_SECONDS)


def _until(override: Override) -> str:
    return "" if override.until_ms is None else f" until {moment(override.until_ms)}"
