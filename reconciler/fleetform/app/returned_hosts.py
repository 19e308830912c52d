"""
Ask hosts again that did not answer, where no controller does.

The ledger then says what the last controller saw of them, and a host that has come back since would
be called unreachable for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.app.driving import manage_ends
from fleetform.model.instance import InstanceState

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
    return await manage_ends(workspace, _Answered(), who=who, command="apply", progress=progress)


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
