"""
Steps: a verb, what it acts on, and all it needs to know, so that apply chooses nothing.

A step's key is `<verb>:<kind>/<name>`. It names the operation across a crash, so it depends on
nothing but what is done to which resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetform.model.plan import Step
from fleetform.spec.desired import Declared, ResourceKey

MAKING = frozenset({"run.submit", "fleet.make", "volume.make"})
"""What makes something, or makes it anew: whatever counts at the beginning counts for them."""
TAKES_PLACE = frozenset({"volume.make", "volume.adopt"})
"""What needs a directory to itself."""
FREES_PLACE = frozenset({"volume.forget", "volume.remove", "volume.snapshot"})
"""What ends a volume; its directory is another one's from then on, or keeps the data that is left."""


def step_key(verb: str, key: ResourceKey) -> str:
    return f"{verb}:{key}"


def make_step(
    verb: str,
    key: ResourceKey,
    arguments: Mapping[str, Any],
    needs: tuple[str, ...] = (),
) -> Step:
    """Build a step; `needs` are what this change itself asks for, `order` adds the rest."""
    return Step(
        key=step_key(verb, key),
        verb=verb,
        resource=key,
        needs=needs,
        arguments={"name": key.name, **arguments},
    )


def declared_arguments(declared: Declared) -> dict[str, Any]:
    """What every step that writes a document carries of it."""
    return {
        "document": declared.document,
        "digest": declared.digest,
        "own_digest": declared.own_digest,
        "execution_digest": declared.execution_digest,
        "type": declared.type,
        "protected": bool(declared.document.get("protect", False)),
    }
