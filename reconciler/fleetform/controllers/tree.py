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
"""How late an edit is seen while people edit; a look is one `stat` a file."""

QUIET_LOOK_SECONDS = 2.0
"""How late when nothing has changed for `QUIET_SECONDS`: thousands of files are thousands of looks."""

QUIET_SECONDS = 60.0
"""Longer than somebody thinks between two edits."""

RESYNC_SECONDS = 30.0
"""A look at everything although no file changed: runs end, and what waited for them may go on."""

STAYS = "what was applied last stays in force"

RETRY_SECONDS = 1.0
"""After a plan that went stale between planning and acceptance."""


class NotNow(Exception):
    """A plan cannot be entered as things are; the message is one sentence for people."""


@dataclass(frozen=True, slots=True)
class Planned:
    """
    A plan and the sentences to show with it; `plan` None: the tree cannot be planned.

    `notices` say what is wrong with the tree, `held` what the plan holds back.
    """

    plan: Plan | None
    notices: tuple[str, ...]
    held: tuple[str, ...] = ()


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
        wrong = _Told(self.progress, "the tree is whole again")
        held = _Told(self.progress, "nothing is held any more")
        obstacles = _Told(self.progress, "")
        next_look = 0.0
        loop = asyncio.get_running_loop()
        changed_at = loop.time()
        while True:
            look = self.look()
            if look.content != seen:
                changed_at = loop.time()
            if look.problem:
                wrong.tell((look.problem, STAYS))
                seen = None
            elif look.content != seen or loop.time() >= next_look:
                planned = await self.make_plan()
                wrong.tell(planned.notices)
                if planned.plan is not None:
                    held.tell(planned.held)
                obstacle = await self._reconcile(planned.plan)
                obstacles.tell(obstacle)
                seen = None if obstacle else look.content
                next_look = loop.time() + self.resync_seconds
            is_quiet = loop.time() - changed_at > QUIET_SECONDS
            pause = QUIET_LOOK_SECONDS if is_quiet else LOOK_SECONDS
            await asyncio.sleep(pause if seen is not None else RETRY_SECONDS)

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


class _Told:
    """Sentences of one kind: said once, however often they stay true, and that they are over."""

    def __init__(self, progress: Progress, over: str) -> None:
        self._progress = progress
        self._over = over
        self._told: tuple[str, ...] = ()

    def tell(self, sentences: tuple[str, ...]) -> None:
        if sentences == self._told:
            return
        for sentence in sentences or (self._over,):
            if sentence:
                self._progress.notice(sentence)
        self._told = sentences
