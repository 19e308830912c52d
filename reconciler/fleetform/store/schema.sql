-- Written from `tables` by `make generate`.

CREATE TABLE events (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER DEFAULT 0 NOT NULL,
    kind TEXT DEFAULT '' NOT NULL,
    message TEXT DEFAULT '' NOT NULL,
    resource_kind TEXT DEFAULT '' NOT NULL,
    resource_name TEXT DEFAULT '' NOT NULL,
    attempt INTEGER,
    rank INTEGER,
    data TEXT DEFAULT '' NOT NULL
);

CREATE INDEX events_resource ON events (resource_kind, resource_name, number);

CREATE TABLE instances (
    uid TEXT NOT NULL,
    name TEXT DEFAULT '' NOT NULL,
    fleet TEXT DEFAULT '' NOT NULL,
    number INTEGER DEFAULT 0 NOT NULL,
    state TEXT DEFAULT '' NOT NULL,
    generation INTEGER DEFAULT 1 NOT NULL,
    sharing TEXT DEFAULT '' NOT NULL,
    blocks INTEGER DEFAULT 1 NOT NULL,
    cpu_millicores INTEGER DEFAULT 0 NOT NULL,
    memory_bytes INTEGER DEFAULT 0 NOT NULL,
    disk_bytes INTEGER DEFAULT 0 NOT NULL,
    gpus TEXT DEFAULT '' NOT NULL,
    address TEXT DEFAULT '' NOT NULL,
    boot_id TEXT DEFAULT '' NOT NULL,
    install_id TEXT DEFAULT '' NOT NULL,
    machine_id TEXT DEFAULT '' NOT NULL,
    log_id TEXT DEFAULT '' NOT NULL,
    log_number INTEGER DEFAULT 0 NOT NULL,
    declared TEXT DEFAULT '' NOT NULL,
    parts INTEGER DEFAULT 1 NOT NULL,
    message TEXT DEFAULT '' NOT NULL,
    drained TEXT DEFAULT '' NOT NULL,
    template_digest TEXT DEFAULT '' NOT NULL,
    seen_at_ms INTEGER,
    env TEXT DEFAULT '' NOT NULL,
    provider TEXT DEFAULT 'local' NOT NULL,
    endpoint TEXT DEFAULT '' NOT NULL,
    host_key TEXT DEFAULT '' NOT NULL,
    run_as TEXT DEFAULT '' NOT NULL,
    agent_account TEXT DEFAULT '' NOT NULL,
    accounts TEXT DEFAULT '' NOT NULL,
    boot_heard_at_ms INTEGER,
    created_at_ms INTEGER,
    ended_at_ms INTEGER,
    idle_since_ms INTEGER,
    PRIMARY KEY (uid)
);

CREATE UNIQUE INDEX instances_place ON instances (fleet, number) WHERE state <> 'terminated';

CREATE TABLE leases (
    name TEXT NOT NULL,
    holder TEXT DEFAULT '' NOT NULL,
    fence INTEGER DEFAULT 0 NOT NULL,
    until_ms INTEGER DEFAULT 0 NOT NULL,
    PRIMARY KEY (name),
    CONSTRAINT leases_fence UNIQUE (name, fence)
);

CREATE TABLE meta (
    id INTEGER NOT NULL CHECK (id = 1),
    environment_uid TEXT DEFAULT '' NOT NULL,
    ledger_id TEXT DEFAULT '' NOT NULL,
    epoch INTEGER DEFAULT 1 NOT NULL,
    status TEXT DEFAULT '' NOT NULL,
    note TEXT DEFAULT '' NOT NULL,
    serial INTEGER DEFAULT 0 NOT NULL,
    fence INTEGER DEFAULT 0 NOT NULL,
    manager TEXT DEFAULT '' NOT NULL,
    rules TEXT DEFAULT '' NOT NULL,
    created_at_ms INTEGER DEFAULT 0 NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE offers (
    fleet TEXT NOT NULL,
    position INTEGER NOT NULL,
    terms TEXT DEFAULT '' NOT NULL,
    refused_at_ms INTEGER,
    problem TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (fleet, position)
);

CREATE TABLE overrides (
    number INTEGER NOT NULL,
    kind TEXT DEFAULT '' NOT NULL,
    target TEXT DEFAULT '' NOT NULL,
    reason TEXT DEFAULT '' NOT NULL,
    who TEXT DEFAULT '' NOT NULL,
    since_ms INTEGER DEFAULT 0 NOT NULL,
    until_ms INTEGER,
    lifted_at_ms INTEGER,
    lifted_by TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (number)
);

CREATE TABLE plans (
    digest TEXT NOT NULL,
    created_at_ms INTEGER DEFAULT 0 NOT NULL,
    who TEXT DEFAULT '' NOT NULL,
    tree_commit TEXT DEFAULT '' NOT NULL,
    summary TEXT DEFAULT '' NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (digest)
);

CREATE INDEX plans_made ON plans (created_at_ms);

CREATE TABLE resources (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    uid TEXT DEFAULT '' NOT NULL,
    type TEXT DEFAULT '' NOT NULL,
    generation INTEGER DEFAULT 0 NOT NULL,
    digest TEXT DEFAULT '' NOT NULL,
    execution_digest TEXT DEFAULT '' NOT NULL,
    own_digest TEXT DEFAULT '' NOT NULL,
    state TEXT DEFAULT '' NOT NULL,
    archived INTEGER DEFAULT 0 NOT NULL,
    protected INTEGER DEFAULT 0 NOT NULL,
    parent TEXT DEFAULT '' NOT NULL,
    element TEXT DEFAULT '' NOT NULL,
    operation TEXT DEFAULT '' NOT NULL,
    rerun_mark INTEGER DEFAULT 0 NOT NULL,
    outputs TEXT DEFAULT '' NOT NULL,
    observed TEXT DEFAULT '' NOT NULL,
    observed_at_ms INTEGER,
    document TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (kind, name)
);

CREATE INDEX resources_parent ON resources (parent) WHERE parent <> '';

CREATE TABLE runs (
    number INTEGER NOT NULL,
    uid TEXT NOT NULL,
    name TEXT DEFAULT '' NOT NULL,
    type TEXT DEFAULT '' NOT NULL,
    parent TEXT DEFAULT '' NOT NULL,
    element TEXT DEFAULT '' NOT NULL,
    state TEXT DEFAULT '' NOT NULL,
    final INTEGER DEFAULT 0 NOT NULL,
    listed INTEGER DEFAULT 0 NOT NULL,
    nodes INTEGER DEFAULT 1 NOT NULL,
    attempt INTEGER DEFAULT 0 NOT NULL,
    generation INTEGER DEFAULT 1 NOT NULL,
    cause TEXT DEFAULT '' NOT NULL,
    message TEXT DEFAULT '' NOT NULL,
    stop_requested TEXT DEFAULT '' NOT NULL,
    submitted_at_ms INTEGER DEFAULT 0 NOT NULL,
    started_at_ms INTEGER,
    finished_at_ms INTEGER,
    not_before_ms INTEGER DEFAULT 0 NOT NULL,
    execution_digest TEXT DEFAULT '' NOT NULL,
    replaces TEXT DEFAULT '' NOT NULL,
    after_uid TEXT DEFAULT '' NOT NULL,
    owner TEXT DEFAULT '' NOT NULL,
    stale INTEGER DEFAULT 0 NOT NULL,
    uncounted INTEGER DEFAULT 0 NOT NULL,
    tree_commit TEXT DEFAULT '' NOT NULL,
    who TEXT DEFAULT '' NOT NULL,
    document TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (number),
    CONSTRAINT runs_uid UNIQUE (uid)
);

CREATE INDEX runs_listed ON runs (number) WHERE listed = 1;

CREATE INDEX runs_name ON runs (name);

CREATE INDEX runs_open ON runs (number) WHERE final = 0;

CREATE TABLE snapshots (
    number INTEGER NOT NULL,
    volume TEXT DEFAULT '' NOT NULL,
    volume_uid TEXT DEFAULT '' NOT NULL,
    fleet TEXT DEFAULT '' NOT NULL,
    path TEXT DEFAULT '' NOT NULL,
    place TEXT DEFAULT '' NOT NULL,
    who TEXT DEFAULT '' NOT NULL,
    taken_at_ms INTEGER DEFAULT 0 NOT NULL,
    PRIMARY KEY (number)
);

CREATE TABLE usage (
    number INTEGER NOT NULL,
    run_uid TEXT DEFAULT '' NOT NULL,
    attempt INTEGER DEFAULT 0 NOT NULL,
    name TEXT DEFAULT '' NOT NULL,
    who TEXT DEFAULT '' NOT NULL,
    jobs INTEGER DEFAULT 0 NOT NULL,
    started_at_ms INTEGER,
    finished_at_ms INTEGER,
    cpu_ms INTEGER DEFAULT 0 NOT NULL,
    gpu_ms INTEGER DEFAULT 0 NOT NULL,
    memory_bytes INTEGER DEFAULT 0 NOT NULL,
    cause TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (number)
);

CREATE UNIQUE INDEX usage_attempt ON usage (run_uid, attempt);

CREATE TABLE allocations (
    job_uid TEXT NOT NULL,
    instance_uid TEXT NOT NULL,
    run_uid TEXT NOT NULL,
    cpu_millicores INTEGER DEFAULT 0 NOT NULL,
    memory_bytes INTEGER DEFAULT 0 NOT NULL,
    disk_bytes INTEGER DEFAULT 0 NOT NULL,
    gpus TEXT DEFAULT '' NOT NULL,
    gpus_count INTEGER DEFAULT 0 NOT NULL,
    blocks INTEGER DEFAULT 0 NOT NULL,
    PRIMARY KEY (job_uid),
    FOREIGN KEY(instance_uid) REFERENCES instances (uid),
    FOREIGN KEY(run_uid) REFERENCES runs (uid)
) WITHOUT ROWID;

CREATE INDEX allocations_instance ON allocations (instance_uid);

CREATE INDEX allocations_run ON allocations (run_uid);

CREATE TABLE applies (
    number INTEGER NOT NULL,
    uid TEXT NOT NULL,
    plan_digest TEXT NOT NULL,
    state TEXT DEFAULT '' NOT NULL,
    who TEXT DEFAULT '' NOT NULL,
    owner TEXT DEFAULT '' NOT NULL,
    tree_commit TEXT DEFAULT '' NOT NULL,
    started_at_ms INTEGER DEFAULT 0 NOT NULL,
    finished_at_ms INTEGER,
    summary TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (number),
    CONSTRAINT applies_uid UNIQUE (uid),
    FOREIGN KEY(plan_digest) REFERENCES plans (digest)
);

CREATE INDEX applies_plan ON applies (plan_digest, number);

CREATE UNIQUE INDEX applies_running ON applies (plan_digest) WHERE state = 'running';

CREATE TABLE attempts (
    run_uid TEXT NOT NULL,
    number INTEGER NOT NULL,
    state TEXT DEFAULT '' NOT NULL,
    counted INTEGER DEFAULT 1 NOT NULL,
    submitted_at_ms INTEGER DEFAULT 0 NOT NULL,
    reserved_at_ms INTEGER,
    starting_at_ms INTEGER,
    started_at_ms INTEGER,
    finished_at_ms INTEGER,
    cause TEXT DEFAULT '' NOT NULL,
    message TEXT DEFAULT '' NOT NULL,
    upstream TEXT DEFAULT '' NOT NULL,
    master_port INTEGER,
    PRIMARY KEY (run_uid, number),
    FOREIGN KEY(run_uid) REFERENCES runs (uid)
) WITHOUT ROWID;

CREATE INDEX attempts_upstream ON attempts (run_uid) WHERE upstream <> '';

CREATE TABLE jobs (
    run_uid TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    uid TEXT DEFAULT '' NOT NULL,
    state TEXT DEFAULT '' NOT NULL,
    gen INTEGER DEFAULT 1 NOT NULL,
    instance_uid TEXT DEFAULT '' NOT NULL,
    boot_id TEXT DEFAULT '' NOT NULL,
    stop_wanted INTEGER DEFAULT 0 NOT NULL,
    cpu_millicores INTEGER DEFAULT 0 NOT NULL,
    memory_bytes INTEGER DEFAULT 0 NOT NULL,
    memory_limited INTEGER DEFAULT 0 NOT NULL,
    disk_bytes INTEGER DEFAULT 0 NOT NULL,
    gpus TEXT DEFAULT '' NOT NULL,
    gpus_count INTEGER DEFAULT 0 NOT NULL,
    blocks INTEGER DEFAULT 0 NOT NULL,
    cause TEXT DEFAULT '' NOT NULL,
    exit_code INTEGER,
    signal INTEGER,
    message TEXT DEFAULT '' NOT NULL,
    started_at_ms INTEGER,
    finished_at_ms INTEGER,
    forgotten INTEGER DEFAULT 0 NOT NULL,
    peak_memory_bytes INTEGER,
    cpu_time_ms INTEGER,
    log_bytes INTEGER DEFAULT 0 NOT NULL,
    env TEXT DEFAULT '' NOT NULL,
    account TEXT DEFAULT '' NOT NULL,
    silence TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (run_uid, attempt, rank),
    FOREIGN KEY(run_uid, attempt) REFERENCES attempts (run_uid, number)
) WITHOUT ROWID;

CREATE INDEX jobs_kept ON jobs (run_uid) WHERE forgotten = 0;

CREATE INDEX jobs_placed ON jobs (instance_uid) WHERE instance_uid <> '' AND state <> 'finished';

CREATE TABLE operations (
    apply_uid TEXT NOT NULL,
    "key" TEXT NOT NULL,
    uid TEXT DEFAULT '' NOT NULL,
    verb TEXT DEFAULT '' NOT NULL,
    resource_kind TEXT DEFAULT '' NOT NULL,
    resource_name TEXT DEFAULT '' NOT NULL,
    state TEXT DEFAULT '' NOT NULL,
    error TEXT DEFAULT '' NOT NULL,
    finished_at_ms INTEGER,
    closes TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (apply_uid, "key"),
    FOREIGN KEY(apply_uid) REFERENCES applies (uid)
) WITHOUT ROWID;

CREATE INDEX operations_open ON operations (resource_kind, resource_name) WHERE state IN ('planned', 'intended');

CREATE INDEX operations_resource ON operations (resource_kind, resource_name);

CREATE TABLE units (
    instance_uid TEXT NOT NULL,
    unit TEXT NOT NULL,
    job_uid TEXT NOT NULL,
    PRIMARY KEY (instance_uid, unit),
    FOREIGN KEY(job_uid) REFERENCES allocations (job_uid) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE INDEX units_job ON units (job_uid);

CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

INSERT INTO alembic_version VALUES ('0009');
