"""
The types of columns on both databases, frozen: a migration never changes what an older one made.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

__all__ = ["INTEGER", "TEXT", "where"]

INTEGER = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def where(condition: str) -> dict[str, Any]:
    """Say for which rows a partial index is, to both databases."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}
