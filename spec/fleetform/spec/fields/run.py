"""
The fields of a run: tasks, dev environments and services.

In the order in which a document is written: what runs, in what, with what, on what, where, when,
and how it is driven.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control, execution, identity

_RESOURCES: Rows = {
    "resources": execution("schedule"),
    "resources.cpu": execution("schedule", "millicores"),
    "resources.memory": execution("schedule", "bytes"),
    "resources.disk": execution("schedule", "bytes"),
    "resources.shm_size": execution("agents.host", "bytes"),
    "resources.gpu.memory": execution("schedule", "bytes"),
    "resources.gpu.count": execution("schedule"),
    "resources.gpu.slice": execution(),
    "resources.gpu.total_memory": execution(unit="bytes"),
    "resources.gpu.compute_capability": execution(),
}

# A group of nodes or replicas; what is not said of a part is that of the group.
_GROUPS: Rows = {
    "groups": execution(),
    "groups.resources.cpu": execution(unit="millicores"),
    "groups.resources.memory": execution(unit="bytes"),
    "groups.resources.disk": execution(unit="bytes"),
    "groups.resources.shm_size": execution(unit="bytes"),
    "groups.resources.gpu.memory": execution(unit="bytes"),
    "groups.resources.gpu.total_memory": execution(unit="bytes"),
    "groups.replicas": control(),
    "groups.scaling": control(),
    "groups.scaling.target": control(unit="millionths"),
    "groups.scaling.window": control(unit="seconds"),
    "groups.scaling.scale_up_delay": control(unit="seconds"),
    "groups.scaling.scale_down_delay": control(unit="seconds"),
}

ROWS: Rows = {
    **EVERY_KIND,
    "profile": control("spec.overlay"),
    "runtime": execution("agents.host"),
    "image": execution(),
    "registry_auth": execution(),
    "python": execution(),
    "nvcc": execution(),
    "docker": execution(),
    "privileged": execution(),
    "entrypoint": execution(),
    "user": execution(),
    # dstack ignores these two as well.
    "home_dir": control(essential=False),
    "setup": control(essential=False),
    "shell": execution("agents.host"),
    "commands": execution("agents.host"),
    "compat": execution(),
    "env": execution("agents.host"),
    "working_dir": execution("agents.host"),
    "dstack": execution(),
    "repos": execution(),
    # Says how `repos` are fetched, and not what is fetched.
    "single_branch": control(essential=False),
    "files": execution("agents.host"),
    "files.size": execution("agents.host", "bytes"),
    "volumes": execution("agents.host"),
    "volumes.instance_path": execution(),
    "volumes.instance": execution(),
    # Goes with a directory of the host, which is told.
    "volumes.optional": execution(essential=False),
    # A dev environment's own. Without its editor it is still reached by SSH.
    "ide": control(essential=False),
    "version": control(essential=False),
    "init": execution(),
    "inactivity_duration": control(unit="seconds"),
    # A job listens on its host, whoever is let through to it.
    "ports": control(essential=False),
    # A service's own.
    "port": execution(),
    "replicas": control(),
    "scaling": control(),
    "scaling.target": control(unit="millionths"),
    "scaling.window": control(unit="seconds"),
    "scaling.scale_up_delay": control(unit="seconds"),
    "scaling.scale_down_delay": control(unit="seconds"),
    "gateway": control(),
    "https": control(),
    "auth": control(),
    "strip_prefix": control(),
    "model": control(),
    "rate_limits": control(),
    "rate_limits.rps": control(unit="millionths"),
    "probes": control(),
    "probes.timeout": control(unit="seconds"),
    "probes.interval": control(unit="seconds"),
    **_RESOURCES,
    "nodes": execution("schedule"),
    **_GROUPS,
    "startup_order": execution("lifecycle"),
    "stop_criteria": execution("lifecycle"),
    # An element's own values. Adding one to the document adds an element and changes no other.
    "index": execution("agents.host"),
    "matrix": execution("agents.host"),
    "array": identity("spec.expand"),
    "key": identity("spec.expand"),
    "fleets": execution("schedule"),
    "instances": execution(),
    "queue": control(),
    "pack": execution(),
    "spread": execution(),
    "backends": execution(),
    "regions": execution(),
    "availability_zones": execution(),
    "instance_types": execution(),
    "reservation": execution(),
    # Hosts that are there already cost the same with a run and without, and nobody takes them
    # back; nothing makes other hosts for a run.
    "spot_policy": execution(essential=False),
    "max_price": control(unit="micro-dollars", essential=False),
    "creation_policy": control(essential=False),
    "idle_duration": control(unit="seconds", essential=False),
    "backend_options": control(essential=False),
    "priority": control("schedule"),
    "begin": control(unit="moment"),
    "deadline": control(unit="moment"),
    "schedule": control(),
    "max_duration": control("agents.host", "seconds"),
    "stop_duration": control("agents.host", "seconds"),
    "checkpoint": control("agents.host"),
    "checkpoint.lead": control("agents.host", "seconds"),
    # It frees GPUs for others; the run itself is the same.
    "utilization_policy": control(essential=False),
    "utilization_policy.min_gpu_utilization": control(unit="percent", essential=False),
    "utilization_policy.time_window": control(unit="seconds", essential=False),
    "on_silence": control("lifecycle"),
    "on_silence.after": control(unit="seconds"),
    "retry": control("lifecycle"),
    "retry.duration": control("lifecycle", "seconds"),
    "retry.delay": control("lifecycle", "seconds"),
    "depends_on": control("lifecycle"),
    "on_upstream_change": control("lifecycle"),
    "concurrency": control("schedule"),
    "state": control("lifecycle"),
    "on_change": control("plan"),
    "rerun": control("plan"),
}

DEFAULTS: Mapping[str, str | int | bool] = {
    "shell": "sh",
    "nodes": 1,
    "priority": 0,
    "stop_duration": "10s",
    "runtime": "process",
    "state": "running",
    "on_change": "hold",
    "rerun": 0,
    "volumes.read_only": False,
    "depends_on.each": False,
    "startup_order": "any",
    "stop_criteria": "all-done",
    "on_silence": "wait",
    "on_upstream_change": "note",
    "spot_policy": "on-demand",
    "creation_policy": "reuse-or-create",
    "replicas": 1,
    "auth": True,
    "https": True,
    "strip_prefix": True,
}
