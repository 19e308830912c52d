"""
Which provider has an instance, and how its host is reached.

Existing rows are of this machine: no fleet with another source could be applied before.

Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fleetform.store.migrations.columns import TEXT

revision = "0004"
down_revision = "0003"


def _text(name: str, default: str = "") -> sa.Column[str]:
    return sa.Column(name, TEXT, server_default=sa.text(f"'{default}'"), nullable=False)


def upgrade() -> None:
    op.add_column("instances", _text("provider", "local"))
    op.add_column("instances", _text("endpoint"))
    op.add_column("instances", _text("host_key"))
