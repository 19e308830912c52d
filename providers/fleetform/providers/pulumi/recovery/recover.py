"""
Recover a stack whose last change was cut off, or whose state is lost.

The stack is open, so its lock proves that no process of the engine lives. From here on the cloud
changes only by what it had begun itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from fleetform.providers.contract.errors import AnswerUnknown
from fleetform.providers.pulumi.engine.program import Program
from fleetform.providers.pulumi.engine.stack import Stack
from fleetform.providers.pulumi.engine.stack_settings import urn
from fleetform.providers.pulumi.recovery.existence import LISTED
from fleetform.providers.pulumi.recovery.inventory import IDENTITY_TAG, Existing, Inventory
from fleetform.providers.pulumi.recovery.pending import Settlement, settle, waits_for
from fleetform.providers.pulumi.recovery.rebuild import Rebuilt, providers_only, rebuild

__all__ = ["SETTLE_SECONDS", "adopt", "listed", "rebuild_state", "recover", "require_listed"]

SETTLE_SECONDS = LISTED.total_seconds()

LOOK_SECONDS = 5.0
"""Between two looks at the inventory while a pending create is not in it."""


async def recover(
    stack: Stack,
    program: Program,
    inventory: Inventory,
    *,
    settle_seconds: float = SETTLE_SECONDS,
    look_seconds: float = LOOK_SECONDS,
    waited_seconds: float = 0.0,
) -> Settlement | None:
    """
    Settle the pending operations of a stack; None: there are none.

    Args:
        stack: Open, and not changed since.
        program: As of the change that was cut off.
        inventory: Of the account and region of the stack.
        settle_seconds: For how long a create that the inventory does not show is waited for,
            before it counts as not done. One whose instance has ended already is not.
        look_seconds: Between two looks.
        waited_seconds: For how long it was waited before.
    """
    deployment = await stack.export_state()
    if not deployment.get("pending_operations"):
        return None
    deadline = asyncio.get_running_loop().time() + settle_seconds - waited_seconds
    existing = await inventory.existing()
    while (
        waits_for(deployment, [*existing, *await inventory.ended()])
        and asyncio.get_running_loop().time() < deadline
    ):
        await asyncio.sleep(look_seconds)
        existing = await inventory.existing()
    settlement = settle(deployment, existing)
    await stack.import_state(settlement.deployment)
    await stack.refresh(program)
    return settlement


async def listed(
    inventory: Inventory,
    uids: frozenset[str],
    *,
    settle_seconds: float = SETTLE_SECONDS,
    look_seconds: float = LOOK_SECONDS,
) -> Sequence[Existing]:
    """
    List everything, once all of these uids are there, have ended, or have been missing for long enough.

    A cloud lists new things late, so their absence counts only after `settle_seconds`.
    """
    deadline = asyncio.get_running_loop().time() + settle_seconds
    while True:
        found = await inventory.existing()
        missing = uids - _uids(found)
        if missing:
            missing -= _uids(await inventory.ended())
        if not missing or asyncio.get_running_loop().time() >= deadline:
            return found
        await asyncio.sleep(look_seconds)


async def require_listed(
    inventory: Inventory,
    hosts: Mapping[str, str],
    *,
    since: datetime,
    now: datetime,
    settle_seconds: float = SETTLE_SECONDS,
) -> None:
    """
    Make sure that all of these exist, have ended, or have been missing for long enough to be sure that they were not created.

    Args:
        inventory: Of the account and region.
        hosts: Names by uid.
        since: When no process lived any more that could have them created.
        now: As `since`, UTC.
        settle_seconds: A cloud lists new things late, so their absence counts only after so long.

    Raises:
        AnswerUnknown: Some of them may exist.
    """
    missing = hosts.keys() - _uids(await inventory.existing())
    if missing:
        missing -= _uids(await inventory.ended())
    until = since + timedelta(seconds=settle_seconds)
    if missing and now < until:
        names = ", ".join(sorted(hosts[uid] for uid in missing))
        raise AnswerUnknown(
            f"the call that creates {names} was cut off: waiting until {until:%Y-%m-%dT%H:%M:%SZ} for the cloud to"
            " list what it may have created",
            delay_seconds=LOOK_SECONDS,
        )


def _uids(things: Sequence[Existing]) -> frozenset[str]:
    return frozenset(one.tags.get(IDENTITY_TAG, "") for one in things)


async def adopt(stack: Stack, program: Program, existing: Sequence[Existing]) -> Rebuilt:
    """
    Add to the state what exists for the program and is missing in it.

    Raises:
        ProviderError: The providers of the program cannot be configured.
    """
    deployment = await stack.export_state()
    known = {one["urn"] for one in deployment.get("resources") or ()}
    providers = providers_only(program)
    if any(urn(stack.name, one.type, one.name) not in known for one in providers.resources):
        await stack.preview(providers)
        (await stack.up(providers)).require()
        deployment = await stack.export_state()
    rebuilt = rebuild(stack.name, deployment, program, existing)
    await stack.import_state(rebuilt.deployment)
    await stack.refresh(program)
    return rebuilt


async def rebuild_state(stack: Stack, program: Program, inventory: Inventory) -> Rebuilt:
    """
    Give a stack whose state is lost the state of what exists for its program.

    Raises:
        ProviderError: The providers of the program cannot be configured.
    """
    await stack.create()
    return await adopt(stack, program, await inventory.existing())
