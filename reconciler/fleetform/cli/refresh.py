"""The options by which a plan asks the world before it compares, and what is shown of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.command import several_options
from fleetform.cli.failure import Refused
from fleetform.cli.scope import flag_given
from fleetform.cli.screen import Screen, error_screen

if TYPE_CHECKING:
    from fleetform.app.observing import Look
    from fleetform.app.workspace import Workspace


refresh_options = several_options(
    click.option("--refresh", is_flag=True, help="Read the actual state first, and correct drift."),
    click.option(
        "--refresh-only",
        is_flag=True,
        help="Read the actual state and record it in the ledger; change no resource.",
    ),
)
"""Take --refresh and --refresh-only, for `plan` and `apply` alike."""


def refuse_beside_looking(options: Mapping[str, Any]) -> None:
    """
    Have --refresh-only stand alone: it makes no plan that another option could say more about.

    Args:
        options: By the name of the parameter, those that it would pass over.

    Raises:
        Refused: One of them was given.
    """
    if flag := flag_given(options):
        raise Refused(
            f"{flag} does not go with --refresh-only, which plans nothing and changes no resource",
            advice="leave one of them out; --refresh reads the actual state, and then plans",
        )


def look_first(workspace: Workspace) -> Look | None:
    """Ask the world; None where nothing has been applied yet, so that nothing can have drifted."""
    from fleetform.app.observing import refreshed

    reader = workspace.reader()
    if reader is None:
        return None
    reader.close()
    return refreshed(workspace)


def look_only(workspace: Workspace) -> Look:
    """
    Ask the world, for a command that does nothing else.

    Raises:
        Refused: Nothing has been applied yet.
    """
    found = look_first(workspace)
    if found is None:
        raise Refused(
            "nothing has been applied yet, so there is no actual state to read",
            advice="`fleetform plan` shows what would be created",
        )
    return found


def unrecorded_text(found: Look) -> str:
    """Say that later plans will not know of what was seen, and why."""
    return f"the drift is not recorded, so plans will not mention it: {found.unrecorded}"


def show_drift(out: Screen, found: Look, *, quiet: bool = False) -> None:
    """Show what has drifted; with `quiet` nothing where nothing has."""
    from fleetform.views.drift import render

    if found.unrecorded:
        error_screen().labelled("warning", unrecorded_text(found))
    if quiet and not found.live.drift:
        return
    assert found.live.observed_at_ms is not None
    out.lines(render(found.live.drift, observed_at_ms=found.live.observed_at_ms))
    if quiet:
        out.line()
