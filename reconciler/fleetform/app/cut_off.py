"""
Finds hosts of clouds whose creation was cut off: their instances may exist, and the ledger does not know them.

The process that asked a cloud has ended, or has lost the answer. What was asked for is in the provider's records, so no cloud is asked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.app.controllers import find_controller
from fleetform.app.ledger import host_provider
from fleetform.model.instance import CLOUDS
from fleetform.providers.contract.hosts import AnswerRecords

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fleetform.app.workspace import Workspace
    from fleetform.model.instance import Instance
    from fleetform.providers.contract.hosts import HostProvider

__all__ = ["cut_off_hosts", "read_cut_off", "uncreated"]


def uncreated(instances: Sequence[Instance]) -> tuple[str, ...]:
    """Return the uids of hosts of clouds that have no instance in the ledger."""
    return tuple(one.uid for one in instances if one.is_bought and not one.is_created)


def read_cut_off(workspace: Workspace, uids: Collection[str]) -> Mapping[str, int | None]:
    """
    Read which of these hosts have a creation that was cut off; see `cut_off_hosts`.

    Args:
        workspace: The environment.
        uids: Of hosts that have no instance in the ledger.

    Raises:
        LedgerUnavailable: The ledger does not answer now.
        LedgerProblem: It cannot be used.
    """
    if not uids:
        return {}
    is_controlled = find_controller(workspace) is not None
    return cut_off_hosts(host_provider(workspace), uids, is_controlled=is_controlled)


def cut_off_hosts(
    hosts: HostProvider, uids: Collection[str], *, is_controlled: bool
) -> Mapping[str, int | None]:
    """
    Return until when it may be unknown whether the instances of these hosts exist, by uid.

    Unix milliseconds; None: that time has not begun. While a controller still waits for the answer to its call, the creation is
    not cut off.
    """
    if not isinstance(hosts, AnswerRecords):
        return {}
    asked = {uid: until for cloud in CLOUDS for uid, until in hosts.unanswered(cloud).items()}
    return {
        uid: asked[uid]
        for uid in uids
        if uid in asked and not (is_controlled and asked[uid] is None)
    }
