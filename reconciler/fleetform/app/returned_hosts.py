"""
Ask hosts again that did not answer, where no controller does.

The ledger then says what the last controller saw of them, and a host that has come back since would
be called unreachable for ever.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.app.driving import build_manager, under
from fleetform.app.ledger import host_provider, open_for_writing, refuse_if_outgrown
from fleetform.app.managing import try_manage
from fleetform.model.instance import InstanceState
from fleetform.store.gate import WriterGate

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.controllers.manager import Manager
    from fleetform.model.ports import Progress

SECONDS = 5
"""How long they are waited for: a host that answers does so within a second or two."""


async def ask_again(workspace: Workspace, *, who: str, progress: Progress) -> bool:
    """
    Have the ledger say which of the hosts that did not answer do so now; nothing starts meanwhile.

    Returns:
        Whether they were asked; False where another process manages the environment.

    Raises:
        LedgerProblem: The ledger cannot be used.
        RecoveringProblem: Hosts remember another one.
    """
    with contextlib.closing(open_for_writing(workspace)) as ledger:
        manager_lease = try_manage(workspace, who=who, command="apply")
        if manager_lease is None:
            return False
        with manager_lease, contextlib.closing(WriterGate()) as gate:
            hosts = host_provider(workspace)
            await refuse_if_outgrown(ledger, hosts)
            manager = build_manager(
                workspace,
                ledger,
                gate,
                hosts,
                manager_lease,
                who=who,
                progress=progress,
                ends_only=True,
            )
            await under(manager_lease, manager.run(_Answered()))
    return True


_ABSENT = frozenset(
    {InstanceState.PROVISIONING, InstanceState.RECOVERING, InstanceState.UNREACHABLE}
)


class _Answered:
    """Tells whether all hosts have answered, or have been waited for."""

    def __init__(self) -> None:
        self._until_ms = SystemClock().boot_ms() + SECONDS * 1000

    def __call__(self, manager: Manager) -> bool:
        assert manager.runs is not None
        silent = [one for one in manager.runs.mirror.instances if one.state in _ABSENT]
        return not silent or SystemClock().boot_ms() >= self._until_ms
