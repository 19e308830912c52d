"""`fleetform why`: every reason at once, with figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, json_option
from fleetform.cli.failure import Refused
from fleetform.cli.screen import screen
from fleetform.cli.selection import complete_runs, refuse_host, select_runs, unknown
from fleetform.cli.tree import not_driven, open_reader, open_workspace, or_default
from fleetform.model.run_state import FINAL, RunState

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.ports import Reader
    from fleetform.views.why import Why, WhyElement

_EXAMPLES = (
    ("fleetform why train", "Show what a run waits for, or how it ended"),
    ("fleetform why sweep", "Show all elements; elements with the same reasons are grouped"),
    ("fleetform why 'sweep[lr=0.1]' --format json", "Print the reasons as JSON"),
    ("fleetform why volume/data", "Show the drift of a volume or a fleet"),
)


@make_command("why", examples=_EXAMPLES)
@click.argument("resource", shell_complete=complete_runs)
@directory_option
@json_option
def command(resource: str, path: str | None, as_json: bool) -> None:
    """
    Show why RESOURCE is in its state: a run, `fleet/NAME` or `volume/NAME`.

    A run that waits shows all of its reasons at once, with what it needs and what is free. A run
    that has ended shows how, attempt by attempt. A fleet or volume shows how its last change
    failed, what its hosts wait for, and its drift: what differs from what was applied.
    """
    from fleetform.app.controllers import find_controller
    from fleetform.views.why import Why, why_elements_lines, why_lines

    workspace = open_workspace(or_default(path))
    found = _why(workspace, open_reader(workspace), resource)
    out = screen()
    answers = [found] if isinstance(found, Why) else [one.why for one in found]
    if as_json:
        out.json(found if isinstance(found, Why) else answers)
        return
    waits = any(_is_driven(one) for one in answers) and find_controller(workspace) is None
    for line in why_lines(found) if isinstance(found, Why) else why_elements_lines(found):
        label, colon, rest = line.partition("help: ")
        if label or not colon:
            out.line(line)
        else:
            out.labelled("help", rest)
    if waits:
        out.labelled("help", not_driven(workspace))


_OPEN = frozenset(RunState) - FINAL

_HOSTS_TO_COME = frozenset({"capacity", "provisioning"})


def _is_driven(why: Why) -> bool:
    """Tell whether a controller brings it further: a run that is not over, or hosts that are to come."""
    return why.state in _OPEN or any(one.code in _HOSTS_TO_COME for one in why.reasons)


def _why(workspace: Workspace, reader: Reader, resource: str) -> Why | tuple[WhyElement, ...]:
    """Answer for one resource, or for each run that an address means."""
    from fleetform.app.clock import SystemClock
    from fleetform.app.why import why_absent, why_resource, why_runs
    from fleetform.spec.desired import ResourceKey

    now_ms = SystemClock().now_ms()
    kind, _, name = resource.partition("/")
    if kind in _KINDS:
        key = ResourceKey(kind, name)
        if (why := why_resource(workspace, reader, key, now_ms=now_ms)) is not None:
            return why
        known = [str(one) for one in reader.read_live().resources if one.kind == kind]
        raise unknown(kind, resource, known)
    name = resource.removeprefix("run/")
    try:
        histories = select_runs(reader, [name])
    except Refused:
        # Blocked since it was declared, it is in no row yet.
        if (why := why_absent(reader, ResourceKey("run", name))) is None:
            refuse_host(reader.read_live().instances, name)
            raise
        return why
    answers = why_runs(reader, histories, now_ms=now_ms)
    return answers if len(answers) > 1 else answers[0].why


_KINDS = frozenset({"fleet", "volume"})
"""What looks at the actual state report on; whatever else is named is a run."""
