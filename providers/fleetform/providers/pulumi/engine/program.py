"""
What a stack contains, as a value: resources with their properties and options.

A program is data, so a plan can keep it, a digest says whether a preview is due, and recovery can
read what should exist without Pulumi. `automation` turns it into calls of Pulumi.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from fleetform.spec.canonical import digest

__all__ = [
    "PROVIDER_TYPE",
    "Program",
    "Resource",
    "output_of",
    "references",
    "secret",
]

PROVIDER_TYPE = "pulumi:providers:"
"""Begins the type of a provider, such as `pulumi:providers:aws`: region, account and retries."""

OUTPUT = "$output"
SECRET = "$secret"  # noqa: S105 -- the key of a marker


@dataclass(frozen=True, slots=True)
class Resource:
    """
    One resource of a stack; `name` is its identity in the stack.

    `type` is a token of a provider's schema, such as `aws:ec2/instance:Instance`. `properties` are
    JSON, with `output_of` and `secret` anywhere inside. `provider` names a resource of the same
    program. `import_id`: the resource exists under this id and is adopted. `replace_on` and
    `ignore` are paths of properties. `recreate` replaces the resource with the next `up`.
    """

    type: str
    name: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    provider: str = ""
    depends_on: tuple[str, ...] = ()
    protect: bool = False
    ignore: tuple[str, ...] = ()
    replace_on: tuple[str, ...] = ()
    delete_before_replace: bool = False
    recreate: bool = False
    import_id: str = ""

    @property
    def is_provider(self) -> bool:
        return self.type.startswith(PROVIDER_TYPE)


@dataclass(frozen=True, slots=True)
class Program:
    """
    All resources of a stack, each after those that it refers to.

    `plugin_versions` pins the plugin of a package, such as `{"aws": "7.51.0"}`; without an entry
    the engine takes the newest one that is installed.
    """

    resources: tuple[Resource, ...] = ()
    plugin_versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known: set[str] = set()
        for one in self.resources:
            assert one.name not in known, f"two resources are named {one.name}"
            needed = {*one.depends_on, *(name for name, _ in references(one.properties))}
            if one.provider:
                needed.add(one.provider)
            unknown = sorted(needed - known)
            assert not unknown, f"{one.name} refers to {', '.join(unknown)}, which is not above it"
            known.add(one.name)

    @property
    def digest(self) -> str:
        """Two programs with the same digest lead to the same preview of one state."""
        return digest(self.to_json())

    def to_json(self) -> dict[str, Any]:
        return {
            "plugin_versions": dict(self.plugin_versions),
            "resources": [asdict(one) for one in self.resources],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Program:
        return cls(
            resources=tuple(_resource(one) for one in value["resources"]),
            plugin_versions=dict(value["plugin_versions"]),
        )


def output_of(name: str, output: str = "id") -> dict[str, Any]:
    """Stand for an output of another resource of the program, known once that one exists."""
    return {OUTPUT: [name, output]}


def secret(value: Any) -> dict[str, Any]:
    """Mark a value that the state encrypts and no event shows."""
    return {SECRET: value}


def references(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the outputs of other resources that are in a value: the resource's name, the output's."""
    if isinstance(value, Mapping):
        if OUTPUT in value:
            name, output = value[OUTPUT]
            yield name, output
            return
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return
    for inner in value:
        yield from references(inner)


def _resource(value: Mapping[str, Any]) -> Resource:
    lists = ("depends_on", "ignore", "replace_on")
    return Resource(**{**value, **{name: tuple(value[name]) for name in lists}})
