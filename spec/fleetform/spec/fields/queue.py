"""
The fields of a queue.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control

ROWS: Rows = {
    **EVERY_KIND,
    "fleets": control("schedule"),
    "host_tags": control(),
    "default": control("schedule"),
    "tier": control(),
    "default_duration": control(unit="seconds"),
    "max_duration": control(unit="seconds"),
    "nodes": control(),
    "allow": control(),
    "preemption": control(),
    "preemption.warning": control(unit="seconds"),
    "preemption.after": control(unit="seconds"),
    "runtime": control(),
    "state": control(),
}

DEFAULTS: Mapping[str, str | int | bool] = {"tier": 0, "state": "open"}
