"""`fleetform logs`: what a run printed, now or as it prints it."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option
from fleetform.cli.failure import Refused
from fleetform.cli.logs import ControllerNotice
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.selection import Reread, complete_runs, one_run, select_runs, some
from fleetform.cli.tree import not_driven, open_reader, open_workspace, or_default
from fleetform.model.run_state import FINAL, RunState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetform.cli.screen import Screen
    from fleetform.model.ports import Reader, RunHistory
    from fleetform.model.run import Attempt

_EXAMPLES = (
    ("fleetform logs train", "Print the output of the latest attempt"),
    ("fleetform logs train -f --tail 20", "Follow the output, from the last 20 lines"),
    ("fleetform logs 'sweep[lr=0.1]'", "Print the output of one element"),
    ("fleetform logs sweep -f", "Follow all elements of a sweep"),
    (
        "fleetform logs train --attempt 1 --rank 0",
        "Print the output of one rank of an earlier attempt",
    ),
    (
        "fleetform logs train --execution 1",
        "Print the output of the first execution, before re-runs",
    ),
)


@make_command("logs", examples=_EXAMPLES)
@click.argument("run", shell_complete=complete_runs)
@directory_option
@click.option("-f", "--follow", is_flag=True, help="Follow the output until the run is over.")
@click.option(
    "--attempt", type=click.IntRange(min=1), help="Number of the attempt.  [default: latest]"
)
@click.option(
    "--execution",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of the execution: 1 is the first, and each re-run adds one.  [default: latest]",
)
@click.option("--rank", type=click.IntRange(min=0), help="Number of the rank.  [default: all]")
@click.option(
    "--tail", type=click.IntRange(min=0), metavar="N", help="Print only the last N lines."
)
def command(
    run: str,
    path: str | None,
    follow: bool,
    attempt: int | None,
    execution: int | None,
    rank: int | None,
    tail: int | None,
) -> None:
    """
    Print the output of RUN: standard output and standard error, in order of arrival.

    RUN is a name, an element, or a pattern: `sweep`, `arr[3-7]`, `train*`. With several runs, each
    line begins with its element or run, and --tail counts for each. If a run has several ranks,
    each line names its rank.

    A retry is another attempt of the same execution. A re-run is a new execution, with attempts of
    its own. The output of all of them is kept.
    """
    from fleetform.app.controllers import find_controller
    from fleetform.cli import logs as log_output

    if follow and attempt is not None:
        raise Refused(
            "--follow and --attempt exclude each other: only the latest attempt can be followed"
        )
    if follow and execution is not None:
        raise Refused(
            "--follow and --execution exclude each other: only the latest execution can be followed"
        )
    workspace = open_workspace(or_default(path))
    reader = open_reader(workspace)
    store = workspace.logs()
    histories = select_runs(reader, [run])
    if execution is not None:
        _require_one(run, histories, "--execution")
        histories = [_execution(reader, histories[0].run.name, execution)]
    history = histories[0]
    out = sys.stdout.buffer
    notices = error_screen()
    if len(histories) > 1:
        if attempt is not None:
            _require_one(run, histories, "--attempt")
        prefixes = log_output.Prefixes(histories, screen())
        if follow:
            pieces = log_output.follow_all(
                Reread(reader, lambda: select_runs(reader, [run])),
                store,
                prefixes,
                rank=rank,
                tail=tail,
                sleep=ControllerNotice(workspace, notices),
            )
        else:
            pieces = log_output.print_all(histories, store, prefixes, rank=rank, tail=tail)
    elif follow:
        pieces = log_output.follow(
            lambda: one_run(reader, history.run.name),
            store,
            rank=rank,
            tail=tail,
            notice=lambda text: notices.line(text, "note"),
            sleep=ControllerNotice(workspace, notices),
        )
    else:
        chosen = _attempt(history, attempt)
        _check_rank(chosen, rank)
        pieces = log_output.whole(store, chosen, rank, tail)
    printed = False
    for piece in pieces:
        if piece:
            printed = True
            out.write(piece)
            out.flush()
    if len(histories) == 1:
        _say_of(history, notices, printed=printed)
        if not printed and not follow and attempt is None:
            _say_of_earlier(history, notices)
    is_over = all(one.run.state in FINAL for one in histories)
    if not follow and not is_over and find_controller(workspace) is None:
        error_screen().labelled("help", not_driven(workspace))


def _say_of(history: RunHistory, notices: Screen, *, printed: bool) -> None:
    """Say what explains that there is no output, or unexpected output."""
    run = history.run
    if not printed and run.started_at_ms is None and run.state is not RunState.RUNNING:
        notices.line(
            f"{run.name} has not started; `fleetform why {shlex.quote(run.name)}` says why", "note"
        )
    if history.archived:
        notices.line(
            f"{run.name} is archived: the configuration does not declare it any more", "note"
        )


def _say_of_earlier(history: RunHistory, notices: Screen) -> None:
    """Name the attempt before one that waits for a host: the output that a person looks for is mostly there."""
    *earlier, latest = history.attempts
    if not earlier or latest.started_at_ms is not None or history.run.state in FINAL:
        return
    before, name = earlier[-1].number, shlex.quote(history.run.name)
    notices.line(
        f"attempt {latest.number} has not started; `fleetform logs {name} --attempt {before}` prints the"
        f" output of attempt {before}",
        "note",
    )


def _require_one(run: str, histories: Sequence[RunHistory], option: str) -> None:
    if len(histories) > 1:
        raise Refused(
            f"`{run}` means {len(histories)} runs, and {option} needs one run",
            advice=f"name one of them: {some([one.run.name for one in histories])}",
        )


def _execution(reader: Reader, name: str, number: int) -> RunHistory:
    """Find one execution of a run; they are in the order of their submission."""
    found = [one for one in reader.read_runs([name], earlier=True) if one.run.name == name]
    if number > len(found):
        known = "is execution 1" if len(found) == 1 else f"are executions 1 to {len(found)}"
        raise Refused(f"`{name}` has no execution {number}", advice=f"there {known}")
    return found[number - 1]


def _attempt(history: RunHistory, number: int | None) -> Attempt:
    name = history.run.name
    if not history.attempts:
        raise Refused(
            f"`{name}` has no attempt yet: it is {history.run.state}",
            advice=f"`fleetform why {name}` shows why it waits",
        )
    if number is None:
        return history.attempts[-1]
    found = next((each for each in history.attempts if each.number == number), None)
    if found is None:
        raise Refused(
            f"`{name}` has no attempt {number}",
            advice=f"its attempts are 1 to {history.attempts[-1].number}",
        )
    return found


def _check_rank(attempt: Attempt, rank: int | None) -> None:
    ranks = [job.key.rank for job in attempt.jobs]
    if rank is not None and rank not in ranks:
        raise Refused(f"there is no rank {rank}", advice=f"the ranks are 0 to {len(ranks) - 1}")
