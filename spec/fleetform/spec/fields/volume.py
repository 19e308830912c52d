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
    # What disks of backends have; the document as a whole is told.
    "backend": replaced(),
    "region": replaced(),
    "availability_zone": replaced(),
    "size": control(unit="bytes"),
    "volume_id": replaced(),
    "auto_cleanup_duration": control(unit="seconds"),
    "claim_name": replaced(),
    "storage_class_name": replaced(),
    "access_modes": replaced(),
    "read_only": control(),
}

DEFAULTS: Mapping[str, str | int | bool] = {"deletion_policy": "retain"}
