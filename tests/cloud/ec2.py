"""
EC2 of one account and region: moto, with the checks and objects that moto lacks.

moto would accept an unknown image, a type that a zone does not offer, a volume of another zone and a
repeated client token, and its instances have public addresses that exist. Here they are refused, or
have an address that the test chooses. Each noun has its module; every other call goes to moto.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from cloud import capacity, instances, launches, networks, volumes
from cloud.region import Pace, Region
from cloud.wire import Call

_HANDLERS: dict[str, Callable[[Region, Call], dict[str, Any]]] = {
    **capacity.HANDLERS,
    **instances.HANDLERS,
    **launches.HANDLERS,
    **networks.HANDLERS,
    **volumes.HANDLERS,
}


def answer(region: Region, call: Call, pace: Pace) -> dict[str, Any]:
    """Return the result of a call, or raise `Refusal`; new instances come up as `pace` says."""
    if call.operation == "RunInstances":
        return launches.run_instances(region, call, pace)
    handler = _HANDLERS.get(call.operation)
    try:
        return handler(region, call) if handler else region.moto(call)
    finally:
        _forget_descriptions(region, call)


def _forget_descriptions(region: Region, call: Call) -> None:
    if call.operation.startswith(("Describe", "Get", "Create", "Import", "Allocate")) and (
        call.operation != "CreateTags"
    ):
        return
    named = set(re.findall(r"\bi-[0-9a-f]+", str(call.parameters)))
    for identity in named or region.instances.keys():
        if identity in region.instances:
            region.instances[identity].seen = None
