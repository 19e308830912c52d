"""`fleetform state`: the ledger itself, and how one that was lost is put together again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetform.cli.arguments import who_asks
from fleetform.cli.command import directory_option, group, json_option
from fleetform.cli.exit import Exit
from fleetform.cli.failure import Refused
from fleetform.cli.screen import screen
from fleetform.cli.tree import load, open_reader, open_to_write, open_workspace, print_warnings
from fleetform.model.figures import counted
from fleetform.views.moments import moment

if TYPE_CHECKING:
    from fleetform.app.rebuild import Rebuilt
    from fleetform.cli.screen import Screen

_EXAMPLES = (
    ("fleetform state backup lab.jsonl", "Back up the ledger into a file"),
    ("fleetform state restore lab.jsonl", "Replace the ledger with a backup"),
    (
        "fleetform state verify --hosts",
        "Check the ledger's integrity, and compare it with the hosts",
    ),
    ("fleetform state rebuild --dry-run", "Show what a rebuild would find, and change nothing"),
    ("fleetform state rebuild", "Rebuild a lost or restored ledger from its hosts"),
    (
        "fleetform state rebuild --dry-run --from-nothing",
        "Show how a rebuild from hosts alone would differ from the ledger",
    ),
    ("fleetform state rebuild --lost gpu-3", "Rebuild without a host that is lost for good"),
    ("fleetform state upgrade", "Upgrade the ledger of an earlier release, after a backup"),
)


@group("state", examples=_EXAMPLES)
def command() -> None:
    """
    Back up, restore, verify, upgrade or rebuild the ledger.

    The ledger is the record of what was applied. It is kept outside the configuration.
    """


@command.command("backup", examples=_EXAMPLES[:1])
@click.argument("file", type=click.Path(dir_okay=False))
@directory_option
@json_option
def backup(file: str, path: str | None, as_json: bool) -> None:
    """
    Back up the whole ledger to FILE.

    The backup is consistent, also if other commands write the ledger meanwhile. FILE has mode 0600, because it contains values of documents, such
    as `env`. Its format is the same for SQLite and PostgreSQL, so it can move a ledger from one to
    the other. Logs and files of runs are plain files next to the ledger and are not in the backup.
    """
    from fleetform.app.state import backup as write_backup

    head = write_backup(open_workspace(path), Path(file), who=who_asks())
    out = screen()
    if as_json:
        out.json(head)
        return
    rows = sum(head.rows.values())
    out.line(
        f"{file}: {counted(rows, 'row')} of ledger {head.ledger_id}, epoch {head.epoch}", "good"
    )
    out.line(f"sha256 {head.sha256}", "dim")


@command.command("restore", examples=_EXAMPLES[1:2])
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@directory_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def restore(file: str, path: str | None, yes: bool) -> int:
    """
    Replace the ledger with the backup FILE.

    The current ledger is backed up first. The restored ledger gets a new epoch and is recovering:
    nothing is started or removed until `fleetform state rebuild` has asked the hosts what happened
    since.
    """
    from fleetform.app.state import restore as put_back
    from fleetform.cli.apply_flow import ask
    from fleetform.cli.background import given_back

    workspace = open_to_write(path)
    name = workspace.environment.name
    question = (
        f"The ledger of {name} will be replaced. Type the environment's name, {name}, to continue:"
    )
    look = "the current ledger is backed up first:"
    ask(question, expected=name, yes=yes, how="-y to restore it", look=look)
    with given_back(workspace) as notice:
        done = put_back(workspace, Path(file), who=who_asks(), notice=notice)
    out = screen()
    out.line(
        f"restored: ledger {done.head.ledger_id} as of {moment(done.head.made_at_ms)}, now epoch"
        f" {done.epoch}",
        "good",
    )
    if done.kept:
        out.line(f"the previous ledger is kept in {done.kept}")
    out.line("It is recovering. Ask the hosts what happened since: `fleetform state rebuild`")
    return 0


@command.command("upgrade", examples=_EXAMPLES[7:8])
@directory_option
def upgrade(path: str | None) -> None:
    """
    Upgrade the ledger of an earlier release of fleetform.

    Writes a backup into the state folder first; `fleetform state restore` reads it. Every command
    that writes the ledger upgrades it in the same way, so this command is needed only to upgrade at
    a chosen time.
    """
    from fleetform.app.state import upgrade_if_older

    workspace = open_workspace(path)
    if (upgraded := upgrade_if_older(workspace, who=who_asks())) is None:
        open_reader(workspace)
        screen().line(
            "the ledger has the version of this release: there is nothing to upgrade", "dim"
        )
        return
    screen().line(f"upgraded from version {upgraded.before} to {upgraded.after}", "good")
    screen().line(f"the backup from before is {upgraded.backup}")


@command.command("verify", examples=_EXAMPLES[2:3])
@directory_option
@json_option
@click.option(
    "--hosts", is_flag=True, help="Compare with the hosts too; starts and changes nothing."
)
def verify(path: str | None, as_json: bool, hosts: bool) -> int:
    """
    Check the ledger's integrity: its file, its rows, documents and plans.

    Exits with 1 if it finds a problem; each finding says what to do.
    """
    from fleetform.app.state import verify as look

    found = look(open_workspace(path), hosts=hosts)
    out = screen()
    if as_json:
        out.json(found)
        return Exit.ERROR if found.flaws else Exit.OK
    for flaw in found.flaws:
        out.line(f"{out.toned('!', 'bad')} {flaw.what}  {out.toned(flaw.check, 'dim')}")
        out.line(f"  {flaw.cure}", "info")
    asked = (
        ""
        if found.hosts is None
        else f", and {counted(len(found.hosts), 'host')} {'agrees' if len(found.hosts) == 1 else 'agree'}"
    )
    if not found.flaws:
        out.line(f"The ledger is sound{asked}.", "good")
        return Exit.OK
    out.line()
    out.line(f"{counted(len(found.flaws), 'finding')}.", "bad")
    return Exit.ERROR


@command.command("rebuild", examples=_EXAMPLES[3:7])
@directory_option
@json_option
@click.option("--dry-run", "trial", is_flag=True, help="Show the result, and change nothing.")
@click.option(
    "--from-nothing",
    is_flag=True,
    help="With --dry-run: rebuild as if the ledger were lost, and compare the result with the ledger.",
)
@click.option(
    "--lost",
    multiple=True,
    metavar="HOST",
    help="Host that is lost for good; runs that only it knew become unknown.",
)
def rebuild(
    path: str | None, as_json: bool, trial: bool, from_nothing: bool, lost: tuple[str, ...]
) -> int:
    """
    Rebuild the ledger from the records of its hosts.

    For a ledger that was lost, or restored from an older copy: fleetform then refuses to start or
    remove anything. The hosts prove which runs have run; the configuration says what these runs
    are. A run without any proof becomes `unknown` and does not run again until you say so. The
    current ledger is backed up first, or moved aside if it cannot be read.
    """
    import asyncio

    from fleetform.app.rebuild import rebuild as rebuild_ledger
    from fleetform.cli.background import given_back

    if from_nothing and not trial:
        raise Refused(
            "--from-nothing changes nothing and needs --dry-run", advice="pass --dry-run too"
        )
    workspace = open_workspace(path) if trial else open_to_write(path)
    loaded = load(workspace, keep_going=True)
    print_warnings(loaded)
    desired = loaded.desired
    assert desired is not None, "a configuration that cannot be read is refused before"
    with given_back(workspace) as notice:
        result = asyncio.run(
            rebuild_ledger(
                workspace,
                desired,
                who=who_asks(),
                lost=lost,
                trial=trial,
                notice=notice,
                from_nothing=from_nothing,
            )
        )
    out = screen()
    if as_json:
        out.json(
            {
                "needed": result.needed,
                "epoch": result.epoch,
                "found": result.found,
                "differs": result.differs,
                "kept": result.kept,
            }
        )
    else:
        _show(out, result, trial=trial)
        if from_nothing:
            _show_proof(out, result)
    return 0


def _show_proof(out: Screen, result: Rebuilt) -> None:
    """Say what a ledger that was lost now would not be found again as it is."""
    from fleetform.views.resources import differences_table

    out.line()
    if not result.differs:
        out.line("A rebuild would find the whole ledger again.", "good")
        return
    out.table(differences_table(result.differs))
    out.line()
    out.line(f"A rebuild would differ in {counted(len(result.differs), 'resource')}.", "warn")


def _show(out: Screen, result: Rebuilt, *, trial: bool) -> None:
    from fleetform.views.resources import recovered_table

    if result.kept:
        out.line(f"the previous ledger is kept in {result.kept}", "dim")
    if not result.found:
        out.line("no host has this environment's uid: there is nothing to rebuild from", "dim")
        return
    out.table(recovered_table(result.found))
    out.line()
    runs = [row for row in result.found if row.kind == "run"]
    unknown = sum(row.state == "unknown" for row in runs)
    summary = counted(len(runs), "run")
    if unknown:
        summary = f"{summary}, {unknown} of them unknown"
    if trial:
        needed = "" if result.needed else "; the ledger knows all that its hosts know"
        out.line(f"Nothing was changed. A rebuild would find {summary}{needed}.")
        return
    out.line(f"Rebuilt: {summary}, epoch {result.epoch}. Show the next changes: `fleetform plan`")
