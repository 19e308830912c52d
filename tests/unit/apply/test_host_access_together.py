"""Calls of one step: all of them end before the step does."""

from __future__ import annotations

import asyncio

import pytest

from fleetform.apply.host_access import together
from fleetform.model.refusals import FenceLost
from fleetform.providers.contract.errors import PermanentError, TemporaryError


async def answer(seconds: float, value: int, ended: list[int]) -> int:
    await asyncio.sleep(seconds)
    ended.append(value)
    return value


async def fail(problem: Exception) -> int:
    raise problem


def test_answers_come_in_the_order_of_the_calls() -> None:
    """Whoever is first to answer, the order is that of the calls."""

    async def work() -> list[int]:
        return await together([answer(0.01, 1, []), answer(0, 2, [])])

    assert asyncio.run(work()) == [1, 2]


def test_nothing_goes_on_behind_a_failure() -> None:
    """A call that takes longer than another takes to fail has ended when the failure is told."""

    async def work() -> list[int]:
        ended: list[int] = []
        with pytest.raises(TemporaryError):
            await together([fail(TemporaryError("no answer")), answer(0.01, 1, ended)])
        return ended

    assert asyncio.run(work()) == [1]


def test_what_ends_more_than_the_step_is_told_first() -> None:
    """A lost fence behind a host's refusal ends the plan, and not only the step."""

    async def work() -> None:
        await together([fail(PermanentError("no")), fail(FenceLost("taken over"))])

    with pytest.raises(FenceLost):
        asyncio.run(work())
