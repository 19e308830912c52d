"""
What a plan that can be trusted needs: who made it, overrides, what was seen.

Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fleetform.store.migrations.columns import INTEGER, TEXT, where

revision = "0002"
down_revision = "0001"


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, TEXT, server_default=sa.text("''"), nullable=False)


def _number(name: str, default: int = 0) -> sa.Column[int]:
    return sa.Column(name, INTEGER, server_default=sa.text(str(default)), nullable=False)


def _perhaps(name: str) -> sa.Column[int]:
    return sa.Column(name, INTEGER, nullable=True)


def upgrade() -> None:
    op.add_column("resources", _text("observed"))
    op.add_column("resources", _perhaps("observed_at_ms"))
    op.add_column("instances", _text("drained"))
    op.add_column("instances", _text("template_digest"))
    op.add_column("instances", _perhaps("seen_at_ms"))
    op.add_column("attempts", _text("upstream"))
    op.create_index("attempts_upstream", "attempts", ["run_uid"], **where("upstream <> ''"))
    op.add_column("plans", _text("who"))
    op.add_column("plans", _text("tree_commit"))
    op.add_column("plans", _text("summary"))
    op.create_index("plans_made", "plans", ["created_at_ms"])
    op.add_column("operations", _perhaps("finished_at_ms"))
    op.add_column("operations", _text("closes"))
    op.create_index("operations_resource", "operations", ["resource_kind", "resource_name"])
    op.create_table(
        "overrides",
        sa.Column("number", INTEGER, nullable=False),
        _text("kind"),
        _text("target"),
        _text("reason"),
        _text("who"),
        _number("since_ms"),
        _perhaps("until_ms"),
        _perhaps("lifted_at_ms"),
        _text("lifted_by"),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_table(
        "snapshots",
        sa.Column("number", sa.Integer(), nullable=False),
        _text("volume"),
        _text("volume_uid"),
        _text("fleet"),
        _text("path"),
        _text("place"),
        _text("who"),
        _number("taken_at_ms"),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_table(
        "leases",
        sa.Column("name", TEXT, nullable=False),
        _text("holder"),
        _number("fence"),
        _number("until_ms"),
        sa.PrimaryKeyConstraint("name"),
        sa.UniqueConstraint("name", "fence", name="leases_fence"),
    )
