"""`fleetform why`: every reason at once, with figures."""

from __future__ import annotations

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import json_option, tree_option
from fleetform.cli.names import complete_runs, one_run
from fleetform.cli.screen import screen
from fleetform.cli.tree import open_reader, open_workspace
from fleetform.cli.words import NOT_DRIVEN
from fleetform.model.run import FINAL

_EXAMPLES = (
    ("fleetform why train", "Say what it waits for, or how it ended"),
    ("fleetform why 'sweep[lr=0.1]' --json", "Say it as JSON"),
)


@make_command("why", examples=_EXAMPLES)
@click.argument("run", shell_complete=complete_runs)
@tree_option
@json_option
def command(run: str, path: str | None, as_json: bool) -> None:
    """
    Say why RUN is in the state it is in.

    A run that waits gives all of its reasons at once, with what is needed and what is free; one
    that has ended says how, attempt by attempt.
    """
    from fleetform.api.waiting import waiting_reasons
    from fleetform.spec.desired import ResourceKey
    from fleetform.views.at_work import at_work_lines
    from fleetform.views.runs import run_detail
    from fleetform.views.why import explain, why_lines
    from fleetform.wiring.clock import SystemClock
    from fleetform.wiring.controllers import find_controller

    workspace = open_workspace(path)
    reader = open_reader(workspace)
    history = one_run(reader, run)
    now_ms = SystemClock().now_ms()
    book = reader.read_book()
    reasons = waiting_reasons(book, now_ms=now_ms).get(history.run.uid, ())
    detail = run_detail(history, instances=book.instances, waiting=reasons, now_ms=now_ms)
    events = reader.read_resource_events(ResourceKey("run", history.run.name))
    at_work = at_work_lines(history.run, book, events, now_ms=now_ms)
    why = explain(detail, at_work=at_work, now_ms=now_ms)
    out = screen()
    if as_json:
        out.json(why)
        return
    waits = history.run.state not in FINAL and find_controller(workspace) is None
    for line in why_lines(why):
        label, colon, rest = line.partition("help: ")
        if label or not colon:
            out.line(line)
        else:
            out.labelled("help", rest)
    if waits:
        out.labelled("help", NOT_DRIVEN)
