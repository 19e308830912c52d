"""
Recover a stack whose last change was cut off, or whose state is lost.

The stack is open, so its lock proves that no process of the engine lives. From here on the cloud
changes only by what it had begun itself.
"""

from __future__ import annotations

import asyncio

from fleetform.providers.pulumi.engine.program import Program
from fleetform.providers.pulumi.engine.stack import Stack
from fleetform.providers.pulumi.recovery.inventory import Inventory
from fleetform.providers.pulumi.recovery.pending import Settlement, settle, waits_for
from fleetform.providers.pulumi.recovery.rebuild import Rebuilt, providers_only, rebuild

__all__ = ["SETTLE_SECONDS", "rebuild_state", "recover"]

SETTLE_SECONDS = 600.0
"""For how long a new thing may be missing in an inventory: EC2 is eventually consistent."""

LOOK_SECONDS = 5.0
"""Between two looks at the inventory while a pending create is not in it."""


async def recover(
    stack: Stack,
    program: Program,
    inventory: Inventory,
    *,
    settle_seconds: float = SETTLE_SECONDS,
    look_seconds: float = LOOK_SECONDS,
) -> Settlement | None:
    """
    Settle the pending operations of a stack; None: there are none.

    Args:
        stack: Open, and not changed since.
        program: As of the change that was cut off.
        inventory: Of the account and region of the stack.
        settle_seconds: For how long a create that the inventory does not show is waited for,
            before it counts as not done.
        look_seconds: Between two looks.
    """
    deployment = await stack.export_state()
    if not deployment.get("pending_operations"):
        return None
    deadline = asyncio.get_running_loop().time() + settle_seconds
    existing = await inventory.existing()
    while waits_for(deployment, existing) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(look_seconds)
        existing = await inventory.existing()
    settlement = settle(deployment, existing)
    await stack.import_state(settlement.deployment)
    await stack.refresh(program)
    return settlement


async def rebuild_state(stack: Stack, program: Program, inventory: Inventory) -> Rebuilt:
    """
    Give a stack whose state is lost the state of what exists for its program.

    Raises:
        ProviderError: The providers of the program cannot be configured.
    """
    await stack.create()
    providers = providers_only(program)
    await stack.preview(providers)
    (await stack.up(providers)).require()
    rebuilt = rebuild(stack.name, await stack.export_state(), program, await inventory.existing())
    await stack.import_state(rebuilt.deployment)
    await stack.refresh(program)
    return rebuilt
