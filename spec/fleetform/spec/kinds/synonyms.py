"""What people mean by words of other systems."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fleetform.spec.kinds.synonyms_kinds import KINDS_WORDS
from fleetform.spec.names import bare_word

__all__ = ["MEANT", "VALUES", "meant_value"]

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

# What dstack's users, Slurm's (sbatch), Kubernetes' and those of docker compose say.
_RUN_WORDS = {
    **_RESOURCE_WORDS,
    **dict.fromkeys(
        ("depends", "needs", "after", "dependencies", "dependency", "requires"), "depends_on"
    ),
    **dict.fromkeys(("environment", "envs", "vars", "variables", "export", "env_file"), "env"),
    **dict.fromkeys(
        ("time", "timeout", "time_limit", "walltime", "duration", "active_deadline_seconds"),
        "max_duration",
    ),
    **dict.fromkeys(("workdir", "cwd", "chdir", "dir"), "working_dir"),
    **dict.fromkeys(("mounts", "volume", "volume_mounts", "binds"), "volumes"),
    **dict.fromkeys(("fleet", "node_selector"), "fleets"),
    **dict.fromkeys(("partition", "queues"), "queue"),
    **dict.fromkeys(("nodelist", "instance", "hostname"), "instances"),
    **dict.fromkeys(("retries", "requeue", "restart", "restart_policy"), "retry"),
    **dict.fromkeys(("backoff_limit", "max_restarts", "max_retries"), "retry.max_attempts"),
    **dict.fromkeys(("nice", "qos", "priority_class_name"), "priority"),
    **dict.fromkeys(("comment", "title", "summary"), "description"),
    **dict.fromkeys(("labels", "label", "tag", "annotations"), "tags"),
    **dict.fromkeys(
        ("grace", "grace_period", "kill_wait", "stop_grace_period",
         "termination_grace_period_seconds"),
        "stop_duration",
    ),
    **dict.fromkeys(("max_parallel", "throttle", "singleton", "parallelism"), "concurrency.limit"),
    **dict.fromkeys(("cron", "crontab"), "schedule.cron"),
    **dict.fromkeys(("start", "not_before", "earliest"), "begin"),
    **dict.fromkeys(("signal", "warning"), "checkpoint"),
    **dict.fromkeys(("repo", "repository", "git"), "repos"),
    **dict.fromkeys(("container", "container_image", "docker_image", "images"), "image"),
    **dict.fromkeys(("image_pull_secrets", "pull_secret", "registry"), "registry_auth"),
    **dict.fromkeys(("uid", "run_as_user", "security_context"), "user"),
    **dict.fromkeys(("spot", "preemptible", "use_spot"), "spot_policy"),
    **dict.fromkeys(("region", "cloud_region"), "regions"),
    **dict.fromkeys(("zone", "zones", "availability_zone"), "availability_zones"),
    **dict.fromkeys(("backend", "cloud", "provider"), "backends"),
    **dict.fromkeys(("instance_type", "machine_type"), "instance_types"),
    **dict.fromkeys(("price", "max_cost"), "max_price"),
    **dict.fromkeys(("profiles", "template"), "profile"),
    **dict.fromkeys(("job_name", "id"), "name"),
    "file": "files",
}  # fmt: skip

_COMMANDS = dict.fromkeys(("cmd", "command", "script", "run", "args", "steps"), "commands")

MEANT: Mapping[str, Mapping[str, str]] = {
    "task": {
        **_RUN_WORDS,
        **_COMMANDS,
        **dict.fromkeys(("num_nodes", "replicas", "hosts"), "nodes"),
        **dict.fromkeys(("sweep", "strategy", "params", "parameters"), "matrix"),
        **dict.fromkeys(("completions", "indices", "job_array"), "array"),
        **dict.fromkeys(("port", "expose"), "ports"),
        "init": "commands",
    },
    "dev-environment": {
        **_RUN_WORDS,
        **dict.fromkeys(
            (
                "commands",
                "cmd",
                "command",
                "script",
                "run",
                "args",
                "steps",
                "on_start",
                "entrypoint",
            ),
            "init",
        ),
        **dict.fromkeys(("port", "expose"), "ports"),
        "editor": "ide",
        **dict.fromkeys(
            ("idle_timeout", "inactivity", "inactivity_timeout"), "inactivity_duration"
        ),
    },
    "service": {
        **_RUN_WORDS,
        **_COMMANDS,
        **dict.fromkeys(("ports", "expose", "container_port", "target_port"), "port"),
        **dict.fromkeys(("nodes", "count", "instances_count", "deploy"), "replicas"),
        **dict.fromkeys(("autoscaling", "hpa", "scale"), "scaling"),
        **dict.fromkeys(
            (
                "probe",
                "healthcheck",
                "health_check",
                "liveness_probe",
                "readiness_probe",
                "startup_probe",
            ),
            "probes",
        ),
        **dict.fromkeys(("rate_limit", "limits"), "rate_limits"),
        **dict.fromkeys(("tls", "ssl"), "https"),
        "init": "commands",
    },
    "service.scaling": {"rps": "target", "value": "target", "delay": "scale_up_delay"},
    "service.probes": {
        **dict.fromkeys(("path", "uri", "endpoint"), "url"),
        **dict.fromkeys(("period", "period_seconds"), "interval"),
        **dict.fromkeys(("timeout_seconds",), "timeout"),
        **dict.fromkeys(("success_threshold", "threshold"), "ready_after"),
    },
    "service.groups": {"count": "replicas", "nodes": "replicas"},
    "task.groups": {"count": "nodes", "replicas": "nodes", "size": "nodes"},
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
        "host_path": "instance_path",
        "source": "name",
        "ro": "read_only",
        "readonly": "read_only",
    },
    "task.files": {"source": "local_path", "src": "local_path", "target": "path", "dest": "path"},
    **KINDS_WORDS,
    "environment": {"id": "uid", "uuid": "uid", "policy": "rules"},
}
"""By type, or type and part: what the same thing is called here."""

# What people write as a field's value that is none of its choices, and which of them it is here.
# The words are those of Slurm, Kubernetes, Terraform, container engines and the clouds. A field of
# one name may have other choices in another kind, so whoever asks looks whether it has the answer.
VALUES: Mapping[str, Mapping[str, str]] = {
    "runtime": {
        "container": "docker podman containerd enroot pyxis apptainer singularity oci kubernetes",
        "process": "host native bare bare-metal none shell",
    },
    "spot_policy": {
        "spot": "preemptible interruptible low-priority spot-only",
        "on-demand": "regular standard reserved",
        "auto": "any either both",
    },
    "creation_policy": {"reuse-or-create": "create", "reuse": "never never-create"},
    "startup_order": {"any": "parallel all", "workers-first": "master-last"},
    "stop_criteria": {"all-done": "all", "master-done": "master leader"},
    "state": {
        "running": "started enabled up",
        "stopped": "paused suspended cancelled disabled down",
        "open": "up enabled active",
        "draining": "drain drained inactive",
        "closed": "down disabled",
        "active": "enabled",
        "disabled": "inactive suspended locked",
    },
    "on_change": {"restart": "replace recreate rerun", "hold": "ignore wait none manual"},
    "when": {
        "succeeded": "afterok success completed done",
        "failed": "afternotok failure error",
        "finished": "afterany always ended",
        "started": "after running",
    },
    "on": {
        "error": "failure fail exit on-failure",
        "interruption": "spot interrupted",
        "no-capacity": "capacity insufficient-capacity",
        "node-failure": "node-fail lost host-failure",
        "preemption": "preempted evicted",
        "time-limit": "timeout max-duration",
    },
    "deletion_policy": {
        "retain": "keep orphan snapshot never",
        "delete": "destroy remove recycle",
    },
    "access_modes": {
        "ReadWriteOnce": "rwo",
        "ReadOnlyMany": "rox",
        "ReadWriteMany": "rwx",
        "ReadWriteOncePod": "rwop",
    },
    "strategy": {"drain": "rolling rollingupdate", "recreate": "replace all-at-once"},
    "placement": {"cluster": "compact pack group efa infiniband", "any": "none default"},
    "sharing": {
        "whole": "exclusive none off",
        "exact": "shared yes user",
        "blocks": "slots mig timeslicing",
    },
    "run_as": {"owner": "user submitter", "agent": "root service"},
    "gpu_isolation": {"enforced": "strict cgroup hard", "advisory": "soft none off"},
    "mode": {"off": "none never", "requeue": "checkpoint", "stop": "cancel kill terminate"},
    "role": {"admin": "owner administrator", "reader": "viewer read-only", "user": "member"},
    "repeat": {"daily": "day everyday", "weekly": "week"},
    "each": {"user": "users person", "project": "projects account namespace"},
    "ide": {"vscode": "code visual-studio-code"},
    "host_keys": {"known": "yes strict", "first-use": "accept-new no tofu"},
}
"""By field, then by choice: the words, as they are compared, with a dash between parts."""


def meant_value(field: str, word: str, choices: Collection[str]) -> str | None:
    """The choice of `field` that `word` means elsewhere; None if none is known."""
    bare = bare_word(word)
    for choice, words in VALUES.get(field, {}).items():
        if choice in choices and bare in map(bare_word, words.split()):
            return choice
    return None
