"""
The fields of a gateway.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control, replaced

ROWS: Rows = {
    **EVERY_KIND,
    "backend": replaced(),
    "region": replaced(),
    "instance_type": replaced(),
    "domain": control(),
    "default": control(),
    "public_ip": replaced(),
    "certificate": control(),
    "load_balancer": replaced(),
    "router": control(),
    "replicas": control(),
}

DEFAULTS: Mapping[str, str | int | bool] = {"public_ip": True, "replicas": 1}
