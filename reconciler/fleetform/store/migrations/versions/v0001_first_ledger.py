"""
The first ledger.

Revises: nothing
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fleetform.store.migrations.columns import INTEGER, TEXT, where

revision = "0001"
down_revision = None


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, TEXT, server_default=sa.text("''"), nullable=False)


def _number(name: str, default: int = 0) -> sa.Column[int]:
    return sa.Column(name, INTEGER, server_default=sa.text(str(default)), nullable=False)


def _perhaps(name: str) -> sa.Column[int]:
    return sa.Column(name, INTEGER, nullable=True)


def upgrade() -> None:
    op.create_table(
        "events",
        sa.Column("number", INTEGER, nullable=False),
        _number("at_ms"),
        _text("kind"),
        _text("message"),
        _text("resource_kind"),
        _text("resource_name"),
        _perhaps("attempt"),
        _perhaps("rank"),
        _text("data"),
        sa.PrimaryKeyConstraint("number"),
        sqlite_autoincrement=True,
    )
    op.create_index("events_resource", "events", ["resource_kind", "resource_name", "number"])
    op.create_table(
        "instances",
        sa.Column("uid", TEXT, nullable=False),
        _text("name"),
        _text("fleet"),
        _number("number"),
        _text("state"),
        _number("generation", 1),
        _text("sharing"),
        _number("blocks", 1),
        _number("cpu_millicores"),
        _number("memory_bytes"),
        _number("disk_bytes"),
        _text("gpus"),
        _text("address"),
        _text("boot_id"),
        _text("install_id"),
        _text("machine_id"),
        _text("log_id"),
        _number("log_number"),
        _text("declared"),
        _number("parts", 1),
        _text("message"),
        sa.PrimaryKeyConstraint("uid"),
    )
    op.create_index(
        "instances_place",
        "instances",
        ["fleet", "number"],
        unique=True,
        **where("state <> 'terminated'"),
    )
    op.create_table(
        "meta",
        sa.Column("id", INTEGER, autoincrement=False, nullable=False),
        _text("environment_uid"),
        _text("ledger_id"),
        _number("epoch", 1),
        _text("status"),
        _text("note"),
        _number("serial"),
        _number("fence"),
        _text("manager"),
        _text("rules"),
        _number("created_at_ms"),
        sa.CheckConstraint("id = 1"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "plans",
        sa.Column("digest", TEXT, nullable=False),
        _number("created_at_ms"),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_table(
        "resources",
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        _text("uid"),
        _text("type"),
        _number("generation"),
        _text("digest"),
        _text("execution_digest"),
        _text("own_digest"),
        _text("state"),
        _number("archived"),
        _number("protected"),
        _text("parent"),
        _text("element"),
        _text("operation"),
        _number("rerun_mark"),
        _text("outputs"),
        _text("document"),
        sa.PrimaryKeyConstraint("kind", "name"),
    )
    op.create_index(
        "resources_parent",
        "resources",
        ["parent"],
        **where("parent <> ''"),
    )
    op.create_table(
        "runs",
        sa.Column("number", INTEGER, autoincrement=False, nullable=False),
        sa.Column("uid", TEXT, nullable=False),
        _text("name"),
        _text("type"),
        _text("parent"),
        _text("element"),
        _text("state"),
        _number("final"),
        _number("listed"),
        _number("nodes", 1),
        _number("attempt"),
        _number("generation", 1),
        _text("cause"),
        _text("message"),
        _text("stop_requested"),
        _number("submitted_at_ms"),
        _perhaps("started_at_ms"),
        _perhaps("finished_at_ms"),
        _number("not_before_ms"),
        _text("execution_digest"),
        _text("replaces"),
        _text("after_uid"),
        _number("stale"),
        _number("uncounted"),
        _text("tree_commit"),
        _text("who"),
        _text("document"),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("uid", name="runs_uid"),
    )
    op.create_index("runs_listed", "runs", ["number"], **where("listed = 1"))
    op.create_index("runs_name", "runs", ["name"])
    op.create_index("runs_open", "runs", ["number"], **where("final = 0"))
    op.create_table(
        "usage",
        sa.Column("number", INTEGER, nullable=False),
        _text("run_uid"),
        _number("attempt"),
        _text("name"),
        _text("who"),
        _number("jobs"),
        _perhaps("started_at_ms"),
        _perhaps("finished_at_ms"),
        _number("cpu_ms"),
        _number("gpu_ms"),
        _number("memory_bytes"),
        _text("cause"),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_index("usage_attempt", "usage", ["run_uid", "attempt"], unique=True)
    op.create_table(
        "allocations",
        sa.Column("job_uid", TEXT, nullable=False),
        sa.Column("instance_uid", TEXT, nullable=False),
        sa.Column("run_uid", TEXT, nullable=False),
        _number("cpu_millicores"),
        _number("memory_bytes"),
        _number("disk_bytes"),
        _text("gpus"),
        _number("gpus_count"),
        _number("blocks"),
        sa.ForeignKeyConstraint(
            ["instance_uid"],
            ["instances.uid"],
        ),
        sa.ForeignKeyConstraint(
            ["run_uid"],
            ["runs.uid"],
        ),
        sa.PrimaryKeyConstraint("job_uid"),
        sqlite_with_rowid=False,
    )
    op.create_index("allocations_instance", "allocations", ["instance_uid"])
    op.create_index("allocations_run", "allocations", ["run_uid"])
    op.create_table(
        "applies",
        sa.Column("number", INTEGER, nullable=False),
        sa.Column("uid", TEXT, nullable=False),
        sa.Column("plan_digest", TEXT, nullable=False),
        _text("state"),
        _text("who"),
        _text("tree_commit"),
        _number("started_at_ms"),
        _perhaps("finished_at_ms"),
        _text("summary"),
        sa.ForeignKeyConstraint(
            ["plan_digest"],
            ["plans.digest"],
        ),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("uid", name="applies_uid"),
    )
    op.create_index("applies_plan", "applies", ["plan_digest", "number"])
    op.create_index(
        "applies_running",
        "applies",
        ["plan_digest"],
        unique=True,
        **where("state = 'running'"),
    )
    op.create_table(
        "attempts",
        sa.Column("run_uid", TEXT, nullable=False),
        sa.Column("number", INTEGER, autoincrement=False, nullable=False),
        _text("state"),
        _number("counted", 1),
        _number("submitted_at_ms"),
        _perhaps("reserved_at_ms"),
        _perhaps("starting_at_ms"),
        _perhaps("started_at_ms"),
        _perhaps("finished_at_ms"),
        _text("cause"),
        _text("message"),
        sa.ForeignKeyConstraint(
            ["run_uid"],
            ["runs.uid"],
        ),
        sa.PrimaryKeyConstraint("run_uid", "number"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "jobs",
        sa.Column("run_uid", TEXT, nullable=False),
        sa.Column("attempt", INTEGER, autoincrement=False, nullable=False),
        sa.Column("rank", INTEGER, autoincrement=False, nullable=False),
        _text("uid"),
        _text("state"),
        _number("gen", 1),
        _text("instance_uid"),
        _text("boot_id"),
        _number("stop_wanted"),
        _number("cpu_millicores"),
        _number("memory_bytes"),
        _number("memory_limited"),
        _number("disk_bytes"),
        _text("gpus"),
        _number("gpus_count"),
        _number("blocks"),
        _text("cause"),
        _perhaps("exit_code"),
        _perhaps("signal"),
        _text("message"),
        _perhaps("started_at_ms"),
        _perhaps("finished_at_ms"),
        _number("forgotten"),
        _perhaps("peak_memory_bytes"),
        _perhaps("cpu_time_ms"),
        _number("log_bytes"),
        sa.ForeignKeyConstraint(
            ["run_uid", "attempt"],
            ["attempts.run_uid", "attempts.number"],
        ),
        sa.PrimaryKeyConstraint("run_uid", "attempt", "rank"),
        sqlite_with_rowid=False,
    )
    op.create_index("jobs_kept", "jobs", ["run_uid"], **where("forgotten = 0"))
    op.create_index(
        "jobs_placed",
        "jobs",
        ["instance_uid"],
        **where("instance_uid <> '' AND state <> 'finished'"),
    )
    op.create_table(
        "operations",
        sa.Column("apply_uid", TEXT, nullable=False),
        sa.Column("key", TEXT, nullable=False),
        _text("uid"),
        _text("verb"),
        _text("resource_kind"),
        _text("resource_name"),
        _text("state"),
        _text("error"),
        sa.ForeignKeyConstraint(
            ["apply_uid"],
            ["applies.uid"],
        ),
        sa.PrimaryKeyConstraint("apply_uid", "key"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "operations_open",
        "operations",
        ["resource_kind", "resource_name"],
        **where("state IN ('planned', 'intended')"),
    )
    op.create_table(
        "units",
        sa.Column("instance_uid", TEXT, nullable=False),
        sa.Column("unit", TEXT, nullable=False),
        sa.Column("job_uid", TEXT, nullable=False),
        sa.ForeignKeyConstraint(["job_uid"], ["allocations.job_uid"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("instance_uid", "unit"),
        sqlite_with_rowid=False,
    )
    op.create_index("units_job", "units", ["job_uid"])
