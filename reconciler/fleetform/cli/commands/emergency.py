"""`fleetform emergency`: override the configuration for a limited time."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.arguments import DURATION, REASON, who_asks
from fleetform.cli.command import directory_option, group, json_option, several_options
from fleetform.cli.failure import Refused, bad_address
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.selection import complete_runs, read_live, say_of_each, unknown
from fleetform.cli.tree import (
    maybe_reader,
    open_reader,
    open_workspace,
    or_default,
    upgrade_first,
)
from fleetform.model.figures import counted
from fleetform.model.override import OverrideKind

if TYPE_CHECKING:
    from fleetform.app.edit import Editor
    from fleetform.app.emergency import PausedJobs
    from fleetform.app.workspace import Workspace
    from fleetform.model.override import PutInForce
    from fleetform.spec.desired import ResourceKey

_STOP = (
    (
        "fleetform emergency stop train --reason 'loss is nan'",
        "End a run now, whatever its document says",
    ),
    ("fleetform emergency stop 'sweep[lr=0.1]' --reason hangs", "End one element of a sweep"),
    ("fleetform emergency stop 'run/*' --reason 'cooling failed' --for 12h", "End all runs"),
)
_DRAIN = (
    ("fleetform emergency drain gpu --reason 'fan noise'", "Start no new jobs on a fleet"),
    ("fleetform emergency drain gpu/gpu-3 --reason 'ecc errors'", "Start no new jobs on one host"),
)
_PAUSE = (
    (
        "fleetform emergency pause --reason 'disk nearly full' --for 30m",
        "Start no job for 30 minutes",
    ),
)
_FREEZE = (
    ("fleetform emergency freeze --reason audit --for 2d", "Block every apply for two days"),
)
_THAW = (
    (
        "fleetform emergency thaw --reason 'bad quota, see #412' --for 20m",
        "Suspend the freeze windows for 20 minutes",
    ),
)
_LIFT = (
    ("fleetform emergency lift 3", "End override 3"),
    ("fleetform emergency lift all", "End all overrides in force"),
)
_LIST = (
    ("fleetform emergency list", "List the overrides in force"),
    ("fleetform emergency list --all", "List ended overrides too"),
)

DEFAULT_MS = 4 * 3_600_000
"""Half a working day: long enough to find out, short enough that what is forgotten ends by itself."""

LONGEST_MS = 30 * 86_400_000
"""An override for longer is a change of the configuration, with a review."""


@group("emergency", examples=(_STOP[0], _DRAIN[0], _PAUSE[0], _FREEZE[0], _LIFT[0], _LIST[0]))
def command() -> None:
    """
    Override the configuration for a limited time.

    An override takes effect immediately, and needs a reason. `plan`, `ps`, `apply` and `serve` show the overrides in force. When an override expires,
    everything continues without another command.

    The controller quarantines broken hosts: `list` shows a quarantine, and `lift` ends it.
    """


_put_options = several_options(
    directory_option,
    click.option(
        "--reason",
        required=True,
        type=REASON,
        metavar="TEXT",
        help="Reason; commands show it while the override is in force.",
    ),
    click.option(
        "--for",
        "duration_ms",
        type=DURATION,
        help="How long the override is in force.  [default: 4h]",
    ),
    click.option("--until", metavar="MOMENT", help="When the override ends: `2026-12-24T18:00Z`."),
)


@command.command("stop", examples=_STOP)
@click.argument("targets", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_runs)
@_put_options
def stop(targets: tuple[str, ...], **typed: Any) -> None:
    """
    End each RUN that is active, and keep it from starting again.

    A run that waits keeps waiting, and starts when the override ends. A run that was ended stays
    ended: `fleetform rerun` runs it again. Works without `serve` too.
    """
    paused = _paused_jobs()
    workspace = _opened(typed["path"], paused)
    wanted = run_targets(workspace, targets)
    put = _put(workspace, OverrideKind.STOP, wanted, typed)
    paused.resume(but=put.ending)
    say_of_each(screen(), put.ending, "is asked to stop")
    _say_protected(workspace, put)
    say_permanent_stop(workspace, put)
    if put.ending:
        _drive(workspace, put.ending, paused)


@command.command("drain", examples=_DRAIN)
@click.argument("targets", nargs=-1, required=True, metavar="FLEET[/HOST]...")
@_put_options
def drain(targets: tuple[str, ...], **typed: Any) -> None:
    """
    Drain each FLEET, or one HOST of it: running jobs finish, no new ones start.

    Write `FLEET` or `FLEET/HOST`, as for `fleetform drain`, or `fleet/NAME` and `host/NAME`.
    """
    workspace = _opened(typed["path"])
    wanted = place_targets(workspace, targets)
    put = _put(workspace, OverrideKind.DRAIN, wanted, typed)
    say_permanent_drain(workspace, put)
    _warn_without_controller(workspace)


@command.command("pause", examples=_PAUSE)
@_put_options
def pause(**typed: Any) -> None:
    """Pause all starts: no new job starts; running jobs continue, and plans are applied."""
    workspace = _opened(typed["path"])
    _put(workspace, OverrideKind.PAUSE, (), typed)
    _warn_without_controller(workspace)


@command.command("freeze", examples=_FREEZE)
@_put_options
def freeze(**typed: Any) -> None:
    """
    Block every apply.

    Applies that were accepted before continue, and their runs start. Plans show all their changes
    as blocked; applying a plan that was made before is refused.
    """
    workspace = _opened(typed["path"])
    put = _put(workspace, OverrideKind.FREEZE, (), typed)
    _say_entered(workspace)
    say_permanent_freeze(put)


@command.command("thaw", examples=_THAW)
@_put_options
def thaw(**typed: Any) -> None:
    """
    Suspend the freeze windows of the environment: plans are applied during them.

    All other rules stay in force. Use it to correct a wrong window: an open window also
    blocks the commit that removes it.
    """
    workspace = _opened(typed["path"])
    _put(workspace, OverrideKind.THAW, (), typed)


@command.command("lift", examples=_LIFT)
@click.argument("numbers", nargs=-1, required=True, metavar="NUMBER...|all")
@directory_option
def lift_them(numbers: tuple[str, ...], path: str | None) -> None:
    """End overrides by NUMBER; the work that they blocked continues."""
    from fleetform.app.emergency import lift
    from fleetform.views.lines import printable

    workspace = _opened(path)
    open_reader(workspace).close()
    lifted = lift(workspace, _numbers(numbers), who=who_asks())
    for one in lifted:
        screen().line(f"lifted {one.number}: {printable(one.sentence)}")
    missing = (
        []
        if "all" in numbers
        else [number for number in numbers if int(number) not in {one.number for one in lifted}]
    )
    if missing:
        raise Refused(
            f"no override with number {', '.join(missing)} is in force",
            advice="`fleetform emergency list` lists them",
        )
    if not lifted:
        screen().line("no override is in force", "dim")


@command.command("list", examples=_LIST)
@click.option("--all", "every", is_flag=True, help="List lifted and expired overrides too.")
@directory_option
@json_option
def list_them(every: bool, path: str | None, as_json: bool) -> None:
    """List the overrides in force, newest first, with target, expiry, user and reason."""
    from fleetform.app.clock import SystemClock
    from fleetform.views.overrides import override_rows, overrides_table

    workspace = open_workspace(or_default(path))
    reader = maybe_reader(workspace)
    past = () if reader is None else reader.read_past_overrides(limit=None)
    rows = [
        row
        for row in override_rows(past, now_ms=SystemClock().now_ms())
        if every or row.state == "in force"
    ]
    none = "no override was ever in force" if every else "no override is in force"
    screen().rows(rows, overrides_table, none=none, as_json=as_json)
    if any((row.kind, row.state) == (OverrideKind.FREEZE.value, "in force") for row in rows):
        _say_entered(workspace)


# -- what the verbs share --------------------------------------------------------------------


def _paused_jobs() -> PausedJobs:
    """Return no paused jobs; what is paused goes on at the latest when the command ends."""
    from fleetform.app.emergency import PausedJobs

    paused = PausedJobs()
    click.get_current_context().call_on_close(paused.close)
    return paused


def _opened(path: str | None, paused: PausedJobs | None = None) -> Workspace:
    """Find the environment, and see to it that its ledger can be written on a full disk too."""
    from fleetform.app.emergency import make_room

    workspace = open_workspace(path)
    if make_room(workspace, paused or _paused_jobs()):
        error_screen().line(
            "the disk of the state folder is full; the override uses reserved space, and"
            " jobs of this machine pause while it is written: free some space",
            "warn",
        )
    upgrade_first(workspace)
    return workspace


def _put(
    workspace: Workspace, kind: OverrideKind, targets: Sequence[str], typed: dict[str, Any]
) -> PutInForce:
    from fleetform.app.clock import SystemClock
    from fleetform.app.emergency import put_in_force
    from fleetform.views.overrides import in_force

    reason = typed["reason"]
    if not reason:
        raise Refused(
            "--reason is empty", advice="give a reason: commands show it while work is blocked"
        )
    until_ms = _until_ms(typed["duration_ms"], typed["until"], SystemClock().now_ms())
    put = put_in_force(workspace, kind, targets, reason=reason, who=who_asks(), until_ms=until_ms)
    for one in put.overrides:
        screen().line(f"{one.number}: {in_force(one)}", "bold")
    return put


def _until_ms(duration_ms: int | None, until: str | None, now_ms: int) -> int:
    from fleetform.spec.quantities.duration import parse_moment

    if duration_ms is not None and until is not None:
        raise Refused("--for and --until exclude each other")
    until_ms = now_ms + (DEFAULT_MS if duration_ms is None else duration_ms)
    if until is not None:
        try:
            until_ms = parse_moment(until) * 1000
        except ValueError as error:
            raise Refused(str(error)) from error
    if until_ms <= now_ms:
        raise Refused("the override would end before it starts", advice="give a later end")
    if until_ms - now_ms > LONGEST_MS:
        raise Refused(
            "an override lasts 30 days at most",
            advice="for a longer time, change the configuration",
        )
    return until_ms


def _numbers(typed: Sequence[str]) -> list[int] | None:
    if "all" in typed:
        return None
    wrong = [one for one in typed if not one.isdecimal()]
    if wrong:
        raise Refused(
            f"`{wrong[0]}` is not the number of an override",
            advice="`fleetform emergency list` shows the numbers; `all` lifts all",
        )
    return [int(one) for one in typed]


def _say_protected(workspace: Workspace, put: PutInForce) -> None:
    resources = open_reader(workspace).read_live().resources
    names = [key.name for key, row in resources.items() if row.protected and key.name in put.ending]
    say_of_each(error_screen(), names, "is protected, and is ended anyway")


def _drive(workspace: Workspace, names: Sequence[str], paused: PausedJobs) -> None:
    """End the runs from here, unless a controller begins to."""
    import asyncio

    from fleetform.app.emergency import drive_ends
    from fleetform.cli.progress.plain import PlainProgress

    out = error_screen()
    if workspace.manager() is None:
        out.line("no controller is running: this command ends them itself", "dim")

    async def drive() -> None:
        progress = PlainProgress(screen())
        await asyncio.gather(
            drive_ends(workspace, names, who=who_asks(), progress=progress),
            paused.resume_when_signalled(),
        )

    try:
        asyncio.run(drive())
    except KeyboardInterrupt:
        out.line("the override is in force: the next controller ends them", "warn")


def _say_entered(workspace: Workspace) -> None:
    """Name each apply that a freeze came too late for: its steps are carried out still."""
    from fleetform.app.lock import show_lock

    for one in show_lock(workspace).waiting:
        steps = f", {counted(one.open_steps, 'step')} left" if one.open_steps else ""
        error_screen().line(
            f"an apply of {one.who} (plan {one.plan[:12]}) was accepted before and"
            f" continues{steps}: `fleetform lock show` has more",
            "warn",
        )


def _warn_without_controller(workspace: Workspace) -> None:
    if workspace.manager() is None:
        error_screen().labelled(
            "help",
            "no controller is running, so nothing starts now anyway; the override applies to the"
            " next controller",
        )


# What an override is about, as people type it, and the commit that would make it permanent.
#
# An unknown address is refused with a near one: the user of this command is in a hurry, and
# must not find out an hour later that nothing was stopped.

_DIFFS_MAX = 5
"""Documents whose edit is shown: as many as a person in a hurry still reads."""


# -- targets ---------------------------------------------------------------------------------


def run_targets(workspace: Workspace, typed: Sequence[str]) -> tuple[str, ...]:
    """
    Return addresses of runs, `run/train`, each of which means something that there is.

    Raises:
        Refused: One does not. A pattern is taken as it is: what it means may come.
    """
    from fleetform.model.selection import Selection, address_problem

    targets = tuple(dict.fromkeys(one if "/" in one else f"run/{one}" for one in typed))
    known: dict[ResourceKey, str] | None = None
    for target in targets:
        if problem := address_problem(target):
            raise bad_address(problem, advice="write a run's name, or `run/*` for all of them")
        if not target.startswith("run/"):
            raise Refused(
                f"`{target}` is not a run, and only runs can be stopped",
                advice="`fleetform emergency drain` keeps work off fleets and hosts",
            )
        if "*" in target:
            continue
        known = _known_runs(workspace) if known is None else known
        selection = Selection([target])
        if not any(selection.selects(key, parent) for key, parent in known.items()):
            names = {name for key, parent in known.items() for name in (key.name, parent) if name}
            raise unknown("run", target.removeprefix("run/"), names)
    return targets


def _known_runs(workspace: Workspace) -> dict[ResourceKey, str]:
    """Return the runs of the ledger and of the configuration, each with its sweep; invalid documents have none."""
    live = read_live(workspace)
    rows = {} if live is None else live.resources
    known = {key: row.parent for key, row in rows.items() if key.kind == "run"}
    desired = workspace.load().desired
    if desired is not None:
        known.update(
            (key, one.parent) for key, one in desired.resources.items() if key.kind == "run"
        )
    return known


def place_targets(workspace: Workspace, typed: Sequence[str]) -> tuple[str, ...]:
    """
    Return addresses of fleets and hosts, `fleet/gpu`, `host/gpu-3`, each of something there is.

    Raises:
        Refused: One is not, or a bare name is a fleet's and a host's.
    """
    known = _known_places(workspace)
    if not known:
        raise Refused(
            "there is no host to drain: nothing has been applied yet",
            advice="`fleetform plan` shows what would be created",
        )
    return tuple(dict.fromkeys(_place(one, known) for one in typed))


def _known_places(workspace: Workspace) -> dict[str, str]:
    """Return the name of each fleet and host in commands that edit the configuration: `host/gpu-3` is `gpu/gpu-3` to them."""
    live = read_live(workspace)
    if live is None:
        return {}
    fleets = {f"fleet/{key.name}": key.name for key in live.resources if key.kind == "fleet"}
    return fleets | {f"host/{one.name}": f"{one.fleet}/{one.name}" for one in live.instances}


def _place(typed: str, known: Mapping[str, str]) -> str:
    if typed.partition("/")[0] in {"fleet", "host"} and "/" in typed:
        patterns = [typed]
    elif "/" in typed:
        patterns = [f"host/{typed.partition('/')[2]}"]
    else:
        patterns = [f"fleet/{typed}", f"host/{typed}"]
    found = [one for one in patterns if any(fnmatchcase(place, one) for place in known)]
    if len(found) > 1:
        raise Refused(
            f"`{typed}` is a fleet and a host", advice=f"write `{found[0]}` or `{found[1]}`"
        )
    if not found:
        raise unknown("fleet or host", typed, known.values())
    return found[0]


# -- the commit that makes it permanent --------------------------------------------------------


def say_permanent_stop(workspace: Workspace, put: PutInForce) -> None:
    """Show the edit of the configuration that says the same as the override."""
    names = [one.target.removeprefix("run/") for one in put.overrides]

    typed = f"fleetform stop {' '.join(map(shlex.quote, names))}"
    if any("*" in name for name in names):
        # A pattern may mean a hundred documents, and their edits are not read now.
        _say_end(put, f"`{typed} --commit` makes it permanent;")
        return

    def edit(editor: Editor) -> None:
        from fleetform.cli.selection import ask_for_stop, find_runs

        for run in find_runs(editor, None, names[:_DIFFS_MAX]):
            ask_for_stop(editor, run.source, run.element)

    _say_permanent(workspace, put, typed, edit)


def say_permanent_drain(workspace: Workspace, put: PutInForce) -> None:
    """Show the edit of the configuration that drains these."""
    from fleetform.cli.commands.drain import FleetHost, drained

    known = _known_places(workspace)
    addresses = [known[one.target] for one in put.overrides if one.target in known]
    if not addresses:
        _say_end(put, "to drain them in the configuration, name each fleet or host;")
        return
    reason = put.overrides[0].reason

    def edit(editor: Editor) -> None:
        for address in addresses[:_DIFFS_MAX]:
            wanted = FleetHost.parse(address)
            source = editor.find(wanted.fleet, kinds=("fleet",))
            said = drained(editor.said(source, "drain"), wanted.name_in(source), reason)
            editor.set(source, ("drain",), said)

    typed = f"fleetform drain {' '.join(addresses)} --reason {shlex.quote(reason)}"
    _say_permanent(workspace, put, typed, edit)


def _say_permanent(
    workspace: Workspace, put: PutInForce, typed: str, edit: Callable[[Editor], None]
) -> None:
    """Show what an edit would change, without writing it, and the command that writes it."""
    from fleetform.app.edit import Editor
    from fleetform.app.problems import Problem
    from fleetform.cli.editing import show_diff

    try:
        editor = Editor(workspace)
        edit(editor)
        edits = editor.finish()
    except (Problem, Refused) as problem:
        # The override holds; a tree with errors must not make that look otherwise.
        _say_end(put, f"the edit that makes it permanent cannot be made now: {problem.message};")
        return
    show_diff(workspace, edits)
    _say_end(put, f"`{typed} --commit` makes it permanent, as shown above;")


def say_permanent_freeze(put: PutInForce) -> None:
    """A window of the environment's rules says the same, with a review."""
    from fleetform.views.moments import moment

    (one,) = put.overrides
    assert one.until_ms is not None, "every override of the command has an end"
    reason = one.reason.replace('"', "'")
    _say_end(
        put,
        "to make it permanent, write into `rules:` of environment.yaml"
        f' `freeze: [{{from: "{moment(one.since_ms)}", to: "{moment(one.until_ms)}",'
        f' reason: "{reason}"}}]`;',
    )


def _say_end(put: PutInForce, sentence: str) -> None:
    numbers = " ".join(str(one.number) for one in put.overrides)
    error_screen().labelled(
        "help",
        f"{sentence} the override ends by itself, sooner with `fleetform emergency lift {numbers}`",
    )
