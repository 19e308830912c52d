"""
The fields of `environment.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import RECORDED, Rows, control, identity

ROWS: Rows = {
    "type": identity(),
    "name": RECORDED,
    "uid": identity("store"),
    "abstract": control("spec.tree"),
    "extends": control("spec.overlay"),
    "values": control("spec.overlay"),
    "patches": control("spec.overlay"),
    "moved": control("plan"),
    "removed": control("plan"),
    "import": control("plan"),
    "rules": control("plan"),
    "rules.delete_percent": control("plan", "percent"),
    "rules.freeze": control("plan"),
    "rules.freeze.begin": control("plan", "moment"),
    "rules.freeze.end": control("plan", "moment"),
    "rules.freeze.duration": control("plan", "seconds"),
}

DEFAULTS: Mapping[str, str | int | bool] = {
    "abstract": False,
    "rules.allow_destroy": False,
    "rules.delete_percent": 10,
    "rules.delete_count": 5,
}
