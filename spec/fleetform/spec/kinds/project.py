"""
A project: people who work together, what they may use, and what they are trusted with.

`projects:` of a dstack server's config is read as one such document each.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ValidationError,
)

from fleetform.spec.field_facts import control
from fleetform.spec.findings import Problem
from fleetform.spec.kinds import BACKEND_TYPES
from fleetform.spec.kinds.backend import Backend
from fleetform.spec.kinds.base import (
    Document,
    Flag,
    Model,
    Name,
    listed,
    not_supported,
    one_or_many,
    read_by,
    refuse,
    within,
)
from fleetform.spec.kinds.offers import Names, Text, Texts
from fleetform.spec.kinds.volume import Directory
from fleetform.spec.names import nearest
from fleetform.spec.quantities.ranges import shown, unfit


class Member(Model):
    """A member of a project."""

    user: Name
    """The name of the user. Example: `ada`."""

    role: Literal["admin", "manager", "user", "reader"] | None = None
    """
    The role of the user in the project. Default: `user`. `admin`: manage the project, its members
    and all runs. `manager`: manage members and all runs. `user`: submit runs, and see everything.
    `reader`: see everything. Example: `manager`.
    """


def _check_members(value: tuple[Member, ...]) -> tuple[Member, ...]:
    ordered = sorted(value, key=lambda member: member.user)
    for one, following in itertools.pairwise(ordered):
        if one.user == following.user:
            raise refuse("said-twice", f"{shown(one.user)} is named twice.", "Keep one entry.")
    return tuple(ordered)


class Grants(Model):
    """Permissions of the runs of a project. Each is denied unless it is set."""

    privileged: Flag | None = None
    """Whether containers may have all privileges of the host. Example: `true`."""

    root: Flag | None = None
    """Whether commands may run as root. Example: `true`."""

    docker: Flag | None = None
    """Whether runs may start containers of their own. Example: `true`."""

    host_paths: Annotated[tuple[Directory, ...], *listed(str)] | None = None
    """
    Directories of hosts that runs may mount, including everything below them. Example:
    `[/mnt/datasets]`.
    """

    secrets: Texts | None = None
    """Secrets that runs may use. Example: `[huggingface_token]`."""


def _backend(value: Any) -> Backend:
    # Not above: `kinds` has the table of which this is a part.
    from fleetform.spec.kinds import KINDS

    type_name = value.get("type") if isinstance(value, Mapping) else None
    if not isinstance(type_name, str):
        raise refuse("wrong-type", str(unfit(value, "a backend, such as `{type: aws}`")))
    if type_name not in BACKEND_TYPES:
        close = nearest(type_name, BACKEND_TYPES)
        raise refuse(
            "bad-value",
            f"{shown(type_name)} is not a known type of backend.",
            f"Did you mean `{close}`?" if close else f"There is {', '.join(BACKEND_TYPES)}.",
        )
    model = KINDS[type_name].model
    try:
        backend = model.model_validate(value)
    except ValidationError as exc:
        raise within(exc, model, type_name) from None
    assert isinstance(backend, Backend), type_name
    return backend


# Any to the type checker, because which model it is, is known by the value only.
_AnyBackend = Annotated[
    Any,
    *read_by(
        _backend,
        {
            "type": "object",
            "properties": {
                "type": {
                    "enum": list(BACKEND_TYPES),
                    "description": "The type of the cloud or cluster. Example: `aws`.",
                }
            },
            "required": ["type"],
        },
    ),
]


class Project(Document):
    """
    People who work together, and the resources that they may use.

    Example:
        type: project
        name: vision
        members:
          - ada
          - {user: grace, role: manager}
    """

    type: Literal["project"]
    """The kind of the document: `project`."""

    members: (
        Annotated[
            tuple[Member, ...],
            *listed(str | Member, short="user"),
            AfterValidator(_check_members),
            control(),
        ]
        | None
    ) = None
    """
    The members: names of users, or mappings with a role. Example: `[ada, {user: grace, role:
    manager}]`.
    """

    public: Annotated[Flag | None, control()] = None
    """Whether all users may see the project. Default: `false`. Example: `true`."""

    fleets: Annotated[Names | None, control()] = None
    """
    The fleets that the runs of the project may use. Default: all fleets. Example: `[on-prem]`.
    """

    queues: Annotated[Names | None, control()] = None
    """
    The queues that the runs of the project may use. Default: all queues that allow them. Example:
    `[gpu-short]`.
    """

    default_queue: Annotated[Name | None, control()] = None
    """The queue of runs that name none. Example: `gpu-short`."""

    default_profile: Annotated[Name | None, control()] = None
    """The profile of runs that name none. Example: `cheap`."""

    backends: (
        Annotated[
            tuple[_AnyBackend, ...],
            BeforeValidator(one_or_many, json_schema_input_type=list[_AnyBackend]),
            control(),
        ]
        | None
    ) = None
    """
    Backends that only this project uses, as documents of their kinds. Example: `[{type: aws, creds:
    {type: default}}]`.
    """

    grants: Annotated[Grants | None, control()] = None
    """
    The permissions of the runs of the project. Default: none. Example: `{secrets:
    [huggingface_token]}`.
    """

    cost_center: Annotated[Text | None, control()] = None
    """The cost centre under which the usage of the project is reported. Example: `R-1234`."""

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.default_profile is not None:
            yield not_supported(
                ("default_profile",),
                "Runs do not belong to projects yet, so no run gets this profile.",
                f"Until then, write `default: true` into the profile `{self.default_profile}`: every"
                " run that names none gets it.",
            )
        seen: set[str] = set()
        for number, backend in enumerate(self.backends or ()):
            for problem in backend.problems():
                yield problem.below("backends", number)
            if backend.name in seen:
                yield Problem(
                    "said-twice",
                    ("backends", number),
                    f"The project has two backends called `{backend.name}`.",
                    "Add `name:` to one of them.",
                )
            seen.add(backend.name)
        default = self.default_queue
        if default is not None and self.queues is not None and default not in self.queues:
            yield Problem(
                "contradiction",
                ("default_queue",),
                f"The default queue {shown(default)} is not one of its `queues`.",
                "Add it there, or choose one of them.",
            )

    def to_canonical(self) -> dict[str, Any]:
        canonical = super().to_canonical()
        for said, backend in zip(canonical.get("backends", ()), self.backends or (), strict=True):
            said["name"] = backend.name
        return canonical
