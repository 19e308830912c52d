"""
The table of fields that name another resource.

One row a field: where it stands, what kind it names, and how the name is spelled there. All
that follows names from document to document reads this table and nothing else, so that a new
field is one row here.

A path is dotted; `[]` behind a step stands for a list's items, or for the value itself where
one may stand alone: `fleets[]` is `fleets: local` and `fleets: [local]`.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator
from typing import NamedTuple

from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode

__all__ = ["ROWS", "Spelling", "Target", "named_by", "target_at"]


class Spelling(enum.Enum):
    """How a name stands in its text."""

    NAME = "name"
    """By itself: `local`."""
    MOUNT = "mount"
    """In front of a colon and a path: `data:/mnt`. What begins with a slash names nothing."""
    ELEMENT = "element"
    """With an element in brackets, if need be: `sweep[lr=0.1]`."""
    ADDRESS = "address"
    """With its kind in front: `run/train`."""


class Target(NamedTuple):
    """
    What a field names.

    Attributes:
        kind: Of the resource; of `Spelling.ADDRESS` empty, since the text says it.
        spelling: How.
    """

    kind: str
    spelling: Spelling = Spelling.NAME


_BACKEND = Target("backend")
_FLEET = Target("fleet")
_GATEWAY = Target("gateway")
_MOUNT = Target("volume", Spelling.MOUNT)
_PROFILE = Target("profile")
_PROJECT = Target("project")
_QUEUE = Target("queue")
_RUN = Target("run", Spelling.ELEMENT)
_SECRET = Target("secret")
_USER = Target("user")
_VOLUME = Target("volume")

_PLACING = {
    "backends[]": _BACKEND,
    "fleets[]": _FLEET,
    "fleets[].name": _FLEET,
    "instances[].fleet": _FLEET,
    "instances[].fleet.name": _FLEET,
    "queue": _QUEUE,
}

ROWS: dict[str, dict[str, Target]] = {
    # A pattern such as `fleet/gpu-*` names nothing in particular.
    "environment": {"patches[].target": Target("", Spelling.ADDRESS)},
    "fleet": {
        "backends[]": _BACKEND,
        "kubernetes.backend": _BACKEND,
        "slurm.backend": _BACKEND,
    },
    "gateway": {"backend": _BACKEND},
    "policy": {
        "match.projects[]": _PROJECT,
        "approval.users[]": _USER,
    },
    "project": {
        "members[]": _USER,
        "members[].user": _USER,
        "fleets[]": _FLEET,
        "queues[]": _QUEUE,
        "default_queue": _QUEUE,
        "default_profile": _PROFILE,
        "grants.secrets[]": _SECRET,
    },
    "queue": {
        "fleets[]": _FLEET,
        "allow.users[]": _USER,
        "allow.projects[]": _PROJECT,
    },
    "quota": {"project": _PROJECT, "user": _USER, "queue": _QUEUE},
    "reservation": {
        "fleet": _FLEET,
        "users[]": _USER,
        "projects[]": _PROJECT,
    },
    "profile": _PLACING,
    "run": {
        **_PLACING,
        "volumes[]": _MOUNT,
        # Of several the first that is free is mounted.
        "volumes[].name[]": _VOLUME,
        "gateway": _GATEWAY,
        "gateway.name": _GATEWAY,
        "profile": _PROFILE,
        "depends_on[]": _RUN,
        "depends_on[].run": _RUN,
        "depends_on.runs[]": _RUN,
        "depends_on.runs[].run": _RUN,
    },
    "secret": {"projects[]": _PROJECT},
    "volume": {"backend": _BACKEND, "fleet": _FLEET},
}
"""By kind, then by path."""


def named_by(root: Node, kind: str) -> Iterator[tuple[ScalarNode, Target]]:
    """Each text of a document that names something, with what it names."""
    for path, target in ROWS.get(kind, {}).items():
        for node in _resolve(root, _steps(path)):
            if isinstance(node, ScalarNode) and node.raw:
                yield node, target


def target_at(kind: str, path: tuple[str | int, ...]) -> Target | None:
    """What a text at this place of a document would name."""
    names = [step for step in path if isinstance(step, str)]
    for written, target in ROWS.get(kind, {}).items():
        if [step.removesuffix("[]") for step in _steps(written)] == names:
            return target
    return None


@functools.cache
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def _resolve(node: Node, steps: tuple[str, ...]) -> Iterator[Node]:
    if not steps:
        yield node
        return
    step, *rest = steps
    found = node.get(step.removesuffix("[]")) if isinstance(node, MappingNode) else None
    if found is None:
        return
    if step.endswith("[]") and isinstance(found, SequenceNode):
        for item in found.items:
            yield from _resolve(item, tuple(rest))
    else:
        yield from _resolve(found, tuple(rest))
