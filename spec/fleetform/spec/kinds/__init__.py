"""
The table of kinds: what `type:` may say, and the model that reads such a document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fleetform.spec.kinds.base import Document
from fleetform.spec.kinds.fleet import Fleet
from fleetform.spec.kinds.task import Task
from fleetform.spec.kinds.volume import Volume


class Kind(NamedTuple):
    """`name` is the resources' kind; several types may share one, and then share its names."""

    name: str
    model: type[Document]


KINDS: Mapping[str, Kind] = {
    "fleet": Kind("fleet", Fleet),
    "task": Kind("run", Task),
    "volume": Kind("volume", Volume),
}
"""By what `type:` says."""
