"""
Why nothing carries something out yet, in words: kinds and types as a whole, and single fields.

Which fields those are is said by their rows in `fields`; what is missing here is told in general
words.
"""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, str] = {
    "backend": "Nothing asks backends for hosts yet.",
    "dev-environment": "Nothing makes dev environments yet.",
    "gateway": "Nothing makes gateways yet, and services are not kept either.",
    "policy": "Nothing compares plans with policies yet; the `rules` of the environment hold.",
    "project": "An environment is one project so far.",
    "queue": "All runs wait in one queue so far.",
    "quota": "Nothing counts what people use against quotas yet.",
    "reservation": "Nothing keeps hosts for anybody yet.",
    "secret": "Nothing hands out secrets yet.",
    "service": "Nothing keeps services yet: neither their replicas nor what leads to them.",
    "user": "Everything belongs to whoever applies it so far.",
}
"""By kind or by `type:`: nothing carries any of it out."""

_CONTAINERS = "Runs are processes of the host; nothing starts containers yet."
_BASE_IMAGE = (
    "Commands find what is installed on the host; nothing starts containers, and so no base image."
)
_CLOUDS = "Nothing makes hosts in clouds yet, so that no host has one."
_PARTS = "Nothing measures or divides GPUs by this yet."

WHY: Mapping[str, Mapping[str, str]] = {
    "fleet": {
        "gpu_isolation": "Runs are told which GPUs are theirs, and nothing keeps them to these yet.",
        "placement": "Hosts of one machine are as close to each other as can be.",
        "run_as": "Jobs have the account of the agent so far.",
    },
    "run": {
        **dict.fromkeys(
            ("image", "docker", "privileged", "entrypoint", "registry_auth", "user"), _CONTAINERS
        ),
        **dict.fromkeys(("python", "nvcc"), _BASE_IMAGE),
        **dict.fromkeys(("home_dir", "setup"), "dstack ignores it since 0.18.31, and so do we."),
        "repos": "Nothing fetches repositories yet; what is listed under `files:` is there.",
        "single_branch": "It says how `repos` are fetched, and nothing fetches them yet.",
        "dstack": "Jobs do not reach the controller yet.",
        "ports": "Nothing forwards ports yet; programs listen on their host.",
        "groups": "All nodes of a run are alike so far.",
        "queue": "Nothing divides runs among queues yet; `fleets` and `priority` hold.",
        "instances": "A run is placed on any host of its fleets; name a fleet of one host.",
        **dict.fromkeys(("pack", "spread"), "Nothing knows yet where hosts stand."),
        **dict.fromkeys(
            ("backends", "regions", "availability_zones", "instance_types", "reservation"), _CLOUDS
        ),
        **dict.fromkeys(
            ("spot_policy", "max_price", "creation_policy", "idle_duration", "backend_options"),
            "Runs are placed on hosts that are there; nothing makes others for them yet.",
        ),
        **dict.fromkeys(
            (
                "resources.gpu.slice",
                "resources.gpu.total_memory",
                "resources.gpu.compute_capability",
            ),
            _PARTS,
        ),
        "on_silence.after": "Jobs whose host nobody reaches go on; nothing ends them yet.",
        "begin": "Nothing waits for a time yet.",
        "deadline": "Nothing looks at deadlines yet; `max_duration` holds.",
        "schedule": "Nothing starts runs by the clock yet.",
        "utilization_policy": "Nothing measures how busy GPUs are yet.",
        "volumes.instance_path": "Directories of the host are not mounted yet.",
        "volumes.instance": "Hosts keep no directories of their own for runs yet.",
        "volumes.optional": "It goes with a directory of the host, and none is mounted yet.",
    },
}
"""By kind and path of the field."""
