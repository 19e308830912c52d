"""The options that say what a plan is made of: shared by `plan` and `apply`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.command import several_options
from fleetform.cli.failure import bad_address

if TYPE_CHECKING:
    from fleetform.model.plan import Scope


scope_options = several_options(
    click.option(
        "--target",
        "targets",
        multiple=True,
        metavar="ADDR",
        help="Plan only this resource and what it needs: `train`, `fleet/local`, `run/sweep[*]`; can be repeated.",
    ),
    click.option(
        "--exclude",
        "excludes",
        multiple=True,
        metavar="ADDR",
        help="Leave this resource out, even if a target needs it; can be repeated.",
    ),
    click.option(
        "--replace",
        "replaces",
        multiple=True,
        metavar="ADDR",
        help="Replace this resource although nothing changed: re-run a run; create a fleet, a volume or a"
        " single host (`host/local-0`) again; can be repeated.",
    ),
)
"""Take --target, --exclude and --replace."""

NAMES = ("targets", "excludes", "replaces")
"""Of the parameters that a command is given."""


def flag_of(parameter: str) -> str:
    """How a command's parameter is written: `--target`, `--keep-going`."""
    word = parameter.removesuffix("s") if parameter in NAMES else parameter
    return f"--{word.replace('_', '-')}"


def flag_given(options: Mapping[str, Any]) -> str:
    """Name the first flag, by the alphabet, that was given among `options`; empty for none."""
    # 0 is a number that somebody typed.
    given = sorted(
        name
        for name, value in options.items()
        if value is not None and value is not False and value != ()
    )
    return flag_of(given[0]) if given else ""


def scope_of(options: Mapping[str, Any]) -> Scope:
    """
    Collect what `scope_options` took.

    Raises:
        Refused: Something of it is no address.
    """
    from fleetform.model.plan import Scope
    from fleetform.model.selection import address_problem

    for name in NAMES:
        for text in options[name]:
            if problem := address_problem(text):
                raise bad_address(
                    problem, advice="write for example `train`, `fleet/local` or `run/sweep[*]`"
                )
    return Scope(*(tuple(dict.fromkeys(options[name])) for name in NAMES))
