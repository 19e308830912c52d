"""
Lists in pages: a cursor is the last item's own place in the order, not a number of items.

So an item that comes or goes between two pages makes none be skipped or shown twice.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from pydantic import BaseModel, Field

from fleetform.api.problem import ApiProblem, shortened

Item = TypeVar("Item")

LIMIT_DEFAULT = 100
# A page must fit in memory on both sides, whatever the rows are.
LIMIT_MAX = 1000
EVERYTHING = 2**31 - 1
"""A limit that no list reaches, where the page is cut from all of it."""
# What both databases can compare a number with.
_NUMBER_MAX = 2**63 - 1


class Page(BaseModel, Generic[Item]):
    """Some items of a list; `next` asks for the page after it and is null on the last."""

    items: list[Item]
    next: str | None = Field(
        description="Pass it as `cursor` to get the next page; null on the last page."
    )


def page(
    items: Sequence[Item], place: Callable[[Item], str | int], cursor: str | None, limit: int
) -> Page[Item]:
    """
    Cut the page after `cursor` out of `items`.

    Args:
        items: All of them, in order of `place`.
        place: The item's place, unique in the list; texts and numbers are not mixed.
        cursor: Where the page before ended; None for the first.
        limit: At most so many items.

    Raises:
        ApiProblem: The cursor was not made by this API.
    """
    if cursor is not None:
        after = read_cursor(cursor)
        try:
            items = [item for item in items if place(item) > after]  # type: ignore[operator]  # a cursor of another list fails here
        except TypeError as error:
            raise _foreign(cursor) from error
    shown = list(items[:limit])
    more = len(items) > limit
    return Page(items=shown, next=write_cursor(place(shown[-1])) if more else None)


def newest_first(
    items: Sequence[Item],
    at_ms: Callable[[Item], int],
    uid: Callable[[Item], str],
    cursor: str | None,
    limit: int,
) -> Page[Item]:
    """Cut a page out of a list that begins with the newest; `uid` tells those of one time apart."""

    def place(item: Item) -> str:
        return f"{_NUMBER_MAX - at_ms(item):019d} {uid(item)}"

    return page(sorted(items, key=place), place, cursor, limit)


def number_place(cursor: str | None) -> int:
    """Read a cursor of a list in order of number: that of the last item, 0 before the first."""
    if cursor is None:
        return 0
    place = read_cursor(cursor)
    if not isinstance(place, int) or not 0 <= place <= _NUMBER_MAX:
        raise _foreign(cursor)
    return place


def write_cursor(place: str | int) -> str:
    """Make a cursor; opaque on purpose, so that its form may change."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> str | int:
    """Read what `write_cursor` wrote."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        place = json.loads(base64.b64decode(padded.encode(), altchars=b"-_", validate=True))
    except (binascii.Error, UnicodeError, ValueError, RecursionError) as error:
        raise _foreign(cursor) from error
    if not isinstance(place, str | int) or isinstance(place, bool):
        raise _foreign(cursor)
    return place


def _foreign(cursor: str) -> ApiProblem:
    return ApiProblem(
        400,
        "cursor",
        f"`{shortened(cursor)}` is not a cursor of this list",
        "omit it to start from the first page",
    )
