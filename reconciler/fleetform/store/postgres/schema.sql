-- Written from `tables` by `make generate`.

CREATE TABLE events (
    number BIGSERIAL NOT NULL,
    at_ms BIGINT DEFAULT 0 NOT NULL,
    kind TEXT COLLATE "C" DEFAULT '' NOT NULL,
    message TEXT COLLATE "C" DEFAULT '' NOT NULL,
    resource_kind TEXT COLLATE "C" DEFAULT '' NOT NULL,
    resource_name TEXT COLLATE "C" DEFAULT '' NOT NULL,
    attempt BIGINT,
    rank BIGINT,
    data TEXT COLLATE "C" DEFAULT '' NOT NULL,
    PRIMARY KEY (number)
);

CREATE INDEX events_resource ON events (resource_kind, resource_name, number);

CREATE TABLE instances (
    uid TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" DEFAULT '' NOT NULL,
    fleet TEXT COLLATE "C" DEFAULT '' NOT NULL,
    number BIGINT DEFAULT 0 NOT NULL,
    state TEXT COLLATE "C" DEFAULT '' NOT NULL,
    generation BIGINT DEFAULT 1 NOT NULL,
    sharing TEXT COLLATE "C" DEFAULT '' NOT NULL,
    blocks BIGINT DEFAULT 1 NOT NULL,
    cpu_millicores BIGINT DEFAULT 0 NOT NULL,
    memory_bytes BIGINT DEFAULT 0 NOT NULL,
    disk_bytes BIGINT DEFAULT 0 NOT NULL,
    gpus TEXT COLLATE "C" DEFAULT '' NOT NULL,
    address TEXT COLLATE "C" DEFAULT '' NOT NULL,
    boot_id TEXT COLLATE "C" DEFAULT '' NOT NULL,
    install_id TEXT COLLATE "C" DEFAULT '' NOT NULL,
    machine_id TEXT COLLATE "C" DEFAULT '' NOT NULL,
    log_id TEXT COLLATE "C" DEFAULT '' NOT NULL,
    log_number BIGINT DEFAULT 0 NOT NULL,
    declared TEXT COLLATE "C" DEFAULT '' NOT NULL,
    parts BIGINT DEFAULT 1 NOT NULL,
    message TEXT COLLATE "C" DEFAULT '' NOT NULL,
    drained TEXT COLLATE "C" DEFAULT '' NOT NULL,
    template_digest TEXT COLLATE "C" DEFAULT '' NOT NULL,
    seen_at_ms BIGINT,
    env TEXT COLLATE "C" DEFAULT '' NOT NULL,
    provider TEXT COLLATE "C" DEFAULT 'local' NOT NULL,
    endpoint TEXT COLLATE "C" DEFAULT '' NOT NULL,
    host_key TEXT COLLATE "C" DEFAULT '' NOT NULL,
    run_as TEXT COLLATE "C" DEFAULT '' NOT NULL,
    agent_account TEXT COLLATE "C" DEFAULT '' NOT NULL,
    accounts TEXT COLLATE "C" DEFAULT '' NOT NULL,
    boot_heard_at_ms BIGINT,
    created_at_ms BIGINT,
    ended_at_ms BIGINT,
    idle_since_ms BIGINT,
    PRIMARY KEY (uid)
);

CREATE UNIQUE INDEX instances_place ON instances (fleet, number) WHERE state <> 'terminated';

CREATE TABLE leases (
    name TEXT COLLATE "C" NOT NULL,
    holder TEXT COLLATE "C" DEFAULT '' NOT NULL,
    fence BIGINT DEFAULT 0 NOT NULL,
    until_ms BIGINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (name),
    CONSTRAINT leases_fence UNIQUE (name, fence)
);

CREATE TABLE meta (
    id BIGINT NOT NULL CHECK (id = 1),
    environment_uid TEXT COLLATE "C" DEFAULT '' NOT NULL,
    ledger_id TEXT COLLATE "C" DEFAULT '' NOT NULL,
    epoch BIGINT DEFAULT 1 NOT NULL,
    status TEXT COLLATE "C" DEFAULT '' NOT NULL,
    note TEXT COLLATE "C" DEFAULT '' NOT NULL,
    serial BIGINT DEFAULT 0 NOT NULL,
    fence BIGINT DEFAULT 0 NOT NULL,
    manager TEXT COLLATE "C" DEFAULT '' NOT NULL,
    rules TEXT COLLATE "C" DEFAULT '' NOT NULL,
    created_at_ms BIGINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE offers (
    fleet TEXT COLLATE "C" NOT NULL,
    position BIGINT NOT NULL,
    terms TEXT COLLATE "C" DEFAULT '' NOT NULL,
    refused_at_ms BIGINT,
    problem TEXT COLLATE "C" DEFAULT '' NOT NULL,
    PRIMARY KEY (fleet, position)
);

CREATE TABLE overrides (
    number BIGSERIAL NOT NULL,
    kind TEXT COLLATE "C" DEFAULT '' NOT NULL,
    target TEXT COLLATE "C" DEFAULT '' NOT NULL,
    reason TEXT COLLATE "C" DEFAULT '' NOT NULL,
    who TEXT COLLATE "C" DEFAULT '' NOT NULL,
    since_ms BIGINT DEFAULT 0 NOT NULL,
    until_ms BIGINT,
    lifted_at_ms BIGINT,
    lifted_by TEXT COLLATE "C" DEFAULT '' NOT NULL,
    PRIMARY KEY (number)
);

CREATE TABLE plans (
    digest TEXT COLLATE "C" NOT NULL,
    created_at_ms BIGINT DEFAULT 0 NOT NULL,
    who TEXT COLLATE "C" DEFAULT '' NOT NULL,
    tree_commit TEXT COLLATE "C" DEFAULT '' NOT NULL,
    summary TEXT COLLATE "C" DEFAULT '' NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (digest)
);

CREATE INDEX plans_made ON plans (created_at_ms);

CREATE TABLE resources (
    kind TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    uid TEXT COLLATE "C" DEFAULT '' NOT NULL,
    type TEXT COLLATE "C" DEFAULT '' NOT NULL,
    generation BIGINT DEFAULT 0 NOT NULL,
    digest TEXT COLLATE "C" DEFAULT '' NOT NULL,
    execution_digest TEXT COLLATE "C" DEFAULT '' NOT NULL,
    own_digest TEXT COLLATE "C" DEFAULT '' NOT NULL,
    state TEXT COLLATE "C" DEFAULT '' NOT NULL,
    archived BIGINT DEFAULT 0 NOT NULL,
    protected BIGINT DEFAULT 0 NOT NULL,
    parent TEXT COLLATE "C" DEFAULT '' NOT NULL,
    element TEXT COLLATE "C" DEFAULT '' NOT NULL,
    operation TEXT COLLATE "C" DEFAULT '' NOT NULL,
    rerun_mark BIGINT DEFAULT 0 NOT NULL,
    outputs TEXT COLLATE "C" DEFAULT '' NOT NULL,
    observed TEXT COLLATE "C" DEFAULT '' NOT NULL,
    observed_at_ms BIGINT,
    document TEXT COLLATE "C" DEFAULT '' NOT NULL,
    PRIMARY KEY (kind, name)
);

CREATE INDEX resources_parent ON resources (parent) WHERE parent <> '';

CREATE TABLE runs (
    number BIGINT NOT NULL,
    uid TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" DEFAULT '' NOT NULL,
    type TEXT COLLATE "C" DEFAULT '' NOT NULL,
    parent TEXT COLLATE "C" DEFAULT '' NOT NULL,
    element TEXT COLLATE "C" DEFAULT '' NOT NULL,
    state TEXT COLLATE "C" DEFAULT '' NOT NULL,
    final BIGINT DEFAULT 0 NOT NULL,
    listed BIGINT DEFAULT 0 NOT NULL,
    nodes BIGINT DEFAULT 1 NOT NULL,
    attempt BIGINT DEFAULT 0 NOT NULL,
    generation BIGINT DEFAULT 1 NOT NULL,
    cause TEXT COLLATE "C" DEFAULT '' NOT NULL,
    message TEXT COLLATE "C" DEFAULT '' NOT NULL,
    stop_requested TEXT COLLATE "C" DEFAULT '' NOT NULL,
    submitted_at_ms BIGINT DEFAULT 0 NOT NULL,
    started_at_ms BIGINT,
    finished_at_ms BIGINT,
    not_before_ms BIGINT DEFAULT 0 NOT NULL,
    execution_digest TEXT COLLATE "C" DEFAULT '' NOT NULL,
    replaces TEXT COLLATE "C" DEFAULT '' NOT NULL,
    after_uid TEXT COLLATE "C" DEFAULT '' NOT NULL,
    owner TEXT COLLATE "C" DEFAULT '' NOT NULL,
    stale BIGINT DEFAULT 0 NOT NULL,
    uncounted BIGINT DEFAULT 0 NOT NULL,
    tree_commit TEXT COLLATE "C" DEFAULT '' NOT NULL,
    who TEXT COLLATE "C" DEFAULT '' NOT NULL,
    document TEXT COLLATE "C" DEFAULT '' NOT NULL,
    PRIMARY KEY (number),
    CONSTRAINT runs_uid UNIQUE (uid)
);

CREATE INDEX runs_listed ON runs (number) WHERE listed = 1;

CREATE INDEX runs_name ON runs (name);

CREATE INDEX runs_open ON runs (number) WHERE final = 0;

CREATE TABLE snapshots (
    number SERIAL NOT NULL,
    volume TEXT COLLATE "C" DEFAULT '' NOT NULL,
    volume_uid TEXT COLLATE "C" DEFAULT '' NOT NULL,
    fleet TEXT COLLATE "C" DEFAULT '' NOT NULL,
    path TEXT COLLATE "C" DEFAULT '' NOT NULL,
    place TEXT COLLATE "C" DEFAULT '' NOT NULL,
    who TEXT COLLATE "C" DEFAULT '' NOT NULL,
    taken_at_ms BIGINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (number)
);

CREATE TABLE usage (
    number BIGSERIAL NOT NULL,
    run_uid TEXT COLLATE "C" DEFAULT '' NOT NULL,
    attempt BIGINT DEFAULT 0 NOT NULL,
    name TEXT COLLATE "C" DEFAULT '' NOT NULL,
    who TEXT COLLATE "C" DEFAULT '' NOT NULL,
    jobs BIGINT DEFAULT 0 NOT NULL,
    started_at_ms BIGINT,
    finished_at_ms BIGINT,
    cpu_ms BIGINT DEFAULT 0 NOT NULL,
    gpu_ms BIGINT DEFAULT 0 NOT NULL,
    memory_bytes BIGINT DEFAULT 0 NOT NULL,
    cause TEXT COLLATE "C" DEFAULT '' NOT NULL,
    PRIMARY KEY (number)
);

CREATE UNIQUE INDEX usage_attempt ON usage (run_uid, attempt);

CREATE TABLE allocations (
    job_uid TEXT COLLATE "C" NOT NULL,
    instance_uid TEXT COLLATE "C" NOT NULL,
    run_uid TEXT COLLATE "C" NOT NULL,
    cpu_millicores BIGINT DEFAULT 0 NOT NULL,
    memory_bytes BIGINT DEFAULT 0 NOT NULL,
    disk_bytes BIGINT DEFAULT 0 NOT NULL,
    gpus TEXT COLLATE "C" DEFAULT '' NOT NULL,
    gpus_count BIGINT DEFAULT 0 NOT NULL,
    blocks BIGINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (job_uid),
    FOREIGN KEY(instance_uid) REFERENCES instances (uid),
    FOREIGN KEY(run_uid) REFERENCES runs (uid)
);

CREATE INDEX allocations_instance ON allocations (instance_uid);

CREATE INDEX allocations_run ON allocations (run_uid);

CREATE TABLE applies (
    number BIGSERIAL NOT NULL,
    uid TEXT COLLATE "C" NOT NULL,
    plan_digest TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" DEFAULT '' NOT NULL,
    who TEXT COLLATE "C" DEFAULT '' NOT NULL,
    owner TEXT COLLATE "C" DEFAULT '' NOT NULL,
    tree_commit TEXT COLLATE "C" DEFAULT '' NOT NULL,
    started_at_ms BIGINT DEFAULT 0 NOT NULL,
    finished_at_ms BIGINT,
    summary TEXT COLLATE "C" DEFAULT '' NOT NULL,
    PRIMARY KEY (number),
    CONSTRAINT applies_uid UNIQUE (uid),
    FOREIGN KEY(plan_digest) REFERENCES plans (digest)
);

CREATE INDEX applies_plan ON applies (plan_digest, number);

CREATE UNIQUE INDEX applies_running ON applies (plan_digest) WHERE state = 'running';

CREATE TABLE attempts (
    run_uid TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    state TEXT COLLATE "C" DEFAULT '' NOT NULL,
    counted BIGINT DEFAULT 1 NOT NULL,
    submitted_at_ms BIGINT DEFAULT 0 NOT NULL,
    reserved_at_ms BIGINT,
    starting_at_ms BIGINT,
    started_at_ms BIGINT,
    finished_at_ms BIGINT,
    cause TEXT COLLATE "C" DEFAULT '' NOT NULL,
    message TEXT COLLATE "C" DEFAULT '' NOT NULL,
    upstream TEXT COLLATE "C" DEFAULT '' NOT NULL,
    master_port BIGINT,
    PRIMARY KEY (run_uid, number),
    FOREIGN KEY(run_uid) REFERENCES runs (uid)
);

CREATE INDEX attempts_upstream ON attempts (run_uid) WHERE upstream <> '';

CREATE TABLE jobs (
    run_uid TEXT COLLATE "C" NOT NULL,
    attempt BIGINT NOT NULL,
    rank BIGINT NOT NULL,
    uid TEXT COLLATE "C" DEFAULT '' NOT NULL,
    state TEXT COLLATE "C" DEFAULT '' NOT NULL,
    gen BIGINT DEFAULT 1 NOT NULL,
    instance_uid TEXT COLLATE "C" DEFAULT '' NOT NULL,
    boot_id TEXT COLLATE "C" DEFAULT '' NOT NULL,
    stop_wanted BIGINT DEFAULT 0 NOT NULL,
    cpu_millicores BIGINT DEFAULT 0 NOT NULL,
    memory_bytes BIGINT DEFAULT 0 NOT NULL,
    memory_limited BIGINT DEFAULT 0 NOT NULL,
    disk_bytes BIGINT DEFAULT 0 NOT NULL,
    gpus TEXT COLLATE "C" DEFAULT '' NOT NULL,
    gpus_count BIGINT DEFAULT 0 NOT NULL,
    blocks BIGINT DEFAULT 0 NOT NULL,
    cause TEXT COLLATE "C" DEFAULT '' NOT NULL,
    exit_code BIGINT,
    signal BIGINT,
    message TEXT COLLATE "C" DEFAULT '' NOT NULL,
    started_at_ms BIGINT,
    finished_at_ms BIGINT,
    forgotten BIGINT DEFAULT 0 NOT NULL,
    peak_memory_bytes BIGINT,
    cpu_time_ms BIGINT,
    log_bytes BIGINT DEFAULT 0 NOT NULL,
    env TEXT COLLATE "C" DEFAULT '' NOT NULL,
    account TEXT COLLATE "C" DEFAULT '' NOT NULL,
    silence TEXT COLLATE "C" DEFAULT '' NOT NULL,
    PRIMARY KEY (run_uid, attempt, rank),
    FOREIGN KEY(run_uid, attempt) REFERENCES attempts (run_uid, number)
);

CREATE INDEX jobs_kept ON jobs (run_uid) WHERE forgotten = 0;

CREATE INDEX jobs_placed ON jobs (instance_uid) WHERE instance_uid <> '' AND state <> 'finished';

CREATE TABLE operations (
    apply_uid TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    uid TEXT COLLATE "C" DEFAULT '' NOT NULL,
    verb TEXT COLLATE "C" DEFAULT '' NOT NULL,
    resource_kind TEXT COLLATE "C" DEFAULT '' NOT NULL,
    resource_name TEXT COLLATE "C" DEFAULT '' NOT NULL,
    state TEXT COLLATE "C" DEFAULT '' NOT NULL,
    error TEXT COLLATE "C" DEFAULT '' NOT NULL,
    finished_at_ms BIGINT,
    closes TEXT COLLATE "C" DEFAULT '' NOT NULL,
    PRIMARY KEY (apply_uid, key),
    FOREIGN KEY(apply_uid) REFERENCES applies (uid)
);

CREATE INDEX operations_open ON operations (resource_kind, resource_name) WHERE state IN ('planned', 'intended');

CREATE INDEX operations_resource ON operations (resource_kind, resource_name);

CREATE TABLE units (
    instance_uid TEXT COLLATE "C" NOT NULL,
    unit TEXT COLLATE "C" NOT NULL,
    job_uid TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (instance_uid, unit),
    FOREIGN KEY(job_uid) REFERENCES allocations (job_uid) ON DELETE CASCADE
);

CREATE INDEX units_job ON units (job_uid);

CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

INSERT INTO alembic_version VALUES ('0009');
