"""
The fields of a fleet.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control, secret

ROWS: Rows = {
    **EVERY_KIND,
    "nodes": control("providers"),
    "local": control("providers.local"),
    "local.cpu": control("providers.local", "millicores"),
    "local.memory": control("providers.local", "bytes"),
    "local.disk": control("providers.local", "bytes"),
    "local.gpu.memory": control("providers.local", "bytes"),
    "ssh_config": control(),
    "ssh_config.ssh_key.private": secret(control()),
    "ssh_config.proxy_jump.ssh_key.private": secret(control()),
    "ssh_config.hosts.ssh_key.private": secret(control()),
    "ssh_config.hosts.proxy_jump.ssh_key.private": secret(control()),
    "ssh_config.hosts.capacity.cpu": control(unit="millicores"),
    "ssh_config.hosts.capacity.memory": control(unit="bytes"),
    "ssh_config.hosts.capacity.disk": control(unit="bytes"),
    "ssh_config.hosts.capacity.gpu.memory": control(unit="bytes"),
    "ssh_config.hosts.maintenance.begin": control(unit="moment"),
    "ssh_config.hosts.maintenance.end": control(unit="moment"),
    "kubernetes": control(),
    "slurm": control(),
    "resources": control(),
    "resources.cpu": control(unit="millicores"),
    "resources.memory": control(unit="bytes"),
    "resources.disk": control(unit="bytes"),
    "resources.shm_size": control(unit="bytes"),
    "resources.gpu.memory": control(unit="bytes"),
    "backends": control(),
    "regions": control(),
    "availability_zones": control(),
    "instance_types": control(),
    "reservation": control(),
    "spot_policy": control(),
    "max_price": control(unit="micro-dollars"),
    "idle_duration": control(unit="seconds"),
    "backend_options": control(),
    "backend_options.min_reliability": control(unit="millionths"),
    "retry": control(),
    "retry.duration": control(unit="seconds"),
    "retry.delay": control(unit="seconds"),
    # Hosts of one machine are as close to each other as can be.
    "placement": control(essential=False),
    "env": control("agents.host"),
    "sharing": control("schedule"),
    "blocks": control("schedule"),
    "price": control("plan", "micro-dollars"),
    "drain": control("schedule"),
    "update": control("lifecycle"),
    "run_as": control(),
    "gpu_isolation": control(),
    "runtime": control("agents.host"),
}

DEFAULTS: Mapping[str, str | int | bool] = {"nodes": 1, "placement": "any", "sharing": "exact"}
