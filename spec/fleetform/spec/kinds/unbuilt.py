"""
What people write that is not a field or a kind here: known to dstack, planned, or meant.

Three tables, asked when a field or a type is unknown. The first two turn a puzzle into a plain
sentence: it is a real thing, and this version does not do it. The third knows what the same
thing is called here.
"""

from __future__ import annotations

from collections.abc import Mapping

_CONTAINERS = "Containers are not carried out by this version of fleetform: commands run as processes of the host."
_CODE = "Fetching repositories is not carried out by this version of fleetform."
_CLOUDS = "Clouds are not carried out by this version of fleetform."
_SSH = "Hosts over SSH are not carried out by this version of fleetform."
_LATER = "This is not carried out by this version of fleetform."

_REMOVE = "Remove the field."
_INSTALLED = "Remove it, and have what the commands need installed on the hosts."
_FILES = "Name what the run needs under `files:`."
_LOCAL = "Write `local: true` for hosts on this machine."

TYPES: Mapping[str, str] = {
    "backend": _CLOUDS,
    "dev-environment": "Dev environments are not carried out by this version of fleetform.",
    "gateway": "Gateways are not carried out by this version of fleetform.",
    "policy": "Policies are not carried out by this version of fleetform.",
    "project": "Projects are not carried out by this version of fleetform.",
    "queue": "Queues are not carried out by this version of fleetform.",
    "quota": "Quotas are not carried out by this version of fleetform.",
    "reservation": "Reservations are not carried out by this version of fleetform.",
    "secret": "Secrets are not carried out by this version of fleetform.",
    "service": "Services are not carried out by this version of fleetform.",
    "user": "Users are not carried out by this version of fleetform.",
}
"""By type: real kinds, of dstack or planned, that this version does not carry out."""

_RUN: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("image", "docker", "privileged", "entrypoint", "registry_auth", "home_dir", "single_branch"),
        (_CONTAINERS, _INSTALLED),
    ),
    **dict.fromkeys(("python", "nvcc"), (_CONTAINERS, _INSTALLED)),
    "user": ("Choosing the account is not carried out by this version of fleetform.", _REMOVE),
    "repos": (_CODE, _FILES),
    **dict.fromkeys(
        (
            "backends", "regions", "availability_zones", "instance_types", "spot_policy", "max_price",
            "reservation", "creation_policy", "idle_duration",
        ),
        (_CLOUDS, "Remove it; `fleets:` says where a run may be placed."),
    ),
    "ports": ("Forwarding ports is not carried out by this version of fleetform.", _REMOVE),
    "schedule": ("Schedules are not carried out by this version of fleetform.", "Remove it; `rerun:` runs a task again."),
    **dict.fromkeys(
        (
            "startup_order", "stop_criteria", "utilization_policy", "instances", "begin", "deadline",
            "groups", "spread", "pack", "topology", "compat", "on_upstream_change", "on_silence",
            "requirements", "profile", "hooks",
        ),
        (_LATER, _REMOVE),
    ),
}  # fmt: skip

_FLEET: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("ssh_config", "ssh", "hosts"), (_SSH, _LOCAL)),
    **dict.fromkeys(
        (
            "backends", "regions", "availability_zones", "instance_types", "spot_policy", "max_price",
            "reservation", "placement", "idle_duration", "retry", "backend", "region", "aws", "gcp",
        ),
        (_CLOUDS, _LOCAL),
    ),
    "resources": (_CLOUDS, "Write what each node of a local fleet has under `local:`."),
    **dict.fromkeys(("update", "drain", "maintenance", "lost", "topology", "run_as", "env"), (_LATER, _REMOVE)),
}  # fmt: skip

_VOLUME: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("backend", "region", "size", "volume_id", "availability_zone", "auto_cleanup_duration"),
        ("Volumes of clouds are not carried out by this version of fleetform.", "Write `fleet:` and `path:` of a directory."),
    ),
}  # fmt: skip

FIELDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "environment": dict.fromkeys(("extends", "patches", "sources", "store"), (_LATER, _REMOVE)),
    "fleet": _FLEET,
    "task": _RUN,
    "volume": _VOLUME,
    "task.volumes": dict.fromkeys(
        ("instance", "instance_path", "optional"),
        (
            "Directories of the host are not carried out by this version of fleetform.",
            "Declare a volume with that `path:` and mount it by its name.",
        ),
    ),
}
"""By type, or type and field of a part: why it is not carried out, and what to do."""

_RESOURCE_WORDS = {
    word: field
    for field, words in {
        "resources.gpu": (
            "gpu",
            "gpus",
            "gres",
            "accelerator",
            "accelerators",
            "num_gpus",
            "gpus_per_node",
        ),
        "resources.cpu": ("cpu", "cpus", "cores", "cpus_per_task", "ncpus", "vcpus"),
        "resources.memory": ("memory", "mem", "ram"),
        "resources.disk": ("disk", "storage"),
        "resources.shm_size": ("shm_size", "shm"),
    }.items()
    for word in words
}

MEANT: Mapping[str, Mapping[str, str]] = {
    "task": {
        **_RESOURCE_WORDS,
        **dict.fromkeys(("cmd", "command", "script", "run", "args", "steps"), "commands"),
        **dict.fromkeys(
            ("depends", "needs", "after", "dependencies", "dependency", "requires"), "depends_on"
        ),
        **dict.fromkeys(("environment", "envs", "vars", "variables"), "env"),
        **dict.fromkeys(("time", "timeout", "time_limit", "walltime", "duration"), "max_duration"),
        **dict.fromkeys(("num_nodes", "replicas", "hosts"), "nodes"),
        **dict.fromkeys(("workdir", "cwd", "chdir", "dir"), "working_dir"),
        **dict.fromkeys(("mounts", "volume"), "volumes"),
        **dict.fromkeys(("fleet", "partition", "queue"), "fleets"),
        **dict.fromkeys(("sweep", "strategy", "params", "parameters"), "matrix"),
        **dict.fromkeys(("retries", "requeue", "restart", "restart_policy"), "retry"),
        **dict.fromkeys(("nice", "qos"), "priority"),
        **dict.fromkeys(("comment", "title", "summary"), "description"),
        **dict.fromkeys(("labels", "label", "tag"), "tags"),
        **dict.fromkeys(("grace", "grace_period", "kill_wait"), "stop_duration"),
        **dict.fromkeys(("max_parallel", "throttle", "singleton"), "concurrency.limit"),
    },
    "task.resources": {word: field.partition(".")[2] for word, field in _RESOURCE_WORDS.items()},
    "task.retry": {
        "attempts": "max_attempts",
        "retries": "max_attempts",
        "limit": "max_attempts",
        "events": "on",
    },
    "task.volumes": {
        "mount_path": "path",
        "target": "path",
        "ro": "read_only",
        "readonly": "read_only",
    },
    "task.files": {"source": "local_path", "src": "local_path", "target": "path", "dest": "path"},
    "fleet": {
        **dict.fromkeys(("labels", "label", "tag"), "tags"),
        **dict.fromkeys(("count", "size", "replicas", "min_nodes", "max_nodes"), "nodes"),
        **{
            word: field.replace("resources.", "local.")
            for word, field in _RESOURCE_WORDS.items()
            if "shm" not in word
        },
        **dict.fromkeys(("comment", "title"), "description"),
    },
    "fleet.local": {
        word: field.partition(".")[2]
        for word, field in _RESOURCE_WORDS.items()
        if "shm" not in word
    },
    "volume": {
        **dict.fromkeys(("labels", "label", "tag"), "tags"),
        **dict.fromkeys(("directory", "dir", "mount_path"), "path"),
        **dict.fromkeys(("fleets", "host", "instance"), "fleet"),
        **dict.fromkeys(("reclaim_policy", "on_delete"), "deletion_policy"),
    },
    "environment": {"id": "uid", "uuid": "uid", "policy": "rules"},
}
"""By type, or type and part: what the same thing is called here."""
