"""
Several calls of one step, made side by side.

A step is over when all of its calls are. One that went on after another had failed would cause
effects under a step that is written down as failed, beside its own second try, or under the fence
of a manager that has gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from fleetform.providers.contract.errors import ProviderError

__all__ = ["together"]

T = TypeVar("T")


async def together(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """
    Return the answers in the order of the calls, once every call has come to its end.

    Raises:
        Exception: The first in order that is no `ProviderError`, for it ends more than the step;
            else the first of those.
    """
    answers = await asyncio.gather(*calls, return_exceptions=True)
    problems = [one for one in answers if isinstance(one, BaseException)]
    for problem in problems:
        if not isinstance(problem, ProviderError):
            raise problem
    if problems:
        raise problems[0]
    return [one for one in answers if not isinstance(one, BaseException)]
