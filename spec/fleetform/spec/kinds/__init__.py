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


KINDS: Mapping[str, Kind] = {
    **{
        name: Kind("backend", path)
        for name, path in {
            "amddevcloud": "backend_markets:AmdDevCloud",
            "aws": "backend_clouds:Aws",
            "azure": "backend_clouds:Azure",
            "cloudrift": "backend_markets:CloudRift",
            "crusoe": "backend_markets:Crusoe",
            "cudo": "backend_markets:Cudo",
            "datacrunch": "backend_markets:Verda",
            "daytona": "backend_markets:Daytona",
            "digitalocean": "backend_markets:DigitalOcean",
            "gcp": "backend_clouds:Gcp",
            "hotaisle": "backend_markets:HotAisle",
            "jarvislabs": "backend_markets:JarvisLabs",
            "kubernetes": "backend_clusters:Kubernetes",
            "lambda": "backend_markets:Lambda",
            "lium": "backend_markets:Lium",
            "nebius": "backend_clouds:Nebius",
            "oci": "backend_clouds:Oci",
            "runpod": "backend_markets:RunPod",
            "seeweb": "backend_markets:Seeweb",
            "slurm": "backend_clusters:Slurm",
            "tensordock": "backend_markets:TensorDock",
            "vastai": "backend_markets:VastAi",
            "verda": "backend_markets:Verda",
            "vultr": "backend_markets:Vultr",
        }.items()
    },
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

BACKEND_TYPES = tuple(sorted(name for name, kind in KINDS.items() if kind.name == "backend"))
"""What `type:` of a backend may be: the clouds and clusters that dstack 0.22 knows."""
