"""
What the stack of a volume contains, written down before the cloud is asked for anything.

As with the record of a batch, whichever process was killed, its successor knows whether a disk may exist.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from fleetform.providers.pulumi.private_files import replace_private

__all__ = ["VolumeRecord", "read_volume", "write_volume"]

_NAME = "volume.json"


@dataclass(frozen=True, slots=True)
class VolumeRecord:
    """
    The disk of one stack.

    `id` is the id of the cloud; a disk that was created once is never created again. `asked`: the
    cloud may have been asked for it without an answer.
    """

    id: str = ""
    asked: bool = False


def read_volume(folder: Path) -> VolumeRecord | None:
    """Return the record of the stack with this folder; None: nothing was ever asked for."""
    try:
        return VolumeRecord(**json.loads((folder / _NAME).read_bytes()))
    except FileNotFoundError:
        return None


def write_volume(folder: Path, record: VolumeRecord) -> None:
    """Replace the record in one step; it is on the disk when this returns."""
    replace_private(folder / _NAME, json.dumps(asdict(record)).encode())
