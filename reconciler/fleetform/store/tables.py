"""
The ledger's tables: the one description of the schema.

`schema_generator` writes `schema.sql` of both databases from it, and the statements of an upgrade. Otherwise this
module is not imported at run time: SQLAlchemy takes 190 ms to import, which is more than a whole plan may take.

Integers everywhere: milliseconds, millicores, bytes; booleans are 0 and 1. What the ledger
never searches is JSON as text. A uid is 32 hex digits. Empty text stands for "none" where a
column is compared, NULL only where a number is not known.

`since` is the version of the schema that added a table, a column or an index, if that was not the first. A version only adds:
it never changes what an earlier one made, so an upgrade is the statements for what was added since.
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


FIRST = "0001"
"""The version of what does not say otherwise."""


def _since(version: str) -> dict[str, str]:
    return {"since": version}


def _where(condition: str) -> dict[str, Any]:
    """Say for which rows a partial index is, to both databases."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


def _text(name: str, default: str = "", *, since: str = FIRST) -> Column[str]:
    return Column(
        name, _TEXT, nullable=False, server_default=text(f"'{default}'"), info=_since(since)
    )


def _number(name: str, default: int = 0) -> Column[int]:
    return Column(name, _INTEGER, nullable=False, server_default=text(str(default)))


def _optional(name: str, *, since: str = FIRST) -> Column[int]:
    return Column(name, _INTEGER, nullable=True, info=_since(since))


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
    # The actual state when it was last seen, as JSON, and when that was.
    _text("observed", since="0002"),
    _optional("observed_at_ms", since="0002"),
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
    # Why no job starts on it, as the configuration says; empty: jobs may start.
    _text("drained", since="0002"),
    # Of the template that it was created from: another digest means that the fleet declares another template by now.
    _text("template_digest", since="0002"),
    # When it was last heard, as far as that was written down: a plan shows how old it is.
    _optional("seen_at_ms", since="0002"),
    # Variables that its fleet gives to jobs, as JSON; empty: none.
    _text("env", since="0003"),
    # A row of the registry of providers, and how it reaches the host, as JSON; empty: by itself.
    _text("provider", "local", since="0004"),
    _text("endpoint", since="0004"),
    # The key by which the host was recognised when it was first reached over SSH.
    _text("host_key", since="0004"),
    # `run_as` of the fleet; the account of the agent; the accounts of the host, as JSON, if known.
    _text("run_as", since="0005"),
    _text("agent_account", since="0005"),
    _text("accounts", since="0005"),
    # When the host was heard last before its present boot: what ran under an earlier one ran until then.
    _optional("boot_heard_at_ms", since="0007"),
    # When a cloud said that it has created the host, and that it has deleted it: between them it costs.
    _optional("created_at_ms", since="0009"),
    _optional("ended_at_ms", since="0009"),
    # Since when a host that follows demand has no jobs and leaves after a while.
    _optional("idle_since_ms", since="0009"),
)
# A place of a fleet has one instance; terminated instances stay in the history.
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
    # 1: this is the run of its name in the configuration; older ones and archived ones are not listed.
    _number("listed"),
    _number("nodes", 1),
    _number("attempt"),
    _number("generation", 1),
    _text("cause"),
    _text("message"),
    _text("stop_requested"),
    _number("submitted_at_ms"),
    _optional("started_at_ms"),
    _optional("finished_at_ms"),
    _number("not_before_ms"),
    _text("execution_digest"),
    _text("replaces"),
    # An earlier run of this name that must be over first.
    _text("after_uid"),
    # The account of the person who applied it; `who` is for people.
    _text("owner", since="0005"),
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
    _optional("reserved_at_ms"),
    _optional("starting_at_ms"),
    _optional("started_at_ms"),
    _optional("finished_at_ms"),
    _text("cause"),
    _text("message"),
    # The attempts of other runs whose results it started from, as JSON; `lineage` says how.
    _text("upstream", since="0002"),
    # Where rank 0 listens for the others: the same for all ranks, and in each message that is sent again.
    _optional("master_port", since="0008"),
    sqlite_with_rowid=False,
)
Index("attempts_upstream", attempts.c.run_uid, info=_since("0002"), **_where("upstream <> ''"))

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
    _optional("exit_code"),
    _optional("signal"),
    _text("message"),
    _optional("started_at_ms"),
    _optional("finished_at_ms"),
    _number("forgotten"),
    _optional("peak_memory_bytes"),
    _optional("cpu_time_ms"),
    _number("log_bytes"),
    # `env` of its instance when it was placed: a start that is sent again has the same digest.
    _text("env", since="0003"),
    # The account that it runs as; empty: that of the agent.
    _text("account", since="0005"),
    # `on_silence` of its run when it was placed, as JSON; empty: it has no limit.
    _text("silence", since="0006"),
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
    # The key is the guarantee: one GPU, one block or one whole host is held by one job at most.
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
    _optional("attempt"),
    _optional("rank"),
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
    _text("who", since="0002"),
    _text("tree_commit", since="0002"),
    _text("summary", since="0002"),
    Column("body", LargeBinary, nullable=False),
)
Index("plans_made", plans.c.created_at_ms, info=_since("0002"))

applies = Table(
    "applies",
    metadata,
    Column("number", _INTEGER, primary_key=True),
    Column("uid", _TEXT, nullable=False),
    Column("plan_digest", _TEXT, ForeignKey("plans.digest"), nullable=False),
    _text("state"),
    _text("who"),
    # The account of that person, or of the controller: what it submits runs as this one.
    _text("owner", since="0005"),
    _text("tree_commit"),
    _number("started_at_ms"),
    _optional("finished_at_ms"),
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
    _optional("finished_at_ms", since="0002"),
    # Hosts on which nothing begins while it is open; see `store.rollouts.closings_of`.
    _text("closes", since="0002"),
    sqlite_with_rowid=False,
)
Index(
    "operations_resource",
    operations.c.resource_kind,
    operations.c.resource_name,
    info=_since("0002"),
)
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
    _optional("started_at_ms"),
    _optional("finished_at_ms"),
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
    _optional("until_ms"),
    _optional("lifted_at_ms"),
    _text("lifted_by"),
    info=_since("0002"),
)

# Data of removed volumes: kept as a snapshot, or left where it was (`place` is `path`). Only the host knows whether
# it is still there.
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
    info=_since("0002"),
)

# The offers by which a fleet's instances are created, in the order in which they are tried, with the last refusal of each.
offers = Table(
    "offers",
    metadata,
    Column("fleet", _TEXT, primary_key=True),
    Column("position", _INTEGER, primary_key=True, autoincrement=False),
    _text("terms"),
    _optional("refused_at_ms"),
    _text("problem"),
    info=_since("0009"),
)

# One row a name. SQLite has the kernel's file lock instead and leaves it empty.
leases = Table(
    "leases",
    metadata,
    Column("name", _TEXT, primary_key=True),
    _text("holder"),
    _number("fence"),
    _number("until_ms"),
    # Makes the fence a part of a key on PostgreSQL: a transaction that locks the row `FOR KEY SHARE` keeps others
    # from raising the fence, and does not keep the owner from renewing the lease.
    UniqueConstraint("name", "fence", name="leases_fence"),
    info=_since("0002"),
)
