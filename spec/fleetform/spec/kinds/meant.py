"""
What people write that is not a field here, and what the same thing is called here.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    "fleet.ssh_config": {
        **dict.fromkeys(("username", "login"), "user"),
        **dict.fromkeys(("key", "key_file", "private_key", "ssh_key_file"), "identity_file"),
        **dict.fromkeys(("nodes", "host", "hostnames", "servers", "machines"), "hosts"),
        **dict.fromkeys(("bastion", "jump", "jump_host", "gateway"), "proxy_jump"),
        **dict.fromkeys(("cidr", "subnet"), "network"),
    },
    "fleet.ssh_config.hosts": {
        **dict.fromkeys(("host", "name", "address", "addr", "ip", "node"), "hostname"),
        **dict.fromkeys(("username", "login"), "user"),
        **dict.fromkeys(("key", "key_file", "private_key"), "identity_file"),
        **dict.fromkeys(("bastion", "jump", "jump_host"), "proxy_jump"),
        **dict.fromkeys(("private_ip", "internal_address"), "internal_ip"),
        **dict.fromkeys(("has", "resources"), "capacity"),
        **dict.fromkeys(("labels", "label", "features", "feature"), "tags"),
        **dict.fromkeys(("cpu", "cpus"), "capacity.cpu"),
        **dict.fromkeys(("gpu", "gpus", "gres"), "capacity.gpu"),
        **dict.fromkeys(("memory", "mem", "realmemory", "ram"), "capacity.memory"),
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
