"""The options of commands that plan: what is planned, what is permitted, and what is looked at first."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import click

from fleetform.cli.command import several_options
from fleetform.cli.exit import Exit
from fleetform.cli.failure import Refused, bad_address
from fleetform.cli.screen import Screen, error_screen

if TYPE_CHECKING:
    from fleetform.app.observe import Look
    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Permissions, Plan, Scope

# The options that say what a plan is made of: shared by `plan` and `apply`.

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
    # 0 is a number that a user typed.
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


# The options by which a person allows more than the environment's rules.

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


# The options by which a plan reads the actual state before it compares, and what is shown of that.

refresh_options = several_options(
    click.option("--refresh", is_flag=True, help="Read the actual state first, and correct drift."),
    click.option(
        "--refresh-only",
        is_flag=True,
        help="Read the actual state and record it in the ledger; change no resource.",
    ),
)
"""Take --refresh and --refresh-only, for `plan` and `apply` alike."""


def refuse_with_refresh_only(options: Mapping[str, Any]) -> None:
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
    """Read the actual state; None where nothing has been applied yet, so that nothing can have drifted."""
    from fleetform.app.observe import refreshed
    from fleetform.cli.progress.status_line import status_line
    from fleetform.views.drift import asked_text

    reader = workspace.reader()
    if reader is None:
        return None
    with contextlib.closing(reader):
        asked = asked_text(reader.read_live())
    # This machine answers at once; others take seconds.
    with status_line(asked) if asked else contextlib.nullcontext():
        return refreshed(workspace)


def look_only(workspace: Workspace) -> Look:
    """
    Read the actual state, for a command that does nothing else.

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


def warn_incomplete(found: Look) -> None:
    """Say which clouds were not asked, and that later plans will not know of what was seen."""
    for problem in found.unlisted:
        error_screen().labelled("warning", problem)
    if found.unrecorded:
        said = f"the drift is not recorded, so plans will not mention it: {found.unrecorded}"
        error_screen().labelled("warning", said)


def drift_code(found: Look, *, detailed: bool) -> int:
    """Return the exit code of a command that only looks: a cloud that does not answer proves no rest."""
    if found.unlisted:
        return Exit.ERROR
    return Exit.CHANGES if found.live.drift and detailed else Exit.OK


def show_drift(out: Screen, found: Look, *, quiet: bool = False) -> None:
    """Show what has drifted; with `quiet` nothing where nothing has."""
    from fleetform.views.drift import render

    warn_incomplete(found)
    if quiet and not found.live.drift:
        return
    assert found.live.observed_at_ms is not None
    is_complete = not found.unlisted
    at_ms = found.live.observed_at_ms
    out.lines(render(found.live.drift, observed_at_ms=at_ms, is_complete=is_complete))
    if quiet:
        out.line()


# A plan on standard output: as text, as JSON for scripts, as Markdown for a pull request.

Form = Literal["text", "json", "markdown"]


def show_errored(screen: Screen, workspace: Workspace, problem: str) -> None:
    """Print the JSON of a plan that could not be made, with what is wrong with the configuration."""
    from fleetform.agents.host import VERSION
    from fleetform.model.redaction import fingerprint
    from fleetform.views.plan.json import errored_json

    environment = workspace.environment
    screen.json(
        errored_json(
            environment.name,
            fingerprint(environment.uid),
            workspace.load().findings,
            problem=problem,
            version=VERSION,
        )
    )


def show_plan(screen: Screen, plan: Plan, form: Form = "text") -> None:
    """Print the plan; only text has colours."""
    if form == "json":
        from fleetform.agents.host import VERSION
        from fleetform.views.plan import json as plan_json

        screen.json(plan_json.to_json(plan, version=VERSION))
    elif form == "markdown":
        from fleetform.views.lines import harmless
        from fleetform.views.plan import markdown as plan_markdown

        screen.stream.write(harmless(plan_markdown.render(plan)))
    else:
        from fleetform.views.plan import text as plan_text

        screen.lines(plan_text.rendered(plan))
