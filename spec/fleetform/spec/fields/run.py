"""
The fields of a run: tasks, dev environments and services.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control, execution, identity

_GPU: Rows = {
    "gpu.memory": execution("schedule", "bytes"),
    "gpu.count": execution("schedule"),
}

ROWS: Rows = {
    **EVERY_KIND,
    "commands": execution("agents.host"),
    "shell": execution("agents.host"),
    "env": execution("agents.host"),
    "working_dir": execution("agents.host"),
    "runtime": execution("agents.host"),
    "files": execution("agents.host"),
    "files.size": execution("agents.host", "bytes"),
    "volumes": execution("agents.host"),
    "resources": execution("schedule"),
    "resources.cpu": execution("schedule", "millicores"),
    "resources.memory": execution("schedule", "bytes"),
    "resources.disk": execution("schedule", "bytes"),
    "resources.shm_size": execution("agents.host", "bytes"),
    **{f"resources.{path}": row for path, row in _GPU.items()},
    "nodes": execution("schedule"),
    "fleets": execution("schedule"),
    # An element's own values. Adding one to the document adds an element and changes no other.
    "index": execution("agents.host"),
    "matrix": execution("agents.host"),
    "array": identity("spec.expand"),
    "key": identity("spec.expand"),
    "priority": control("schedule"),
    "max_duration": control("agents.host", "seconds"),
    "stop_duration": control("agents.host", "seconds"),
    "checkpoint": control("agents.host"),
    "checkpoint.lead": control("agents.host", "seconds"),
    "retry": control("lifecycle"),
    "retry.duration": control("lifecycle", "seconds"),
    "retry.delay": control("lifecycle", "seconds"),
    "depends_on": control("lifecycle"),
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
}
