"""
The fields of a user.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, RECORDED, Rows, control

ROWS: Rows = {
    **EVERY_KIND,
    "full_name": RECORDED,
    "emails": control(),
    "logins": control(),
    "role": control(),
    "account": control(),
    "ssh_keys": control(),
    "signing_keys": control(),
    "state": control(),
}

DEFAULTS: Mapping[str, str | int | bool] = {"role": "user", "state": "active"}
