"""
The table of kinds: what `type:` may say, the model that reads such a document, and what it refers to.

Reference checks, the order of steps, renames and the editor's jumps derive from these rows, so that
a new kind is a row here and its model.

A model is imported when the first document of its type is read. There are some forty of them,
and making them all takes longer than reading a tree that has three.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from fleetform.spec.kinds.base import Document


KindName = Literal[
    "fleet", "volume", "run", "gateway", "secret", "queue", "quota", "reservation", "project",
    "user", "policy", "profile", "backend",
]  # fmt: skip
"""What a resource may be, in the order in which schemas list it; a test compares it with the rows."""


@dataclass(frozen=True, slots=True)
class Kind:
    """
    What one `type:` declares.

    Attributes:
        name: The kind of the resource; several types may share one, and then share its names.
        path: The module of the model in this folder, a colon, and its class.
        refers: By path in the canonical document, the kind of what is named there. A step into a list
            goes into each of its entries, and a mapping at the end names by its keys.
        is_created: It is created, or handed out, before what refers to it can be. Of the others,
            a declaration is all.
        may_be_undeclared: It may be declared elsewhere or later. A name that is like no other is then
            no slip: the document is right, and what names it waits.
        may_be_released: It may be renamed, and leave the ledger while it stays: `moved:` and `removed:`
            may name it.
        may_be_adopted: What exists already may become one: `import:` may name it.
    """

    name: KindName
    path: str
    refers: Mapping[str, KindName] = field(default_factory=dict)
    is_created: bool = False
    may_be_undeclared: bool = False
    may_be_released: bool = False
    may_be_adopted: bool = False

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

_OFFERS: Mapping[str, KindName] = {"backends": "backend"}
_PLACES: Mapping[str, KindName] = {
    "fleets": "fleet",
    "instances.fleet": "fleet",
    "queue": "queue",
}
_RUN: Mapping[str, KindName] = {
    **_PLACES,
    "gateway": "gateway",
    **_OFFERS,
    "volumes.name": "volume",
    "depends_on.runs.run": "run",
}


def _backend(path: str) -> Kind:
    return Kind("backend", path)


def _run(path: str) -> Kind:
    return Kind("run", path, _RUN, may_be_released=True)


KINDS: Mapping[str, Kind] = {
    **{name: _backend(f"backend:{name}") for name in BACKEND_TYPES},
    "kubernetes": _backend("backend:Kubernetes"),
    "slurm": _backend("backend:Slurm"),
    "dev-environment": _run("dev_environment:DevEnvironment"),
    "fleet": Kind(
        "fleet",
        "fleet:Fleet",
        {**_OFFERS, "kubernetes.backend": "backend", "slurm.backend": "backend"},
        is_created=True,
        may_be_released=True,
        may_be_adopted=True,
    ),
    "gateway": Kind(
        "gateway",
        "gateway:Gateway",
        {"backend": "backend"},
        is_created=True,
        may_be_undeclared=True,
    ),
    "policy": Kind(
        "policy",
        "policy:Policy",
        {"match.projects": "project", "approval.users": "user"},
    ),
    "profile": Kind("profile", "profile:Profile", {**_PLACES, **_OFFERS}),
    "project": Kind(
        "project",
        "project:Project",
        {
            "members.user": "user",
            "fleets": "fleet",
            "queues": "queue",
            "default_queue": "queue",
            "default_profile": "profile",
            "grants.secrets": "secret",
        },
        may_be_undeclared=True,
    ),
    "queue": Kind(
        "queue",
        "queue:Queue",
        {"fleets": "fleet", "allow.users": "user", "allow.projects": "project"},
        is_created=True,
    ),
    "quota": Kind("quota", "quota:Quota", {"project": "project", "user": "user", "queue": "queue"}),
    "reservation": Kind(
        "reservation",
        "reservation:Reservation",
        {"fleet": "fleet", "users": "user", "projects": "project"},
    ),
    "secret": Kind(
        "secret",
        "secret:Secret",
        {"projects": "project"},
        is_created=True,
        may_be_undeclared=True,
    ),
    "service": _run("service:Service"),
    "task": _run("task:Task"),
    "user": Kind("user", "user:User", may_be_undeclared=True),
    "volume": Kind(
        "volume",
        "volume:Volume",
        {"fleet": "fleet", "backend": "backend"},
        is_created=True,
        may_be_undeclared=True,
        may_be_released=True,
        may_be_adopted=True,
    ),
}
"""By what `type:` says."""

RESOURCES: Mapping[str, Kind] = {kind.name: kind for kind in KINDS.values()}
"""By the kind of the resource: types of one kind differ in their models only."""

# What stands there has a spelling of its own: `references` and `renaming` read it.
_SPELLED = frozenset({"volumes.name", "depends_on.runs.run"})
NAMING: Mapping[str, Sequence[tuple[str, Sequence[str], str]]] = {
    name: tuple(
        (first, steps, target)
        for path, target in kind.refers.items()
        if path not in _SPELLED
        for first, *steps in (path.split("."),)
    )
    for name, kind in RESOURCES.items()
}
"""By kind: top-level fields, the steps from there, and the kind of what is named."""

CREATED = frozenset(name for name, kind in RESOURCES.items() if kind.is_created)

_NAMES: tuple[KindName, ...] = get_args(KindName)

RELEASABLE = tuple(name for name in _NAMES if RESOURCES[name].may_be_released)

ADOPTABLE = tuple(name for name in _NAMES if RESOURCES[name].may_be_adopted)
