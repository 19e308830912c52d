"""
Rebuild the lost state of a stack from its program and the inventory.

The cloud has the resources and the state does not, so the next `up` would create all of them a
second time. Each resource whose uid the inventory shows becomes an entry of the state; a refresh
then reads its properties. Resources without a uid are not in an inventory: the engine creates them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleetform.providers.pulumi.engine.deployment import Deployment
from fleetform.providers.pulumi.engine.program import OUTPUT, SECRET, Program, Resource
from fleetform.providers.pulumi.engine.stack_settings import urn
from fleetform.providers.pulumi.recovery.inventory import Existing, matches

__all__ = ["Rebuilt", "providers_only", "rebuild"]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A deployment with what was found; `missing` are names of resources that nothing exists for."""

    deployment: Deployment
    adopted: tuple[str, ...]
    missing: tuple[str, ...]
    orphans: tuple[Existing, ...]


def providers_only(program: Program) -> Program:
    """Return the part of a program that calls no cloud; its `up` gives the state its providers."""
    kept = tuple(one for one in program.resources if one.is_provider)
    return Program(kept, program.plugin_versions)


def rebuild(
    stack: str, deployment: Deployment, program: Program, existing: Sequence[Existing]
) -> Rebuilt:
    """
    Add an entry for each resource of the program that exists.

    Args:
        stack: Its name.
        deployment: As exported after an `up` of `providers_only`.
        program: What the stack should contain.
        existing: The inventory.
    """
    resources: list[Mapping[str, Any]] = list(deployment.get("resources") or ())
    providers = {one["urn"]: one["id"] for one in resources if one.get("id")}
    known = set(providers.values())
    stack_urn = resources[0]["urn"] if resources else ""
    ids: dict[str, str] = {}
    missing: list[str] = []
    orphans: list[Existing] = []
    by_name = {one.name: one for one in program.resources}
    for resource in program.resources:
        own = urn(stack, resource.type, resource.name)
        if resource.is_provider or own in providers:
            continue
        found = [
            one
            for one in existing
            if one.id not in known and matches(one, resource.type, resource.properties)
        ]
        if not found:
            missing.append(resource.name)
            continue
        ids[resource.name] = found[0].id
        orphans += found[1:]
        known |= {one.id for one in found}
        provider = by_name[resource.provider]
        provider_urn = urn(stack, provider.type, provider.name)
        resources.append(
            {
                **_entry(stack, resource, by_name, ids),
                "id": found[0].id,
                "parent": stack_urn,
                "provider": f"{provider_urn}::{providers[provider_urn]}",
            }
        )
    rebuilt = {**deployment, "resources": resources, "pending_operations": []}
    return Rebuilt(rebuilt, tuple(ids), tuple(missing), tuple(orphans))


def _entry(
    stack: str, resource: Resource, by_name: Mapping[str, Resource], ids: Mapping[str, str]
) -> dict[str, Any]:
    needed = [by_name[name] for name in resource.depends_on if name in ids]
    return {
        "urn": urn(stack, resource.type, resource.name),
        "type": resource.type,
        "custom": True,
        "inputs": _resolved(resource.properties, ids),
        "outputs": {},
        "protect": resource.protect,
        "dependencies": [urn(stack, one.type, one.name) for one in needed],
    }


def _resolved(value: Any, ids: Mapping[str, str]) -> Any:
    """Fill in ids; secrets and other outputs are left out, and the next plan shows them."""
    if isinstance(value, Mapping):
        if OUTPUT in value:
            return ids[value[OUTPUT][0]]
        return {key: _resolved(inner, ids) for key, inner in value.items() if _is_known(inner, ids)}
    if isinstance(value, (list, tuple)):
        return [_resolved(inner, ids) for inner in value if _is_known(inner, ids)]
    return value


def _is_known(value: Any, ids: Mapping[str, str]) -> bool:
    if not isinstance(value, Mapping) or not (OUTPUT in value or SECRET in value):
        return True
    name, output = value.get(OUTPUT, ("", ""))
    return output == "id" and name in ids
