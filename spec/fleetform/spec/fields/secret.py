"""
The fields of a secret.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control

ROWS: Rows = {
    **EVERY_KIND,
    "env": control(),
    "file": control(),
    "credential": control(),
    "vault": control(),
    "aws": control(),
    "gcp": control(),
    "kubernetes": control(),
    "projects": control(),
}

DEFAULTS: Mapping[str, str | int | bool] = {}
