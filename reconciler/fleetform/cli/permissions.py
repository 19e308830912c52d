"""The options by which a person allows more than the environment's rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from fleetform.model.plan import Permissions

Function = TypeVar("Function", bound=Callable[..., Any])


def permission_options(function: Function) -> Function:
    """Take the permissions, for `plan` and `apply` alike: a plan shows what they would allow."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_OPTIONS = (
    click.option("--allow-destroy", is_flag=True, help="Allow deletions and ending running work."),
    click.option(
        "--allow-restart",
        is_flag=True,
        help="Allow running runs whose execution changed to be stopped and run anew.",
    ),
    click.option(
        "--allow-deletes",
        type=click.IntRange(min=0),
        metavar="N",
        help="Allow up to N deletions, whatever the environment's budget.",
    ),
    click.option(
        "--keep-going",
        is_flag=True,
        help="Go on with what is right when some documents have errors.",
    ),
)


def permissions_of(options: Mapping[str, Any], *, destroy: bool = False) -> Permissions:
    """Collect what `permission_options` took."""
    from fleetform.model.plan import Permissions

    return Permissions(
        allow_destroy=options["allow_destroy"],
        allow_restart=options["allow_restart"],
        allow_deletes=options["allow_deletes"],
        destroy=destroy,
    )
