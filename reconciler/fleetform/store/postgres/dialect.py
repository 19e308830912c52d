"""
The ledger's statements in PostgreSQL's words.

All rooms write the SQL that both databases understand, in SQLite's spelling where they differ:
how a value is marked, a hint, the elements of a JSON list, and the larger of two. The
translation looks at text only, once a statement; `tests/contract/ledger` runs what comes out.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["to_postgres"]

# Text in quotes is matched first and stays what it is.
_WORDS = re.compile(
    r"(?P<quoted>'(?:[^']|'')*')"
    # PostgreSQL takes no hints: its planner knows the partial indexes.
    r"|(?P<hint>\sINDEXED BY \w+)"
    r"|\bjson_each\(\?(?P<list>\d*)\)"
    # With one argument it is the aggregate, which both have.
    r"|\b(?P<choice>max|min)(?=\([^()]*(?:\([^()]*\)[^()]*)*,)"
    r"|\?(?P<value>\d*)"
)

_CHOICES = {"max": "greatest", "min": "least"}


@lru_cache(maxsize=1024)
def to_postgres(statement: str) -> str:
    """
    Translate one statement.

    `?` becomes `$1`, `$2`, … in order, and `?2` becomes `$2`. A value that a statement uses
    twice is given once.
    """
    count = 0

    def number(given: str) -> str:
        nonlocal count
        if given:
            return f"${given}"
        count += 1
        return f"${count}"

    def word(match: re.Match[str]) -> str:
        if match["quoted"] is not None:
            return match["quoted"]
        if match["hint"] is not None:
            return ""
        if match["list"] is not None:
            return f"json_array_elements_text({number(match['list'])}::json) AS json_each(value)"
        if match["choice"] is not None:
            return _CHOICES[match["choice"]]
        return number(match["value"])

    return _WORDS.sub(word, statement)
