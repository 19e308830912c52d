"""
The fields of a quota.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control

ROWS: Rows = {
    **EVERY_KIND,
    "project": control(),
    "user": control(),
    "queue": control(),
    "each": control(),
    "gpus": control(),
    "cpus": control(unit="millicores"),
    "memory": control(unit="bytes"),
    "nodes": control(),
    "jobs": control(),
    "waiting": control(),
    "max_duration": control(unit="seconds"),
    "gpu_hours": control(),
    "budget": control(),
    "budget.limit": control(unit="micro-dollars"),
    "shares": control(),
}

DEFAULTS: Mapping[str, str | int | bool] = {}
