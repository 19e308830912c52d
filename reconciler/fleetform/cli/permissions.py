"""The options by which a person allows more than the environment's rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.command import several_options

if TYPE_CHECKING:
    from fleetform.model.plan import Permissions


permission_options = several_options(
    click.option(
        "--allow-destroy", is_flag=True, help="Allow deletions, and changes that end running work."
    ),
    click.option(
        "--allow-restart",
        is_flag=True,
        help="Allow stopping and re-running active runs whose execution changed.",
    ),
    click.option(
        "--allow-deletes",
        type=click.IntRange(min=0),
        metavar="N",
        help="Allow up to N deletions, in place of the environment's budget.",
    ),
    click.option(
        "--keep-going",
        is_flag=True,
        help="Skip invalid documents and what depends on them.",
    ),
)
"""Take the permissions, for `plan` and `apply` alike: a plan shows what they would allow."""


def permissions_of(options: Mapping[str, Any], *, destroy: bool = False) -> Permissions:
    """Collect what `permission_options` took."""
    from fleetform.model.plan import Permissions

    return Permissions(
        allow_destroy=options["allow_destroy"],
        allow_restart=options["allow_restart"],
        allow_deletes=options["allow_deletes"],
        destroy=destroy,
    )
