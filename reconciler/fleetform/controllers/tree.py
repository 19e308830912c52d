"""
Keeps the environment as its tree says: looks, plans, and hands the plan to the manager.

Level-triggered: every look compares the tree as it is with the world as it is; what changed
since the last look only decides how soon. A tree that cannot be read, or whose
`environment.yaml` is broken, changes nothing: what was applied last stays in force.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from fleetform.model.history import LogLevel, Notice
from fleetform.model.plan import Plan
from fleetform.model.ports import LedgerUnavailable, PolicyRefused, Progress, StalePlan
from fleetform.views.notices import not_planned

LOOK_SECONDS = 0.5
"""How late an edit is seen while people edit; a look is one `stat` a file."""

QUIET_LOOK_SECONDS = 2.0
"""How late when nothing has changed for `QUIET_SECONDS`: thousands of files are thousands of looks."""

QUIET_SECONDS = 60.0
"""Longer than a pause between two edits."""

RESYNC_SECONDS = 30.0
"""A look at everything although no file changed: runs end, and what waited for them may go on."""

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
    notices: tuple[Notice, ...]
    held: tuple[Notice, ...] = ()


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
    loads and plans it; `accept` enters a plan or raises `NotNow`. All three are given by `app`.
    """

    look: Callable[[], Look]
    make_plan: Callable[[], Awaitable[Planned]]
    accept: Callable[[Plan], Awaitable[None]]
    progress: Progress
    resync_seconds: float = RESYNC_SECONDS

    async def keep(self) -> None:
        """Run until cancelled."""
        seen: object = None
        wrong = _Said(self.progress)
        held = _Said(self.progress)
        obstacles = _Said(self.progress)
        next_look = 0.0
        loop = asyncio.get_running_loop()
        changed_at = loop.time()
        while True:
            look = self.look()
            if look.content != seen:
                changed_at = loop.time()
            if look.problem:
                wrong.say(not_planned(look.problem))
                seen = None
            elif look.content != seen or loop.time() >= next_look:
                planned = await self.make_plan()
                wrong.say(planned.notices)
                if planned.plan is not None:
                    held.say(planned.held)
                obstacle = await self._reconcile(planned.plan)
                obstacles.say(obstacle)
                seen = None if obstacle else look.content
                next_look = loop.time() + self.resync_seconds
            is_quiet = loop.time() - changed_at > QUIET_SECONDS
            pause = QUIET_LOOK_SECONDS if is_quiet else LOOK_SECONDS
            await asyncio.sleep(pause if seen is not None else RETRY_SECONDS)

    async def _reconcile(self, plan: Plan | None) -> tuple[Notice, ...]:
        """Enter a plan; returns why it could not be, and nothing where all is well."""
        if plan is None or plan.is_empty:
            return ()
        try:
            await self.accept(plan)
        except StalePlan as stale:
            return (
                _obstacle(f"planning again, because the state has changed: {stale}", LogLevel.INFO),
            )
        except PolicyRefused as refused:
            return (_obstacle(f"not applied: {refused}", LogLevel.WARNING),)
        except (NotNow, LedgerUnavailable) as problem:
            return (_obstacle(f"planning again soon: {problem}", LogLevel.WARNING),)
        return ()


def _obstacle(text: str, level: LogLevel) -> Notice:
    return Notice("obstacle", text, event="plan.not-applied", level=level)


class _Said:
    """Notices of one kind: each is said once while it stays true, and so is its end."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._said: dict[str, Notice] = {}

    def say(self, notices: Iterable[Notice]) -> None:
        """Say the notices that are new or have another text, and the end of those that are missing."""
        now = {one.key: one for one in notices}
        before, self._said = self._said, now
        for key, one in now.items():
            if key not in before or before[key].text != one.text:
                self._progress.notice(
                    one.text, event=one.event, level=one.level, details=one.details
                )
        for key, one in before.items():
            if key not in now and one.over:
                self._progress.notice(one.over, event=f"{one.event}.over", details=one.details)
