"""
The fields of a fleet.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control

ROWS: Rows = {
    **EVERY_KIND,
    "nodes": control("providers"),
    "local": control("providers.local"),
    "local.cpu": control("providers.local", "millicores"),
    "local.memory": control("providers.local", "bytes"),
    "local.disk": control("providers.local", "bytes"),
    "local.gpu.memory": control("providers.local", "bytes"),
    "sharing": control("schedule"),
    "blocks": control("schedule"),
}

DEFAULTS: Mapping[str, str | int | bool] = {"nodes": 1, "sharing": "exact"}
