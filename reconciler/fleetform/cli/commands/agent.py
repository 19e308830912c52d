"""`fleetform agent`: what runs on this machine for an environment, and what the machine has."""

from __future__ import annotations

from fleetform.cli.command import directory_option, group, json_option
from fleetform.cli.screen import screen
from fleetform.cli.tree import open_workspace, or_default

_EXAMPLES = (
    ("fleetform agent list", "List the agents on this machine, and whether they answer"),
    ("fleetform agent probe", "Show the hardware of this machine"),
)


@group("agent", examples=_EXAMPLES)
def command() -> None:
    """
    List the agents of this environment, or show the hardware of this machine.

    An agent is the program that starts, watches and stops jobs on a host. fleetform starts it when
    there is work; it ends by itself when there has been none for some time.
    """


@command.command("list", examples=_EXAMPLES[:1])
@directory_option
@json_option
def list_agents(path: str | None, as_json: bool) -> None:
    """
    List the agents that have this environment's uid.

    The command searches this machine and not the ledger, so it also lists an agent whose ledger was
    lost. `fleetform fleet check` shows the agents of hosts over SSH.
    """
    import asyncio

    from fleetform.app.ledger import host_provider
    from fleetform.views.fleets import agent_rows, agents_table

    workspace = open_workspace(or_default(path))
    seen = asyncio.run(host_provider(workspace).inventory(workspace.environment.uid))
    none = "no agent on this machine has this environment's uid"
    screen().rows(agent_rows(seen), agents_table, none=none, as_json=as_json)


@command.command("probe", examples=_EXAMPLES[1:])
@json_option
def probe(as_json: bool) -> None:
    """
    Show the hardware of this machine as an agent reports it.

    A fleet with `local: true` has this hardware; if it has several nodes, it divides the hardware
    equally.
    """
    from fleetform.agents.host import gpus, host_report
    from fleetform.model.figures import cpus, size

    report = host_report.report("/", (), gpus.detect())
    out = screen()
    if as_json:
        out.json(report)
        return
    out.line(f"host    {report.hostname}, kernel {report.kernel}, Python {report.python}")
    out.line(f"CPU     {cpus(report.cpu_millicores)}, load {report.load_1m_milli / 1000:.2f}")
    out.line(f"memory  {size(report.memory_bytes)}, {size(report.memory_free_bytes)} free")
    out.line(f"disk    {size(report.disk_bytes)}, {size(report.disk_free_bytes)} free")
    for each in report.gpus:
        out.line(f"GPU {each.index}   {each.name}, {size(each.memory_bytes)}, {each.uuid}")
    if not report.gpus:
        out.line("GPU     none", "dim")
