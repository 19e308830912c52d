"""
Devices: the GPUs of a host that may be used, by index or UUID as `nvidia-smi` shows them: `[0, 1]`.

The comparison with what a host has is here too, so that each layer compares in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

from fleetform.spec.quantities.ranges import shown, unfit

__all__ = ["UUID", "DetectedGpu", "missing_devices", "parse_devices", "select_devices"]

UUID = r"GPU-[0-9a-f][0-9a-f-]{0,60}"
"""The text of a UUID. `nvidia-smi` prints it in small letters."""

_UUID = re.compile(UUID)


class DetectedGpu(Protocol):
    """A GPU of a host, in the type of whichever layer compares."""

    @property
    def index(self) -> int: ...
    @property
    def uuid(self) -> str: ...


_AnyGpu = TypeVar("_AnyGpu", bound=DetectedGpu)


def parse_devices(value: Any) -> tuple[int | str, ...]:
    """Read a list of devices; sorted, because their order means nothing."""
    if not isinstance(value, list | tuple):
        raise unfit(value, "a list of GPUs, such as `[0, 1]`")
    for device in value:
        is_index = isinstance(device, int) and not isinstance(device, bool) and device >= 0
        if not is_index and not (isinstance(device, str) and _UUID.fullmatch(device)):
            raise unfit(device, "the index or the UUID of a GPU as `nvidia-smi -L` shows it")
        if value.count(device) > 1:
            raise ValueError(f"The device {shown(device)} is named twice.")
    return tuple(sorted(value, key=lambda device: (isinstance(device, str), device)))


def select_devices(
    gpus: Iterable[_AnyGpu], devices: Sequence[int | str] | None
) -> tuple[_AnyGpu, ...]:
    """Return the GPUs that are declared; all of them where `devices` is None."""
    return tuple(
        gpu for gpu in gpus if devices is None or gpu.index in devices or gpu.uuid in devices
    )


def missing_devices(
    gpus: Sequence[DetectedGpu], devices: Sequence[int | str] | None
) -> tuple[int | str, ...]:
    """Return the declared devices that are none of the GPUs."""
    known = {device for gpu in gpus for device in (gpu.index, gpu.uuid)}
    return tuple(device for device in devices or () if device not in known)
