"""
The fields of a volume.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control, replaced

ROWS: Rows = {
    **EVERY_KIND,
    "fleet": replaced("providers"),
    "path": replaced("providers"),
    "deletion_policy": control("apply"),
}

DEFAULTS: Mapping[str, str | int | bool] = {"deletion_policy": "retain"}
