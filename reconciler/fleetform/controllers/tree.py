"""
Keeps the environment as its tree says: looks, plans, and hands the plan to the manager.

Level-triggered: every look compares the tree as it is with the world as it is; what changed
since the last look only decides how soon. A tree that cannot be read, or whose
`environment.yaml` is broken, changes nothing: what was applied last stays in force.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fleetform.model.plan import Plan
from fleetform.model.ports import LedgerUnavailable, PolicyRefused, Progress, StalePlan
from fleetform.spec.dataclass import dataclass

LOOK_SECONDS = 0.5
"""How late an edit is seen; a look is one `stat` a file."""

RESYNC_SECONDS = 30.0
"""A look at everything although no file changed: runs end, and what waited for them may go on."""

STAYS = "what was applied last stays in force"

RETRY_SECONDS = 1.0
"""After a plan that went stale between planning and acceptance."""


class NotNow(Exception):
    """A plan cannot be entered as things are; the message is one sentence for people."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and the sentences to show with it; `plan` None: the tree cannot be planned."""

    plan: Plan | None
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """How the tree looks; with a `problem` it cannot be read now, and nothing follows from it."""

    content: object
    problem: str = ""


@dataclass(frozen=True, slots=True)
class TreeKeeper:
    """
    The loop of `serve`.

    `look` names the tree's present content cheaply, or says why it cannot be read; `make_plan`
    loads and plans it; `accept` enters a plan or raises `NotNow`. All three are given by `wiring`.
    """

    look: Callable[[], Look]
    make_plan: Callable[[], Awaitable[Planned]]
    accept: Callable[[Plan], Awaitable[None]]
    progress: Progress
    resync_seconds: float = RESYNC_SECONDS

    async def keep(self) -> None:
        """Run until cancelled."""
        seen: object = None
        told: tuple[str, ...] = ()
        next_look = 0.0
        loop = asyncio.get_running_loop()
        while True:
            look = self.look()
            if look.problem:
                told = self._tell(told, (look.problem, STAYS))
                seen = None
            elif look.content != seen or loop.time() >= next_look:
                planned = await self.make_plan()
                obstacle = await self._reconcile(planned.plan)
                told = self._tell(told, (*planned.notices, *obstacle))
                seen = None if obstacle else look.content
                next_look = loop.time() + self.resync_seconds
            await asyncio.sleep(LOOK_SECONDS if seen is not None else RETRY_SECONDS)

    def _tell(self, told: tuple[str, ...], notices: tuple[str, ...]) -> tuple[str, ...]:
        """Show sentences once, however often they stay true."""
        if notices != told:
            for notice in notices:
                self.progress.notice(notice)
        return notices

    async def _reconcile(self, plan: Plan | None) -> tuple[str, ...]:
        """Enter a plan; returns why it could not be, and nothing where all is well."""
        if plan is None or plan.is_empty:
            return ()
        try:
            await self.accept(plan)
        except StalePlan as stale:
            return (f"planning again, because something moved: {stale}",)
        except PolicyRefused as refused:
            return (f"not applied: {refused}",)
        except (NotNow, LedgerUnavailable) as problem:
            return (f"planning again in a moment: {problem}",)
        return ()
