"""
The fields of a profile.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control

ROWS: Rows = {
    **EVERY_KIND,
    "default": control(),
    "backends": control(),
    "regions": control(),
    "availability_zones": control(),
    "instance_types": control(),
    "reservation": control(),
    "spot_policy": control(),
    "max_price": control(unit="micro-dollars"),
    "idle_duration": control(unit="seconds"),
    "backend_options": control(),
    "creation_policy": control(),
    "retry": control(),
    "retry.duration": control(unit="seconds"),
    "retry.delay": control(unit="seconds"),
    "max_duration": control(unit="seconds"),
    "stop_duration": control(unit="seconds"),
    "utilization_policy": control(),
    "utilization_policy.min_gpu_utilization": control(unit="percent"),
    "utilization_policy.time_window": control(unit="seconds"),
    "startup_order": control(),
    "stop_criteria": control(),
    "schedule": control(),
    "fleets": control(),
    "instances": control(),
    "queue": control(),
    "priority": control(),
    "env": control(),
    "checkpoint": control(),
    "checkpoint.lead": control(unit="seconds"),
    "on_silence": control(),
    "on_silence.after": control(unit="seconds"),
    "runtime": control(),
}

DEFAULTS: Mapping[str, str | int | bool] = {}
