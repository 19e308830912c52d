"""
Read the state of a stack: what the engine believes to exist.

A deployment is the JSON that `Stack.export_state` returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleetform.providers.pulumi.engine.changes import without_secrets

__all__ = ["Deployment", "ResourceState", "is_of_engine", "resources_of"]

Deployment = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResourceState:
    """A resource of the state with the outputs that the cloud returned; secrets are hidden."""

    type: str
    name: str
    id: str
    outputs: Mapping[str, Any]


def resources_of(deployment: Deployment) -> tuple[ResourceState, ...]:
    """List what the state says to exist in the cloud, in its order."""
    return tuple(
        ResourceState(
            type=entry["type"],
            name=entry["urn"].rpartition("::")[2],
            id=entry["id"],
            outputs=without_secrets(entry.get("outputs") or {}),
        )
        for entry in deployment.get("resources") or ()
        if not is_of_engine(entry) and not entry.get("delete")
    )


def is_of_engine(entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry is the stack or a provider, which exist in the state alone."""
    return str(entry["type"]).startswith("pulumi:")
