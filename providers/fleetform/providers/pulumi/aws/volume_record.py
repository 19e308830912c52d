"""
What the stack of a volume contains, written down before the cloud is asked for anything.

As with the record of a batch, whichever process was killed, its successor knows whether a disk may exist.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from fleetform.providers.contract.stacks import StackRecords

__all__ = ["VolumeRecord", "read_volume", "write_volume"]

_KIND = "volume"


@dataclass(frozen=True, slots=True)
class VolumeRecord:
    """
    The disk of one stack.

    `id` is the id of the cloud; a disk that was created once is never created again. `asked`: the
    cloud may have been asked for it without an answer.
    """

    id: str = ""
    asked: bool = False


def read_volume(records: StackRecords, stack: str) -> VolumeRecord | None:
    """Return the record of a stack; None: nothing was ever asked for."""
    text = records.read(stack, _KIND)
    return None if text is None else VolumeRecord(**json.loads(text))


def write_volume(records: StackRecords, stack: str, record: VolumeRecord) -> None:
    """Replace the record of a stack in one step."""
    records.write(stack, _KIND, json.dumps(asdict(record)))
