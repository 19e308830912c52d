"""`fleetform fleet`: capacity, what is in use of it, and whether its hosts would work."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from fleetform.cli.arguments import who_asks
from fleetform.cli.command import directory_option, group, json_option
from fleetform.cli.exit import Exit
from fleetform.cli.failure import Refused
from fleetform.cli.progress.status_line import status_line
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.selection import refuse_host, unknown
from fleetform.cli.tree import (
    load,
    maybe_reader,
    open_reader,
    open_to_write,
    open_workspace,
    or_default,
    print_warnings,
)
from fleetform.model.figures import counted
from fleetform.spec.desired import ResourceKey

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.instance import Instance
    from fleetform.model.live import Live
    from fleetform.model.scheduler_state import SchedulerState
    from fleetform.views.fleets import InstanceRow

_EXAMPLES = (
    ("fleetform fleet list", "List the fleets and their use"),
    ("fleetform fleet show local", "Show one fleet with its instances"),
    ("fleetform fleet hosts", "List the hosts of all fleets, and who uses them"),
    ("fleetform fleet hosts gpus --format json", "List the hosts of one fleet for a script"),
    ("fleetform fleet adopt i-0f1e2d3c4b5a69788", "Adopt an unknown instance of a cloud"),
    ("fleetform fleet terminate i-0f1e2d3c4b5a69788", "Terminate an unknown instance of a cloud"),
    (
        "fleetform fleet retry gpus",
        "Ask again for offers that a cloud refused, once a quota is raised",
    ),
    ("fleetform fleet check", "Check the hosts of all declared fleets, before or after an apply"),
)


@group("fleet", examples=_EXAMPLES)
def command() -> None:
    """List the applied fleets and their hosts, show one fleet, or check the hosts of declared ones."""


@command.command("list", examples=_EXAMPLES[:1])
@directory_option
@json_option
def list_fleets(path: str | None, as_json: bool) -> None:
    """List the fleets: ready hosts, jobs, and use of CPUs, memory and GPUs."""
    from fleetform.views.fleets import fleet_rows, fleets_table

    workspace = open_workspace(or_default(path))
    reader = open_reader(workspace)
    live = reader.read_live()
    rows = fleet_rows(live, reader.read_book().allocations, reader.read_overview().hourly)
    screen().rows(rows, fleets_table, none="no fleets", as_json=as_json)
    if not as_json:
        _say_age(workspace, live.instances)


@command.command("show", examples=_EXAMPLES[1:2])
@click.argument("name")
@directory_option
@json_option
def show_fleet(name: str, path: str | None, as_json: bool) -> None:
    """Show the fleet NAME with its instances, the runs that use each, and the offers that its cloud refused."""
    from fleetform.app.clock import SystemClock
    from fleetform.views.fleets import cloud_table, fleet_rows, fleets_table, instances_table
    from fleetform.views.offers import tried_offer_rows, tried_offers_table
    from fleetform.views.rollouts import rollout_text

    workspace = open_workspace(or_default(path))
    reader = open_reader(workspace)
    live, book = reader.read_live(), reader.read_book()
    fleets = fleet_rows(live, book.allocations, reader.read_overview().hourly)
    found = [row for row in fleets if row.name == name]
    if not found:
        refuse_host(live.instances, name)
        raise unknown("fleet", name, [row.name for row in fleets])
    hosts = tuple(one for one in _host_rows(workspace, live, book) if one.fleet == name)
    out = screen()
    offers = tried_offer_rows(reader.read_offers(name))
    if as_json:
        more = {"offers": offers} if offers else {}
        out.json({"fleet": found[0], "instances": hosts, **more})
        return
    out.table(fleets_table(found))
    if hosts:
        out.line()
        out.table(instances_table(hosts, now_ms=SystemClock().now_ms()))
        _say_age(workspace, [one for one in live.instances if one.fleet == name])
    if any(one.cloud is not None for one in hosts):
        out.line()
        out.table(cloud_table(hosts))
    if found[0].rollout is not None:
        out.line()
        out.line(rollout_text(name, found[0].rollout))
    if found[0].newer_image:
        out.line()
        out.line(
            f"newer image: {found[0].newer_image}; another number for `image_renewal` of the fleet takes it"
        )
    if any(one.problem for one in offers):
        out.line()
        out.table(tried_offers_table(offers, now_ms=SystemClock().now_ms()))


@command.command("hosts", examples=_EXAMPLES[2:4])
@click.argument("names", metavar="[FLEET]...", nargs=-1)
@directory_option
@json_option
def list_hosts(names: tuple[str, ...], path: str | None, as_json: bool) -> None:
    """
    List the hosts of all fleets: their GPUs, and the runs and other processes that use them.

    With the names of fleets, list the hosts of these.
    """
    from fleetform.app.clock import SystemClock
    from fleetform.views.fleets import fleet_rows, instances_table

    workspace = open_workspace(or_default(path))
    reader = open_reader(workspace)
    live, book = reader.read_live(), reader.read_book()
    fleets = [row.name for row in fleet_rows(live)]
    for name in names:
        if name not in fleets:
            refuse_host(live.instances, name)
            raise unknown("fleet", name, fleets)
    rows = [one for one in _host_rows(workspace, live, book) if one.fleet in names or not names]
    table = functools.partial(instances_table, now_ms=SystemClock().now_ms())
    screen().rows(rows, table, none="no hosts", as_json=as_json)
    if not as_json:
        _say_age(workspace, [one for one in live.instances if one.fleet in names or not names])


def _say_age(workspace: Workspace, instances: Sequence[Instance]) -> None:
    """Say how old the states of hosts may be where no controller hears from them."""
    from fleetform.app.clock import SystemClock
    from fleetform.app.controllers import find_controller
    from fleetform.views.environments import outdated_hosts

    note = outdated_hosts(instances, SystemClock().now_ms())
    if note and find_controller(workspace) is None:
        screen().flush()
        error_screen().labelled("note", note)


def _host_rows(workspace: Workspace, live: Live, book: SchedulerState) -> tuple[InstanceRow, ...]:
    from fleetform.app.clock import SystemClock
    from fleetform.app.controllers import find_controller
    from fleetform.app.cut_off import read_cut_off, uncreated
    from fleetform.views.cut_off import rows_cut_off
    from fleetform.views.fleets import instance_rows

    run_names = {str(uid): run.name for uid, run in book.runs.items()}
    is_controlled = (
        not any(one.is_missing for one in live.instances) or find_controller(workspace) is not None
    )
    rows = instance_rows(
        live.instances, book.allocations, run_names, live.overrides, is_controlled=is_controlled
    )
    cut_off = read_cut_off(workspace, uncreated(live.instances))
    return rows_cut_off(rows, cut_off, now_ms=SystemClock().now_ms())


@command.command(
    "check",
    examples=_EXAMPLES[7:],
    codes=(
        (Exit.ERROR, "A host would not work."),
        (Exit.OK, "All hosts work, or have warnings only."),
    ),
)
@click.argument("names", metavar="[FLEET]...", nargs=-1)
@directory_option
@json_option
def check_fleets(names: tuple[str, ...], path: str | None, as_json: bool) -> int:
    """
    Check the hosts of declared fleets: how they are reached, and what is missing there.

    Signs in to each host as the controller does and only reads, so a fleet need not be applied. A
    warning is a limit that jobs may meet; an error keeps jobs from running on the host.
    """
    import asyncio

    from fleetform.app.host_check import check_hosts, questions_of
    from fleetform.app.ledger import host_checker
    from fleetform.views.host_check import check_report, render

    workspace = open_workspace(or_default(path))
    desired = load(workspace, keep_going=True).desired
    assert desired is not None, "loading has refused it"
    declared = {key.name: one for key, one in desired.resources.items() if key.kind == "fleet"}
    for name in names:
        if ResourceKey("fleet", name) in desired.broken:
            raise Refused(
                f"the document of fleet {name} is invalid",
                advice="correct it first: `fleetform validate` shows what is wrong",
            )
        if name not in declared:
            raise unknown("fleet", name, declared)
    reader = maybe_reader(workspace)
    instances = reader.read_live().instances if reader is not None else ()
    questions = questions_of((declared[name] for name in names or declared), instances)
    uid = workspace.environment.uid
    checking = f"checking {counted(len(questions), 'host')}"
    with status_line(checking) as show:
        results = asyncio.run(
            check_hosts(
                questions,
                host_checker(workspace),
                uid,
                lambda done: show(f"{checking}: {done} answered"),
            )
        )
    found = check_report(results)
    out = screen()
    if as_json:
        out.json(found)
    else:
        out.lines(render(found))
    return Exit.ERROR if found.error else Exit.OK


@command.command("adopt", examples=_EXAMPLES[4:5])
@click.argument("ids", metavar="INSTANCE...", nargs=-1, required=True)
@directory_option
@json_option
def adopt_instances(ids: tuple[str, ...], path: str | None, as_json: bool) -> None:
    """
    Adopt instances of clouds that have the tag of the environment and are not in the ledger.

    `fleetform drift` lists them by their ids. Each becomes a host of the fleet that its tags name, in a place that `nodes`
    leaves free, with the jobs that run there; nothing is created or ended. To an older copy of the ledger all newer instances
    are unknown: `fleetform state rebuild` adopts all of them.
    """
    import asyncio

    from fleetform.app.adoption import adopt_instances as adopt
    from fleetform.cli.background import given_back
    from fleetform.views.resources import recovered_table

    workspace = open_to_write(path)
    loaded = load(workspace, keep_going=True)
    print_warnings(loaded)
    assert loaded.desired is not None, "a configuration that cannot be read is refused before"
    with given_back(workspace) as notice:
        found = asyncio.run(adopt(workspace, loaded.desired, ids, who=who_asks(), notice=notice))
    screen().rows(found, recovered_table, none="nothing was adopted", as_json=as_json)


@command.command("retry", examples=_EXAMPLES[6:7])
@click.argument("name")
@directory_option
def retry_fleet(name: str, path: str | None) -> None:
    """
    Ask again for the offers that the cloud of the fleet NAME has refused.

    A refused offer is not asked for again for 10 minutes; this ends that, for example after a quota was raised. A
    controller creates the hosts that the fleet lacks. The events of the fleet say who asked.
    """
    from fleetform.app.offers import retry_offers
    from fleetform.cli.background import leave, say_left
    from fleetform.views.fleets import fleet_rows
    from fleetform.views.offers import asked_again_text

    workspace = open_to_write(or_default(path))
    live = open_reader(workspace).read_live()
    if name not in (names := [row.name for row in fleet_rows(live)]):
        refuse_host(live.instances, name)
        raise unknown("fleet", name, names)
    missing = [one for one in live.instances if one.fleet == name and one.is_missing]
    refused = retry_offers(workspace, name, who=who_asks())
    screen().line(asked_again_text(name, refused, hosts=len(missing)))
    say_left(workspace, controller := leave(workspace))
    if missing and controller is None:
        error_screen().labelled("help", "no controller is running; `fleetform apply` asks for them")


@command.command("terminate", examples=_EXAMPLES[5:6])
@click.argument("ids", metavar="INSTANCE...", nargs=-1, required=True)
@directory_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def terminate_instances(ids: tuple[str, ...], path: str | None, yes: bool) -> None:
    """
    Terminate instances of clouds that have the tag of the environment and are not in the ledger.

    `fleetform drift` lists them by their ids. An instance that the ledger has is deleted by fewer
    `nodes` of its fleet. Before you terminate an instance, make sure that the ledger is the newest one:
    to an older copy all newer instances are unknown, and jobs may run there.
    """
    import asyncio

    from fleetform.app.cloud_instances import choose, list_unknown, terminate
    from fleetform.app.ledger import host_provider
    from fleetform.app.unknown_instances import forget_unknown
    from fleetform.cli.apply_flow import ask
    from fleetform.providers.contract.errors import ProviderError

    workspace = open_workspace(path)
    live = open_reader(workspace).read_live()
    hosts = host_provider(workspace)
    chosen = choose(ids, *asyncio.run(list_unknown(live, hosts)))
    names = ", ".join(f"{one.endpoint['id']} ({one.name})" for one in chosen)
    question = f"{names} will be terminated, with what runs there. Type yes to continue:"
    ask(
        question,
        expected="yes",
        yes=yes,
        how="-y to terminate them",
        look="look at them in the cloud;",
    )
    try:
        asyncio.run(terminate(hosts, chosen, lambda said: error_screen().line(said, "dim")))
    except ProviderError as problem:
        raise Refused(str(problem), advice=getattr(problem, "advice", "")) from problem
    screen().line(f"terminated: {names}", "good")
    if why := forget_unknown(workspace, {str(one.endpoint["id"]) for one in chosen}):
        error_screen().labelled("warning", f"the ledger still lists them as drift: {why}")
