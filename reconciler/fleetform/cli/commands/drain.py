"""`fleetform drain`: have hosts get no more work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fleetform.cli.arguments import REASON
from fleetform.cli.command import command as make_command
from fleetform.cli.editing import EditOptions, edit_options, finish, open_editor
from fleetform.cli.failure import Refused

if TYPE_CHECKING:
    from fleetform.app.locate import Source

_EXAMPLES = (
    ("fleetform drain local --reason 'New disks'", "Drain all hosts of a fleet"),
    ("fleetform drain local/local-1 --reason 'Fan 3 is loud'", "Drain one host"),
    ("fleetform drain gpus --reason 'New driver' --apply -y", "Drain all hosts of a fleet at once"),
)


@make_command("drain", examples=_EXAMPLES)
@click.argument("addresses", nargs=-1, required=True, metavar="FLEET[/HOST]...")
@click.option(
    "--reason",
    required=True,
    type=REASON,
    metavar="TEXT",
    help="Reason; runs that wait for these hosts show it.",
)
@edit_options
def command(addresses: tuple[str, ...], reason: str, **typed: Any) -> int:
    """
    Drain hosts: running jobs finish, no new ones start.

    Writes `drain` into the document of each FLEET, for all its hosts or for one HOST. `fleetform
    fleet show FLEET` shows what still runs there. `fleetform undrain` removes the drain.
    """
    options = EditOptions.of(typed)
    workspace, editor = open_editor(options)
    wanted = [FleetHost.parse(address) for address in addresses]
    for one in wanted:
        source = editor.find(one.fleet, kinds=("fleet",))
        host = one.name_in(source)
        editor.set(source, ("drain",), drained(editor.said(source, "drain"), host, reason))
    names = ", ".join(map(str, wanted))
    return finish(workspace, editor, options, message=f"drain {names}: {reason}")


# What `drain` of a fleet says before and after one more host is drained, or one less.


class FleetHost(NamedTuple):
    """`local` or `local/local-1` as typed; an empty host stands for all."""

    fleet: str
    host: str

    @classmethod
    def parse(cls, typed: str) -> FleetHost:
        fleet, _, host = typed.removeprefix("fleet/").partition("/")
        if not fleet or "/" in host:
            raise Refused(f"`{typed}` names no fleet", advice="write FLEET, or FLEET/HOST")
        return cls(fleet, host)

    def name_in(self, source: Source) -> str:
        """The host's whole name: a number alone is that of a host of this fleet."""
        if self.host.isascii() and self.host.isdigit() and "ssh_config" not in source.value:
            return f"{source.key.name}-{int(self.host)}"
        return self.host

    def __str__(self) -> str:
        return f"fleet/{self.fleet}/{self.host}" if self.host else f"fleet/{self.fleet}"


def drained(said: Any, host: str, reason: str) -> Any:
    """
    `drain` with a host more; an empty host means all, in the place of what was said of single ones.

    Hosts with one reason share an entry, and a single entry stands without a list.
    """
    if not host:
        return {"reason": reason}
    entries = _without(_entries(said), host)
    whole = next((entry for entry in entries if "hosts" not in entry), None)
    if whole is not None:
        raise Refused(
            f"the whole fleet is drained already: {whole['reason']}",
            advice="`fleetform undrain` it first, to drain single hosts",
        )
    for entry in entries:
        if entry["reason"] == reason:
            entry["hosts"] = sorted([*entry["hosts"], host])
            return _as_written(entries)
    return _as_written([*entries, {"reason": reason, "hosts": [host]}])


def undrained(said: Any, host: str, address: str) -> Any:
    """`drain` with a host less, an empty one for all; None: nothing is left of it."""
    entries = _entries(said)
    if not host:
        return None
    if any("hosts" not in entry for entry in entries):
        raise Refused(
            f"the whole fleet is drained, and {address} with it",
            advice=f"`fleetform undrain {address.removeprefix('fleet/').partition('/')[0]}`, "
            "then drain single hosts",
        )
    return _as_written(_without(entries, host))


def names_host(said: Any, host: str) -> bool:
    """Tell whether `drain` names a host."""
    return any(host in entry.get("hosts", ()) for entry in _entries(said))


def _entries(said: Any) -> list[dict[str, Any]]:
    """What is said in any of its spellings, as entries with lists of hosts."""
    listed = said if isinstance(said, list) else [] if said is None else [said]
    entries: list[dict[str, Any]] = [
        {"reason": one} if isinstance(one, str) else dict(one) for one in listed
    ]
    for entry in entries:
        if isinstance(entry.get("hosts"), str):
            entry["hosts"] = [entry["hosts"]]
    return entries


def _without(entries: list[dict[str, Any]], host: str) -> list[dict[str, Any]]:
    kept = [
        {**entry, "hosts": [name for name in entry["hosts"] if name != host]}
        if "hosts" in entry
        else entry
        for entry in entries
    ]
    return [entry for entry in kept if entry.get("hosts") != []]


def _as_written(entries: list[dict[str, Any]]) -> Any:
    if not entries:
        return None
    return entries[0] if len(entries) == 1 else entries
