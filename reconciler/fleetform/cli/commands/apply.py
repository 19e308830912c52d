"""`fleetform apply`: plan, ask, carry out, follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.arguments import DURATION, REASON, who_asks
from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, several_options, take_folder
from fleetform.cli.exit import APPLY_CODES, Exit
from fleetform.cli.failure import Refused
from fleetform.cli.plan import (
    drift_code,
    flag_given,
    look_first,
    look_only,
    permission_options,
    permissions_of,
    refresh_options,
    refuse_with_refresh_only,
    scope_of,
    scope_options,
    show_drift,
    show_plan,
)
from fleetform.cli.screen import error_screen, say_line, screen
from fleetform.cli.tree import load, open_to_write, print_plan_warnings
from fleetform.model.figures import counted

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.cli.apply_flow import Watching
    from fleetform.model.plan import Plan

# The options by which `apply` has `serve` rest first.

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
        Locked: Another user has taken over.
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


_EXAMPLES = (
    ("fleetform apply", "Show the plan, ask, apply it, and follow the runs to their end"),
    ("fleetform apply -y --detach", "Apply without asking, and do not wait for the runs"),
    ("fleetform apply -y --show-output", "Print the output of several jobs while they run"),
    ("fleetform apply --replace train", "Re-run a run although nothing changed"),
    (
        "fleetform apply --takeover --for 1h --reason 'GPU swap'",
        "Pause `serve` for an hour at most, and apply by hand",
    ),
    ("fleetform apply --allow-restart", "Stop and re-run active runs whose execution changed"),
    (
        "fleetform apply today.plan",
        "Apply the plan that `plan --out` saved, if it is not stale",
    ),
)


@make_command("apply", examples=_EXAMPLES, codes=APPLY_CODES)
@click.argument(
    "file", required=False, type=click.Path(exists=True), metavar="[FILE]", callback=take_folder
)
@directory_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@permission_options
@scope_options
@refresh_options
@click.option(
    "--detach", is_flag=True, help="Do not wait for the runs; the controller drives them."
)
@takeover_options
@click.option("--show-output", is_flag=True, help="Print the output of the jobs.")
@click.option(
    "--json-into",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Append progress to FILE as JSON lines.",
)
def command(
    file: str | None,
    path: str | None,
    yes: bool,
    detach: bool,
    show_output: bool,
    json_into: str | None,
    refresh: bool,
    refresh_only: bool,
    takeover: bool,
    for_ms: int | None,
    reason: str | None,
    **permissions: Any,
) -> int:
    """
    Apply the plan and follow the runs.

    Shows the plan and asks for confirmation; with FILE, applies that saved plan. Changes that
    delete resources or end running work are blocked unless --allow-destroy or the environment's
    rules allow them. Ctrl-C leaves the rest of the plan and the runs to a background controller; a
    second apply follows them again.

    Follows the runs that it starts or changes, and the runs that --target or --replace names. If
    nothing differs and nothing is blocked, it follows every active run. It does not wait for
    other runs; the controller drives them. If a run that is still stopping blocks a change, apply
    waits until the run has stopped, then applies the change; with FILE or --detach the change stays
    blocked.

    With --detach, apply does not wait for runs: it makes the changes of the plan, tells the hosts
    that answer which jobs to stop, and ends. A background controller then drives the runs
    (`fleetform controller`). If another process manages the environment and needs longer than a
    minute, apply ends with the results so far and says so.

    An earlier apply that was interrupted is finished first: apply shows what is left of it. If the
    configuration declares one of these resources differently now, apply asks first.

    A saved plan was reviewed when it was made, so apply does not ask for confirmation. It is applied
    once, and only if the resources that it changes are as they were. Otherwise apply exits with 5 and
    lists the differences.
    """
    from fleetform.cli.apply_flow import Watching, carry_out, confirm, say_if_blocked
    from fleetform.cli.earlier_apply import plan_after_earlier
    from fleetform.plan.approval import following
    from fleetform.plan.exit import apply_code

    if detach and show_output:
        raise Refused(
            "--show-output does not go with --detach, which does not wait for output",
            advice="`fleetform logs --follow RUN` prints it",
        )
    watching = Watching(detach, show_output, json_into)
    if refresh_only and file is None:
        watched = {"detach": detach, "show_output": show_output, "json_into": json_into}
        resting = {"takeover": takeover, "for": for_ms, "reason": reason}
        refuse_with_refresh_only(permissions | watched | resting | {"refresh": refresh})
        return _accept_drift(open_to_write(path), yes=yes)
    workspace = open_to_write(path)
    again: Callable[[], Plan] | None = None
    if file is not None:
        _refuse_options(permissions | {"refresh": refresh, "refresh_only": refresh_only})
        # It was reviewed when it was made.
        yes = True
        take_over_first(workspace, takeover=takeover, for_ms=for_ms, reason=reason, yes=yes)
        plan = _read_plan(workspace, file)
        if _is_applied(workspace, plan, watching):
            return Exit.OK
    else:
        take_over_first(workspace, takeover=takeover, for_ms=for_ms, reason=reason, yes=yes)
        again = partial(_make_plan, workspace, permissions | {"refresh": refresh})
        plan = plan_after_earlier(workspace, again, yes=yes)
    follows = 0 if again is None or detach else following(plan)
    if (
        again is not None
        and _is_over(plan, follows, detach=detach)
        and _asks_silent(workspace, plan)
    ):
        plan = plan_after_earlier(workspace, again, yes=yes)
    if again is not None:
        from fleetform.app.preview import previewed

        plan = previewed(workspace, plan)
    show_plan(screen(), plan)
    if plan.annex.get("preview_failed"):
        from fleetform.app.preview import require_previewed

        require_previewed(plan, "nothing was applied", or_passes=True)
    if _is_over(plan, follows, detach=detach):
        say_if_blocked(plan)
        _leave_unchanged(workspace, plan, watching, kept=again is None)
        return apply_code(plan)
    confirm(plan, yes=yes, follows=follows)
    return carry_out(workspace, plan, watching, again=again, unasked=yes and again is not None)


def _refuse_options(options: Mapping[str, Any]) -> None:
    if flag := flag_given(options):
        raise Refused(
            f"{flag} does not go with a saved plan: its scope and permissions were set when it was made",
            advice=f"plan again with {flag} and --out",
        )


def _read_plan(workspace: Workspace, file: str) -> Plan:
    """Read a plan that `plan --out` kept, and see through what was entered before it."""
    from fleetform.app.saved import read_plan_file
    from fleetform.cli.earlier_apply import settle_earlier

    plan = read_plan_file(workspace, file)
    settle_earlier(workspace, yes=True)
    return plan


def _is_applied(workspace: Workspace, plan: Plan, watching: Watching) -> bool:
    """Tell whether a kept plan was carried out and still stands; refuse one that no longer does."""
    from fleetform.app.saved import require_standing
    from fleetform.cli.apply_flow import record_nothing

    before = require_standing(workspace, plan)
    if before is None:
        return False
    if not before.stands:
        raise Refused(
            before.sentence,
            advice="a plan is applied once; plan again, and apply the new plan",
            code=Exit.STALE,
        )
    record_nothing(watching.json_into, plan, Exit.OK)
    screen().line(f"Nothing to do: {before.sentence}.", "good")
    return True


def _is_over(plan: Plan, follows: int, *, detach: bool) -> bool:
    """Tell whether there is nothing to change and no run to wait for."""
    from fleetform.plan.wait_targets import waited_for

    # While it is recovering nothing can be entered, and it is unknown whether what it takes for
    # under way is.
    return plan.recovering or (plan.is_empty and not follows and (detach or not waited_for(plan)))


def _asks_silent(workspace: Workspace, plan: Plan) -> bool:
    """
    Ask the hosts again that did not answer; tells whether that was done.

    Where there is something to do, or a controller runs, they are asked anyway.
    """
    import asyncio

    from fleetform.app.returned_hosts import SECONDS, ask_again
    from fleetform.cli.arguments import who_asks
    from fleetform.cli.progress.plain import PlainProgress
    from fleetform.model.figures import counted

    absent = (
        *plan.annex.get("hosts_silent", {}).values(),
        *plan.annex.get("hosts_joining", {}).values(),
    )
    silent = sum(map(len, absent))
    if not silent or plan.recovering or plan.progressing or workspace.manager() is not None:
        return False
    out = error_screen()
    out.line(f"asking {counted(silent, 'host')} that did not answer, for up to {SECONDS}s", "dim")
    asking = ask_again(workspace, who=who_asks(), progress=PlainProgress(out))
    return asyncio.run(asking)


def _leave_unchanged(workspace: Workspace, plan: Plan, watching: Watching, *, kept: bool) -> None:
    """Note that there is nothing to change; runs at work get a controller where they lost theirs."""
    from fleetform.app.recorded_plans import keep_converged
    from fleetform.cli.apply_flow import record_nothing
    from fleetform.cli.arguments import who_asks
    from fleetform.cli.background import leave, say_left
    from fleetform.plan.exit import apply_code

    record_nothing(watching.json_into, plan, apply_code(plan))
    if not kept:
        # What a plan in a file says of the rest may be long over.
        keep_converged(workspace, plan, who=who_asks())
    if (watching.detach or plan.progressing) and not plan.recovering:
        say_left(workspace, leave(workspace))


def _make_plan(workspace: Workspace, options: dict[str, Any]) -> Plan:
    from fleetform.app.clock import SystemClock
    from fleetform.app.plan import make_plan

    loaded = load(workspace, keep_going=options["keep_going"])
    found = look_first(workspace) if options["refresh"] else None
    if found is not None:
        show_drift(screen(), found, quiet=True)
    plan = make_plan(
        workspace,
        loaded,
        permissions_of(options),
        scope_of(options),
        now_ms=SystemClock().now_ms(),
        live=None if found is None else found.live,
        notice=say_line,
    )
    print_plan_warnings(loaded, plan)
    return plan


def _accept_drift(workspace: Workspace, *, yes: bool) -> int:
    """Accept what was only observed; the rest stays as it is and is reported again."""
    from fleetform.app.observe import accept_drift
    from fleetform.cli.apply_flow import ask
    from fleetform.cli.arguments import who_asks
    from fleetform.model.drift import Remedy

    found = look_only(workspace)
    out = screen()
    show_drift(out, found)
    count = sum(one.remedy is Remedy.ACCEPT for one in found.live.drift)
    code = drift_code(found, detailed=False)
    if not count:
        return code
    out.line()
    ask(f"Accept drift of {counted(count, 'field')}? [y/N]", expected="yes", yes=yes, how="-y")
    accepted = accept_drift(workspace, found, who=who_asks())
    out.line(f"Accepted drift of {counted(len(accepted), 'field')}.", "good")
    return code
