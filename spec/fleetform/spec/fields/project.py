"""
The fields of a project.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control

ROWS: Rows = {
    **EVERY_KIND,
    "members": control(),
    "public": control(),
    "fleets": control(),
    "queues": control(),
    "default_queue": control(),
    "default_profile": control(),
    "backends": control(),
    "grants": control(),
    "cost_center": control(),
}

DEFAULTS: Mapping[str, str | int | bool] = {}
