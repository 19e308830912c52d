"""
The ledger's tables: the one description of the schema.

`schema_generator` writes `schema.sql` of both databases from it, and tests compare it with what the
migrations make. At run time statements are written for the database at hand and this module is not imported: SQLAlchemy
takes 190 ms to import, which is more than a whole plan may take.

Integers everywhere: milliseconds, millicores, bytes; truth values are 0 and 1. What the ledger
never searches is JSON as text. A uid is 32 hex digits. Empty text stands for "none" where a
column is compared, NULL only where a number is not known.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()

# An Integer of PostgreSQL has 32 bits; milliseconds and bytes have more.
_INTEGER = Integer().with_variant(BigInteger(), "postgresql")

# Compared byte by byte, as SQLite does, and not by the language of the database: names are
# ordered alike on both, and a range of names is what it says.
_TEXT = Text().with_variant(Text(collation="C"), "postgresql")


def _where(condition: str) -> dict[str, Any]:
    """Say for which rows a partial index is, to both databases."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


def _text(name: str, default: str = "") -> Column[str]:
    return Column(name, _TEXT, nullable=False, server_default=text(f"'{default}'"))


def _number(name: str, default: int = 0) -> Column[int]:
    return Column(name, _INTEGER, nullable=False, server_default=text(str(default)))


def _perhaps(name: str) -> Column[int]:
    return Column(name, _INTEGER, nullable=True)


meta = Table(
    "meta",
    metadata,
    Column("id", _INTEGER, CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
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
)

resources = Table(
    "resources",
    metadata,
    Column("kind", _TEXT, primary_key=True),
    Column("name", _TEXT, primary_key=True),
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
    # What the world was last seen to be, as JSON, and when.
    _text("observed"),
    _perhaps("observed_at_ms"),
    # Last, so that reading the rest of a row does not walk through it.
    _text("document"),
)
Index("resources_parent", resources.c.parent, **_where("parent <> ''"))

instances = Table(
    "instances",
    metadata,
    Column("uid", _TEXT, primary_key=True),
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
    # Why it gets no more work, as the tree says; empty when it does.
    _text("drained"),
    # Of the template it was made from: another one is not yet what the fleet declares.
    _text("template_digest"),
    # When it said something last, as far as that was written down: a plan says how old it is.
    _perhaps("seen_at_ms"),
    # Variables that its fleet gives to jobs, as JSON; empty: none.
    _text("env"),
    # A row of the registry of providers, and how it reaches the host, as JSON; empty: by itself.
    _text("provider", "local"),
    _text("endpoint"),
    # The key by which the host was recognised when it was first reached over SSH.
    _text("host_key"),
)
# A fleet's place is taken once; who left it stays in the history.
Index(
    "instances_place",
    instances.c.fleet,
    instances.c.number,
    unique=True,
    **_where("state <> 'terminated'"),
)

runs = Table(
    "runs",
    metadata,
    # The rowid: reading by it is reading in order of submission.
    Column("number", _INTEGER, primary_key=True, autoincrement=False),
    Column("uid", _TEXT, nullable=False),
    _text("name"),
    _text("type"),
    _text("parent"),
    _text("element"),
    _text("state"),
    # 1: final. A column, because partial indexes and conditions must say the same.
    _number("final"),
    # 1: this is the run of its name in the tree; older ones and archived ones are not listed.
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
    # An earlier run of this name that must be over first.
    _text("after_uid"),
    # What changed since in the document that it executed: `model.run_state.Outdated`.
    _number("stale"),
    _number("uncounted"),
    _text("tree_commit"),
    _text("who"),
    _text("document"),
    UniqueConstraint("uid", name="runs_uid"),
)
Index("runs_name", runs.c.name)
Index("runs_open", runs.c.number, **_where("final = 0"))
Index("runs_listed", runs.c.number, **_where("listed = 1"))

attempts = Table(
    "attempts",
    metadata,
    Column("run_uid", _TEXT, ForeignKey("runs.uid"), primary_key=True),
    Column("number", _INTEGER, primary_key=True, autoincrement=False),
    _text("state"),
    _number("counted", 1),
    _number("submitted_at_ms"),
    # When its units were reserved, and when it passed its commit point: deadlines count from them.
    _perhaps("reserved_at_ms"),
    _perhaps("starting_at_ms"),
    _perhaps("started_at_ms"),
    _perhaps("finished_at_ms"),
    _text("cause"),
    _text("message"),
    # Which attempts of other runs it was made from, as JSON; `lineage` says how.
    _text("upstream"),
    sqlite_with_rowid=False,
)
Index("attempts_upstream", attempts.c.run_uid, **_where("upstream <> ''"))

jobs = Table(
    "jobs",
    metadata,
    Column("run_uid", _TEXT, primary_key=True),
    Column("attempt", _INTEGER, primary_key=True, autoincrement=False),
    Column("rank", _INTEGER, primary_key=True, autoincrement=False),
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
    # `env` of its instance when it was placed: a start that is sent again has the same digest.
    _text("env"),
    ForeignKeyConstraint(["run_uid", "attempt"], ["attempts.run_uid", "attempts.number"]),
    sqlite_with_rowid=False,
)
# What hosts still keep a record of: small, whatever the history.
Index("jobs_kept", jobs.c.run_uid, **_where("forgotten = 0"))
Index(
    "jobs_placed",
    jobs.c.instance_uid,
    **_where("instance_uid <> '' AND state <> 'finished'"),
)

allocations = Table(
    "allocations",
    metadata,
    Column("job_uid", _TEXT, primary_key=True),
    Column("instance_uid", _TEXT, ForeignKey("instances.uid"), nullable=False),
    Column("run_uid", _TEXT, ForeignKey("runs.uid"), nullable=False),
    _number("cpu_millicores"),
    _number("memory_bytes"),
    _number("disk_bytes"),
    _text("gpus"),
    _number("gpus_count"),
    _number("blocks"),
    sqlite_with_rowid=False,
)
Index("allocations_instance", allocations.c.instance_uid)
Index("allocations_run", allocations.c.run_uid)

units = Table(
    "units",
    metadata,
    # The key is the promise: one GPU, one block or one whole host is held by one job at most.
    Column("instance_uid", _TEXT, primary_key=True),
    Column("unit", _TEXT, primary_key=True),
    Column("job_uid", _TEXT, ForeignKey("allocations.job_uid", ondelete="CASCADE"), nullable=False),
    sqlite_with_rowid=False,
)
Index("units_job", units.c.job_uid)

events = Table(
    "events",
    metadata,
    Column("number", _INTEGER, primary_key=True),
    _number("at_ms"),
    _text("kind"),
    _text("message"),
    _text("resource_kind"),
    _text("resource_name"),
    _perhaps("attempt"),
    _perhaps("rank"),
    _text("data"),
    # A number once read is never given to another event, also not after the last is deleted.
    sqlite_autoincrement=True,
)
Index("events_resource", events.c.resource_kind, events.c.resource_name, events.c.number)

plans = Table(
    "plans",
    metadata,
    Column("digest", _TEXT, primary_key=True),
    _number("created_at_ms"),
    # Who made it, from which commit, and what it came to in one line.
    _text("who"),
    _text("tree_commit"),
    _text("summary"),
    Column("body", LargeBinary, nullable=False),
)
Index("plans_made", plans.c.created_at_ms)

applies = Table(
    "applies",
    metadata,
    Column("number", _INTEGER, primary_key=True),
    Column("uid", _TEXT, nullable=False),
    Column("plan_digest", _TEXT, ForeignKey("plans.digest"), nullable=False),
    _text("state"),
    _text("who"),
    _text("tree_commit"),
    _number("started_at_ms"),
    _perhaps("finished_at_ms"),
    _text("summary"),
    UniqueConstraint("uid", name="applies_uid"),
)
# Two processes that enter the same plan at once get the same apply.
Index(
    "applies_running",
    applies.c.plan_digest,
    unique=True,
    **_where("state = 'running'"),
)
Index("applies_plan", applies.c.plan_digest, applies.c.number)

operations = Table(
    "operations",
    metadata,
    Column("apply_uid", _TEXT, ForeignKey("applies.uid"), primary_key=True),
    Column("key", _TEXT, primary_key=True),
    # Empty until its intent is written.
    _text("uid"),
    _text("verb"),
    _text("resource_kind"),
    _text("resource_name"),
    _text("state"),
    _text("error"),
    _perhaps("finished_at_ms"),
    # Hosts on which nothing begins while it is open; see `cordon.closings_of`.
    _text("closes"),
    sqlite_with_rowid=False,
)
Index("operations_resource", operations.c.resource_kind, operations.c.resource_name)
Index(
    "operations_open",
    operations.c.resource_kind,
    operations.c.resource_name,
    **_where("state IN ('planned', 'intended')"),
)

usage = Table(
    "usage",
    metadata,
    Column("number", _INTEGER, primary_key=True),
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
)
# Written once an attempt, whatever is repeated.
Index("usage_attempt", usage.c.run_uid, usage.c.attempt, unique=True)

overrides = Table(
    "overrides",
    metadata,
    Column("number", _INTEGER, primary_key=True),
    _text("kind"),
    _text("target"),
    _text("reason"),
    _text("who"),
    _number("since_ms"),
    _perhaps("until_ms"),
    _perhaps("lifted_at_ms"),
    _text("lifted_by"),
)

# Data of volumes that went: put aside, or left where it was (`place` is `path`). Whether it is
# still there is the host's to say.
snapshots = Table(
    "snapshots",
    metadata,
    Column("number", Integer, primary_key=True),
    _text("volume"),
    _text("volume_uid"),
    _text("fleet"),
    _text("path"),
    _text("place"),
    _text("who"),
    _number("taken_at_ms"),
)

# One row a name. SQLite has the kernel's file lock instead and leaves it empty.
leases = Table(
    "leases",
    metadata,
    Column("name", _TEXT, primary_key=True),
    _text("holder"),
    _number("fence"),
    _number("until_ms"),
    # Makes the fence a part of a key on PostgreSQL: who holds it by `FOR KEY SHARE` keeps others
    # from raising it, and not its owner from renewing.
    UniqueConstraint("name", "fence", name="leases_fence"),
)
