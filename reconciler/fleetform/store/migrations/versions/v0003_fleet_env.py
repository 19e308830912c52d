"""
`env` of a fleet: what an instance gives to its jobs, and what each job was given.

Existing rows have none: no fleet with `env` could be applied before.

Revises: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fleetform.store.migrations.columns import TEXT

revision = "0003"
down_revision = "0002"


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, TEXT, server_default=sa.text("''"), nullable=False)


def upgrade() -> None:
    op.add_column("instances", _text("env"))
    op.add_column("jobs", _text("env"))
