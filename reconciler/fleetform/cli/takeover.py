"""The options by which `apply` has `serve` rest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleetform.cli.arguments import DURATION, REASON, who_asks
from fleetform.cli.command import several_options
from fleetform.cli.failure import Refused
from fleetform.cli.screen import error_screen

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace


takeover_options = several_options(
    click.option("--takeover", is_flag=True, help="Pause `serve` first; needs --for and --reason."),
    click.option(
        "--for", "for_ms", type=DURATION, metavar="1h", help="Longest duration of the takeover."
    ),
    click.option(
        "--reason",
        type=REASON,
        metavar="TEXT",
        help="Reason; commands show it while the takeover is in force.",
    ),
)
"""Take --takeover, and how long and why."""


def take_over_first(
    workspace: Workspace, *, takeover: bool, for_ms: int | None, reason: str | None, yes: bool
) -> None:
    """
    Take the environment over where that was asked for; with `yes` the apply asks no question.

    Raises:
        Refused: It was not said for how long, or why; or the apply could not be confirmed.
        Locked: Somebody else has taken over.
    """
    if not takeover:
        if for_ms is not None or reason is not None:
            raise Refused("--for and --reason belong to --takeover", advice="pass that too")
        return
    if not for_ms or not reason:
        raise Refused(
            "--takeover needs --for and --reason",
            advice="fleetform apply --takeover --for 1h --reason TEXT",
        )
    import asyncio

    from fleetform.app.lock import take_over
    from fleetform.cli.apply_flow import require_terminal
    from fleetform.cli.progress.plain import PlainProgress

    require_terminal(yes=yes, how="-y", look="nothing was taken over;")
    asyncio.run(
        take_over(
            workspace,
            who=who_asks(),
            reason=reason,
            for_ms=for_ms,
            progress=PlainProgress(error_screen()),
        )
    )
