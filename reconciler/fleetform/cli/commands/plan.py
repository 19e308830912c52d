"""`fleetform plan`: what would change and why, for people, scripts and pull requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleetform.cli.arguments import who_asks
from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_argument, format_option
from fleetform.cli.exit import PLAN_CODES, Exit
from fleetform.cli.failure import Refused
from fleetform.cli.plan import (
    drift_code,
    look_first,
    look_only,
    permission_options,
    permissions_of,
    refresh_options,
    refuse_with_refresh_only,
    scope_of,
    scope_options,
    show_drift,
    show_errored,
    show_plan,
    warn_incomplete,
)
from fleetform.cli.screen import say_line, screen
from fleetform.cli.tree import load, open_workspace, print_plan_warnings

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.cli.plan import Form

_EXAMPLES = (
    ("fleetform plan", "Show what apply would change, value by value"),
    ("fleetform plan --detailed-exitcode", "Exit with 2 if there are changes"),
    (
        "fleetform plan --target 'sweep[*]' --exclude fleet/local",
        "Plan some resources, and what they need",
    ),
    ("fleetform plan --refresh", "Read the actual state first, and plan corrections of drift"),
    ("fleetform plan --format markdown >> $GITHUB_STEP_SUMMARY", "Show the plan in a pull request"),
    ("fleetform plan --out today.plan", "Save the plan for `fleetform apply today.plan`"),
)


@make_command("plan", examples=_EXAMPLES, codes=PLAN_CODES)
@directory_argument
@permission_options
@scope_options
@refresh_options
@format_option("text", "json", "markdown")
@click.option(
    "--detailed-exitcode",
    "detailed",
    is_flag=True,
    help="Exit with 3 if a change is blocked or an earlier apply is not finished, 4 if a run has failed, 2 if there are changes.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Save the plan in FILE for `apply FILE`; only the owner of FILE can read it.",
)
@click.option(
    "--preview",
    is_flag=True,
    help="Ask the clouds which resources the plan creates, updates and deletes there; changes nothing.",
)
@click.option(
    "--destroy", is_flag=True, help="Plan the removal of every resource, as `destroy` does."
)
def command(
    path: str | None,
    form: Form,
    detailed: bool,
    out: str | None,
    destroy: bool,
    preview: bool,
    refresh: bool,
    refresh_only: bool,
    **permissions: object,
) -> int:
    """
    Show what apply would change, value by value.

    Compares the configuration with the ledger. Changes nothing, contacts no host unless --refresh is
    given, and no cloud unless --preview is. The exit code is 0 unless planning or a preview fails, a cloud does not answer to
    --refresh, or the ledger is recovering; --detailed-exitcode adds 2, 3 and 4. If a preview fails, the plan is shown with the reason, and --out saves nothing.
    """
    if refresh_only:
        beside = {"out": out, "destroy": destroy, "preview": preview, "refresh": refresh}
        beside["format markdown"] = form == "markdown"
        refuse_with_refresh_only(permissions | beside)
        return _show_drift_only(open_workspace(path), as_json=form == "json", detailed=detailed)
    if destroy and permissions["replaces"]:
        raise Refused(
            "--replace does not go with --destroy: removed resources are not created again"
        )
    workspace = open_workspace(path)
    # As in `destroy`: errors in the configuration must not block its removal.
    try:
        loaded = load(workspace, keep_going=destroy or bool(permissions["keep_going"]))
    except Refused as refusal:
        if form == "json":
            show_errored(screen(), workspace, refusal.message)
        raise
    from fleetform.app.clock import SystemClock
    from fleetform.app.plan import make_plan
    from fleetform.app.recorded_plans import keep_plan
    from fleetform.plan.exit import plan_code

    found = look_first(workspace) if refresh else None
    if found is not None and form == "text":
        show_drift(screen(), found, quiet=True)
    elif found is not None:
        warn_incomplete(found)
    allowed = permissions_of(permissions, destroy=destroy)
    now_ms = SystemClock().now_ms()
    plan = make_plan(
        workspace,
        loaded,
        allowed,
        scope_of(permissions),
        now_ms=now_ms,
        live=None if found is None else found.live,
        notice=say_line,
    )
    if preview:
        from fleetform.app.preview import with_preview

        plan = with_preview(workspace, plan)
    print_plan_warnings(loaded, plan)
    is_previewed = not plan.annex.get("preview_failed")
    if out is not None and is_previewed:
        from fleetform.app.saved import write_plan_file

        # First: what is shown is what the file has, its digest included.
        plan = write_plan_file(workspace, plan, out, allowed, who=who_asks(), now_ms=now_ms)
    show_plan(screen(), plan, form)
    if out is not None and is_previewed and form == "text":
        screen().line(f"Saved in {out}: `fleetform apply {out}` applies this plan.", "dim")
    keep_plan(workspace, plan, who=who_asks())
    if not is_previewed:
        from fleetform.app.preview import require_previewed

        require_previewed(plan, "" if out is None else f"{out} was not written")
    if found is not None and found.unlisted:
        return Exit.ERROR
    return plan_code(plan, detailed=detailed)


def _show_drift_only(workspace: Workspace, *, as_json: bool, detailed: bool) -> int:
    """Show what `apply --refresh-only` would accept, and all else that has drifted."""
    found = look_only(workspace)
    if as_json:
        from fleetform.views.drift import drift_rows

        warn_incomplete(found)
        screen().json(drift_rows(found.live.drift))
    else:
        show_drift(screen(), found)
    return drift_code(found, detailed=detailed)
