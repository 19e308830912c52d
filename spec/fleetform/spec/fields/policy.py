"""
The fields of a policy.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control

ROWS: Rows = {
    **EVERY_KIND,
    "match": control(),
    "deny": control(),
    "warn": control(),
    "approval": control(),
    "windows": control(),
    "windows.begin": control(unit="minutes"),
    "windows.end": control(unit="minutes"),
    "limits": control(),
    "limits.price": control(unit="micro-dollars"),
}

DEFAULTS: Mapping[str, str | int | bool] = {}
