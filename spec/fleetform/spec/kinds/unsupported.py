"""
Why kinds, types and single fields are not supported yet, a sentence each.

Their rows in `fields` list which fields these are; a field without a sentence here gets a general one.
"""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, str] = {
    "backend": "Cloud backends are not supported yet.",
    "dev-environment": "Dev environments are not supported yet.",
    "gateway": "Gateways are not supported yet.",
    "policy": "Policies are not supported yet; the `rules` of the environment apply.",
    "project": "Projects are not supported yet: an environment is one project.",
    "quota": "Quotas are not supported yet.",
    "reservation": "Reservations are not supported yet.",
    "secret": "Secrets are not supported yet.",
    "service": "Services are not supported yet.",
    "user": "Users are not supported yet: everything belongs to the person who applies it.",
}
"""By kind or by `type:`: not supported as a whole."""

_CONTAINERS = "Containers are not supported yet: runs are processes of the host."
_BASE_IMAGE = (
    "Containers and base images are not supported yet: commands use the programs on the host."
)
_CLOUDS = "Choosing hosts of clouds by run is not supported yet: declare it at the fleet, and name the fleet in `fleets`."
_PARTS = "Selecting or dividing GPUs by this is not supported yet."

WHY: Mapping[str, Mapping[str, str]] = {
    "fleet": {
        "gpu_isolation": "Isolation is not supported yet: runs know which GPUs are theirs, and could use others.",
        "ssh_config.hosts.blocks": "Blocks of single hosts are not supported yet: `blocks` of the fleet divides all of them.",
        "ssh_config.hosts.maintenance": "Maintenance of hosts is not supported yet; `drain` is.",
        "ssh_config.hosts.tags": "Choosing hosts by tag is not supported yet: declare a fleet for each sort of host.",
        "ssh_config.hosts.topology": "Topology is not supported yet: all hosts of a fleet are equally close.",
        **dict.fromkeys(
            (
                "ssh_config.ssh_key",
                "ssh_config.hosts.ssh_key",
                "ssh_config.proxy_jump.ssh_key",
                "ssh_config.hosts.proxy_jump.ssh_key",
                "aws.proxy_jump.ssh_key",
            ),
            "Keys in documents are not supported yet: name a file with `identity_file`.",
        ),
    },
    "queue": {
        "host_tags": "Choosing hosts by tag is not supported yet: name `fleets`.",
        "tier": "Tiers are not supported yet; use `priority` of runs.",
        **dict.fromkeys(
            ("default_duration", "max_duration", "nodes"), "Limits of queues are not supported yet."
        ),
        "allow": "Access to queues is not supported yet.",
        "preemption": "Preemption is not supported yet.",
        "runtime": "A queue's runtime is not supported yet; set `runtime` of runs.",
        "state": "Closing a queue is not supported yet.",
    },
    "run": {
        **dict.fromkeys(
            ("image", "docker", "privileged", "entrypoint", "registry_auth", "user"), _CONTAINERS
        ),
        **dict.fromkeys(("python", "nvcc"), _BASE_IMAGE),
        **dict.fromkeys(
            ("home_dir", "setup"),
            "It has no effect: dstack ignores it since 0.18.31, and fleetform does too.",
        ),
        "repos": "Fetching repositories is not supported yet; use `files:`.",
        "single_branch": "Fetching repositories is not supported yet.",
        "dstack": "Access to the controller from jobs is not supported yet.",
        "groups": "Groups are not supported yet: all nodes of a run are alike.",
        "instances": "Choosing single hosts is not supported yet; name a fleet of one host.",
        **dict.fromkeys(("pack", "spread"), "Topology is not supported yet."),
        **dict.fromkeys(
            ("backends", "regions", "availability_zones", "instance_types", "reservation"), _CLOUDS
        ),
        **dict.fromkeys(
            ("spot_policy", "max_price", "idle_duration", "backend_options"),
            "Creating hosts for a run is not supported yet: runs use the hosts of existing fleets.",
        ),
        **dict.fromkeys(
            (
                "resources.gpu.slice",
                "resources.gpu.total_memory",
                "resources.gpu.compute_capability",
            ),
            _PARTS,
        ),
        "begin": "A start time is not supported yet.",
        "deadline": "Deadlines are not supported yet; `max_duration` is.",
        "schedule": "Schedules are not supported yet.",
        "utilization_policy": "Measuring the use of GPUs is not supported yet.",
        "volumes.instance_path": "Mounting directories of the host is not supported yet.",
        "volumes.instance": "Directories that hosts keep for runs are not supported yet.",
        "volumes.optional": "Mounting directories of the host is not supported yet.",
    },
}
"""By kind and path of the field."""

_RUN_VALUES = {
    "env": "variables without a value",
    "files": "destinations outside of the job's working directory",
    "fleets": "fleets of other projects (`PROJECT/NAME`)",
    "on_upstream_change": "`rerun`",
    "resources.cpu": "an architecture",
    "runtime": "`container`",
    "stop_duration": "`off`",
    "volumes": "directories of hosts, and a list of several names",
}

VALUES: Mapping[str, Mapping[str, str]] = {
    "fleet": {
        "backends": "fleets in clouds other than AWS",
        "blocks": "`auto`",
        "env": "variables without a value",
        "kubernetes": "fleets of a cluster",
        "runtime": "`container`",
        "slurm": "fleets of a cluster",
    },
    "profile": {name: _RUN_VALUES[name] for name in ("env", "fleets", "runtime", "stop_duration")},
    "run": _RUN_VALUES,
    "volume": {"backend": "disks of backends other than `aws`"},
}
"""
By kind and path of a supported field: its values that are not supported yet.

The models report them when they are set (`Document.beyond` and `whole`); this is what `explain`,
editors and the reference say before.
"""
