"""
The fields of a reservation.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control, replaced

ROWS: Rows = {
    **EVERY_KIND,
    "fleet": replaced(),
    "nodes": control(),
    "hosts": control(),
    "begin": control(unit="moment"),
    "end": control(unit="moment"),
    "duration": control(unit="seconds"),
    "repeat": control(),
    "users": control(),
    "projects": control(),
    "maintenance": control(),
    "purge_after": control(unit="seconds"),
    "ignore_running": control(),
}

DEFAULTS: Mapping[str, str | int | bool] = {}
