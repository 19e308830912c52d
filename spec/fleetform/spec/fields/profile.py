"""
The fields of a profile.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control

# What a run takes over is judged as a field of the run.
_LENT = control("spec.overlay")

ROWS: Rows = {
    **EVERY_KIND,
    "default": _LENT,
    "backends": _LENT,
    "regions": _LENT,
    "availability_zones": _LENT,
    "instance_types": _LENT,
    "reservation": _LENT,
    "spot_policy": _LENT,
    "max_price": control("spec.overlay", "micro-dollars"),
    "idle_duration": control("spec.overlay", "seconds"),
    "backend_options": _LENT,
    "backend_options.min_reliability": _LENT._replace(unit="millionths"),
    "creation_policy": _LENT,
    "retry": _LENT,
    "retry.duration": control("spec.overlay", "seconds"),
    "retry.delay": control("spec.overlay", "seconds"),
    "max_duration": control("spec.overlay", "seconds"),
    "stop_duration": control("spec.overlay", "seconds"),
    "utilization_policy": _LENT,
    "utilization_policy.min_gpu_utilization": control("spec.overlay", "percent"),
    "utilization_policy.time_window": control("spec.overlay", "seconds"),
    "startup_order": _LENT,
    "stop_criteria": _LENT,
    "schedule": _LENT,
    "fleets": _LENT,
    "instances": _LENT,
    "queue": _LENT,
    "priority": _LENT,
    "env": _LENT,
    "checkpoint": _LENT,
    "checkpoint.lead": control("spec.overlay", "seconds"),
    "on_silence": _LENT,
    "on_silence.after": control("spec.overlay", "seconds"),
    "runtime": _LENT,
}

DEFAULTS: Mapping[str, str | int | bool] = {}
