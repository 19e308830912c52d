"""
The table of kinds: what `type:` may say, and the model that reads such a document.

A model is imported when the first document of its type is read. There are some forty of them,
and making them all takes longer than reading a tree that has three.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetform.spec.kinds.base import Document


@dataclass(frozen=True, slots=True)
class Kind:
    """
    `name` is the resources' kind; several types may share one, and then share its names.
    `path` is the model's module in this folder, a colon, and its class.
    """

    name: str
    path: str

    @property
    def model(self) -> type[Document]:
        """The model, imported if need be."""
        return _model(self.path)


@functools.cache
def _model(path: str) -> type[Document]:
    from fleetform.spec.kinds.base import Document

    module, _, name = path.partition(":")
    model = getattr(importlib.import_module(f"fleetform.spec.kinds.{module}"), name)
    assert isinstance(model, type), path
    assert issubclass(model, Document), path
    return model


BACKEND_TYPES = (
    *("amddevcloud", "aws", "azure", "cloudrift", "crusoe", "cudo", "datacrunch", "daytona"),
    *("digitalocean", "gcp", "hotaisle", "jarvislabs", "kubernetes", "lambda", "lium", "nebius"),
    *("oci", "runpod", "seeweb", "slurm", "tensordock", "vastai", "verda", "vultr"),
)
"""What `type:` of a backend may be: the clouds and clusters that dstack 0.22 knows."""

KINDS: Mapping[str, Kind] = {
    **{name: Kind("backend", f"backend:{name}") for name in BACKEND_TYPES},
    "kubernetes": Kind("backend", "clusters:Kubernetes"),
    "slurm": Kind("backend", "clusters:Slurm"),
    "dev-environment": Kind("run", "dev_environment:DevEnvironment"),
    "fleet": Kind("fleet", "fleet:Fleet"),
    "gateway": Kind("gateway", "gateway:Gateway"),
    "policy": Kind("policy", "policy:Policy"),
    "profile": Kind("profile", "profile:Profile"),
    "project": Kind("project", "project:Project"),
    "queue": Kind("queue", "queue:Queue"),
    "quota": Kind("quota", "quota:Quota"),
    "reservation": Kind("reservation", "reservation:Reservation"),
    "secret": Kind("secret", "secret:Secret"),
    "service": Kind("run", "service:Service"),
    "task": Kind("run", "task:Task"),
    "user": Kind("user", "user:User"),
    "volume": Kind("volume", "volume:Volume"),
}
"""By what `type:` says."""
