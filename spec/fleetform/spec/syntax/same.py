"""Whether two values say the same: JSON values, with their types."""

from __future__ import annotations

from typing import Any


def same_values(one: Any, other: Any) -> bool:
    """
    Tell whether two plain values are equal and of the same types; keys in any order.

    Python's own `==` takes 1, 1.0 and true for equal, and a document means something else by
    each.
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_values(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_values, one, other))
    return bool(one == other)
