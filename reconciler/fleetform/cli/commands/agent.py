"""`fleetform agent`: what runs on this machine for an environment, and what the machine has."""

from __future__ import annotations

from fleetform.cli.command import group
from fleetform.cli.directory import directory_option
from fleetform.cli.output_format import json_option
from fleetform.cli.screen import screen
from fleetform.cli.tree import open_workspace

_EXAMPLES = (
    ("fleetform agent list", "List this environment's agents and whether they answer"),
    ("fleetform agent probe", "Show the hardware that a detected fleet would have"),
)


@group("agent", examples=_EXAMPLES)
def command() -> None:
    """
    Look at agents.

    An agent is the program that starts, watches and ends jobs on a host. It is started when
    there is work and ends itself when there is none for a while.
    """


@command.command("list", examples=_EXAMPLES[:1])
@directory_option
@json_option
def list_agents(path: str | None, as_json: bool) -> None:
    """
    List the agents that bear the environment's uid.

    They are found on the machine and not in the ledger, so that an agent whose ledger was lost
    is listed as well.
    """
    import asyncio

    from fleetform.views.agents import agent_rows, agents_table
    from fleetform.wiring.opening import host_provider

    workspace = open_workspace(path)
    seen = asyncio.run(host_provider(workspace).inventory(workspace.environment.uid))
    rows = agent_rows(seen)
    out = screen()
    if as_json:
        out.json(rows)
        return
    if not rows:
        out.line("no agent bears this environment's uid on this machine", "dim")
        return
    out.table(agents_table(rows))


@command.command("probe", examples=_EXAMPLES[1:])
@json_option
def probe(as_json: bool) -> None:
    """
    Show the hardware of this machine as an agent reports it.

    This is what a fleet with `local: true` has; a fleet with several nodes divides it equally.
    """
    from fleetform.agents.host.probes import gpu, host
    from fleetform.model.figures import cpus, size

    report = host.report("/", (), gpu.detect())
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
