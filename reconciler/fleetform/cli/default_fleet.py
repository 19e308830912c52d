"""The fleet of the default environment: `submit` applies it without a review, for nothing else is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.cli.apply_flow import plan_after_earlier
from fleetform.cli.background import leave_quietly
from fleetform.cli.failure import Refused
from fleetform.cli.interrupts import Interrupts
from fleetform.cli.progress.plain import PlainProgress
from fleetform.cli.scoped import plan_scoped
from fleetform.cli.screen import error_screen
from fleetform.cli.who import who_asks

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace

_FASTER_MAX = 5
"""How often another first `submit` may be faster before that is an error."""


def apply_default_fleet(workspace: Workspace) -> None:
    """
    Create this machine's fleet in the default environment; nothing where another process has.

    Raises:
        StalePlan: Others were faster again and again.
        Refused: The fleet could not be created.
    """
    from fleetform.app.applying import apply_plan
    from fleetform.app.default_environment import FLEET
    from fleetform.model.plan import Scope
    from fleetform.model.refusals import StalePlan

    scope = Scope(targets=(f"fleet/{FLEET}",))
    for turn in range(_FASTER_MAX):
        plan = plan_after_earlier(workspace, lambda: plan_scoped(workspace, scope, keep_going=True))
        if plan.is_empty:
            return
        progress = PlainProgress(error_screen())
        with Interrupts() as interrupts:
            try:
                result = interrupts.run(
                    apply_plan(workspace, plan, who=who_asks(), detach=True, progress=progress)
                )
            except StalePlan:
                if turn == _FASTER_MAX - 1:
                    raise
                continue
            finally:
                interrupts.shield(lambda: leave_quietly(workspace))
        if result.failed_steps:
            raise Refused(
                f"the fleet {FLEET} of the default environment could not be created",
                advice=f"`fleetform apply -C {workspace.root}` shows the plan, and tries again",
            )
        return
