"""
Hosts that no process creates, as people read them: the ledger alone would say that they are being created, or are not.

The creation of some was cut off: whether their instances exist is not known. The others were asked for, and no controller is running.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from fleetform.model.existence import cut_off_text
from fleetform.model.figures import counted
from fleetform.model.instance import InstanceState
from fleetform.model.overview import TroubledHost

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from fleetform.model.instance import Instance
    from fleetform.model.overview import Overview
    from fleetform.views.fleets import InstanceRow

__all__ = [
    "ASKED_LATER",
    "attention_text",
    "hosts_cut_off",
    "rows_cut_off",
    "status_cut_off",
    "status_left",
]

ASKED_LATER = "asked for by the next `fleetform apply` or `fleetform serve`"
"""What is said of a host that is to be created while no controller is running."""


def rows_cut_off(
    rows: Iterable[InstanceRow], cut_off: Mapping[str, int | None], *, now_ms: int
) -> tuple[InstanceRow, ...]:
    """Return the rows of `fleet show` with what is known of hosts whose creation was cut off, which `cut_off` has by uid."""
    return tuple(_row(one, cut_off, now_ms) if one.uid in cut_off else one for one in rows)


def _row(row: InstanceRow, cut_off: Mapping[str, int | None], now_ms: int) -> InstanceRow:
    is_leaving = row.state == InstanceState.TERMINATING
    return replace(
        row,
        state=row.state if is_leaving else InstanceState.PROVISIONING,
        message=cut_off_text(cut_off[row.uid], now_ms=now_ms, is_leaving=is_leaving),
    )


def hosts_cut_off(
    hosts: Iterable[Instance], cut_off: Mapping[str, int | None], *, now_ms: int
) -> tuple[Instance, ...]:
    """Return hosts with the same in their messages."""
    return tuple(
        replace(one, message=cut_off_text(cut_off[one.uid], now_ms=now_ms))
        if one.uid in cut_off and one.state is InstanceState.PROVISIONING
        else one
        for one in hosts
    )


def status_cut_off(
    found: Overview, cut_off: Mapping[str, int | None], *, now_ms: int
) -> tuple[Overview, tuple[TroubledHost, ...]]:
    """
    Split the hosts whose creation was cut off from an overview: they are none of its troubled hosts, and `provisioning`.

    Returns the overview without them, and these hosts by name.
    """
    hosts, mine = dict(found.hosts), [one for one in found.uncreated if one.uid in cut_off]
    for one in mine:
        hosts[one.state] -= 1
        hosts["provisioning"] = hosts.get("provisioning", 0) + 1
    names = {one.name for one in mine}
    troubled = tuple(one for one in found.troubled_hosts if one.name not in names)
    counts = {state: count for state, count in hosts.items() if count}
    return replace(found, hosts=counts, troubled_hosts=troubled), tuple(
        TroubledHost(one.name, "provisioning", cut_off_text(cut_off[one.uid], now_ms=now_ms), None)
        for one in mine
    )


def status_left(found: Overview, cut_off: Container[str]) -> Overview:
    """Return an overview of an environment without a controller, where hosts are created by the next one; `cut_off` has uids."""
    left = [
        one
        for one in found.uncreated
        if one.state == InstanceState.PROVISIONING and one.uid not in cut_off
    ]
    hosts = Counter(found.hosts)
    hosts.subtract({InstanceState.PROVISIONING.value: len(left)})
    hosts.update({InstanceState.UNCREATED.value: len(left)})
    troubled = (
        TroubledHost(one.name, InstanceState.UNCREATED.value, ASKED_LATER, None) for one in left
    )
    return replace(found, hosts=+hosts, troubled_hosts=(*troubled, *found.troubled_hosts))


def attention_text(hosts: Sequence[TroubledHost]) -> str:
    """Name the only host whose creation was cut off, or count them; empty without one."""
    if not hosts:
        return ""
    which = f"host {hosts[0].name}" if len(hosts) == 1 else counted(len(hosts), "host")
    return f"the creation of {which} was cut off"
