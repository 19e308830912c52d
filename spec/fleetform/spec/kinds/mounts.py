"""
Mounts: volumes and directories of the host, and their paths in the job.

A volume has a name, a directory of the host has a path. Of several names, one for each region, any
volume suffices; a name may contain an expression that is resolved for each node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from fleetform.spec.field_facts import UNSUPPORTED, default, execution
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import (
    NAME_PATTERN,
    Entries,
    Flag,
    Model,
    not_supported,
    one_or_many,
    refuse,
)
from fleetform.spec.kinds.volume import Directory
from fleetform.spec.names import EXPRESSION_MARK, name_problem
from fleetform.spec.quantities.ranges import shown

_EXPRESSION = re.compile(r"\$\{\{[^{}]*\}\}")


def _volume_name(value: str) -> str:
    # The value of an expression is not known here; the text around it follows the rules of names.
    problem = name_problem(_EXPRESSION.sub("0", value) if EXPRESSION_MARK in value else value)
    if problem is not None:
        raise refuse("bad-name", problem)
    return value


def _absolute(value: str) -> str:
    if not value.startswith("/"):
        raise refuse(
            "bad-path",
            f"{shown(value)} is not an absolute path: it does not begin with `/`.",
            "Write the whole path, as it is on the host.",
        )
    return value


VolumeName = Annotated[
    str, AfterValidator(_volume_name), WithJsonSchema({"type": "string", "pattern": NAME_PATTERN})
]


class Mount(Model):
    """A volume or a directory of the host, and its path in the job."""

    name: (
        Annotated[
            tuple[VolumeName, ...],
            Field(min_length=1),
            BeforeValidator(one_or_many, json_schema_input_type=VolumeName | Entries[VolumeName]),
        ]
        | None
    ) = None
    """
    The name of the volume. Of several names, the volume on the host of the job is mounted. Example:
    `checkpoints`, `[data-eu, data-us]`, `"scratch-${{ dstack.node_rank }}"`.
    """

    instance_path: Annotated[Directory, AfterValidator(_absolute), UNSUPPORTED] | None = None
    """A directory of the host, in place of a volume. Example: `/mnt/nvme`."""

    path: Directory
    """
    The path in the job. A relative path is a link in the working directory. Example:
    `/checkpoints`, `data`.
    """

    read_only: Annotated[Flag | None, default(False)] = None
    """Whether the job may only read it. Example: `true`."""

    instance: Annotated[Flag | None, UNSUPPORTED] = None
    """
    Whether `name` is a directory that each host keeps from run to run, instead of a volume.
    Default: `false`. Example: `true`.
    """

    # Goes with a directory of the host, which is told.
    optional: Annotated[Flag | None, execution(essential=False)] = None
    """
    Whether the run also starts on hosts that do not have the directory. Default: `false`. Example:
    `true`.
    """

    @property
    def is_of_host(self) -> bool:
        """Whether it is a directory of the host, and refers to no volume."""
        return self.instance_path is not None or bool(self.instance)

    def to_canonical(self) -> dict[str, Any]:
        canonical = super().to_canonical()
        if self.name is not None and len(self.name) == 1:
            canonical["name"] = self.name[0]
        return canonical


# As Docker has them behind a second colon.
_MODES = {"ro": True, "rw": False}


def _mount(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    source, colon, path = value.partition(":")
    if not colon or not path:
        raise refuse(
            "bad-value",
            f"{shown(value)} has no path at which the volume is mounted.",
            f"Write `{source or 'NAME'}:/path`.",
        )
    path, colon, mode = path.partition(":")
    if colon and mode not in _MODES:
        raise refuse(
            "bad-value",
            f"{shown(value)} has a third part that is no mode of a mount.",
            f"Write `{source}:{path}`, and add `:ro` for a read-only mount.",
        )
    is_path = "/" in source and EXPRESSION_MARK not in source
    mount = {"instance_path" if is_path else "name": source, "path": path}
    return {**mount, "read_only": _MODES[mode]} if colon else mount


def _check_mount(value: Mount) -> Mount:
    if (value.name is None) == (value.instance_path is None):
        raise refuse(
            "contradiction" if value.name is not None else "missing-field",
            "A mount has `name` or `instance_path`, and not both."
            if value.name is not None
            else "The mount names neither a volume nor a directory of the host.",
            "Add `name:` for a volume, or `instance_path:` for a directory of the host."
            if value.name is None
            else "Remove one of the two.",
        )
    if value.instance is not None and value.name is None:
        raise refuse("contradiction", "`instance` goes with `name`.", "Remove it.")
    if value.optional is not None and not value.is_of_host:
        raise refuse(
            "contradiction",
            "Only a directory of the host may be `optional`; a volume is there or the run waits.",
            "Remove it.",
        )
    return value


def mount_problems(mounts: Sequence[Mount]) -> Iterator[Problem]:
    """Two mounts at one place."""
    seen: set[str] = set()
    for number, mount in enumerate(mounts):
        if mount.path in seen:
            yield Problem(
                "said-twice",
                ("volumes", number),
                f"Two volumes are mounted at {shown(mount.path)}; a job could see only one.",
                "Mount one of them elsewhere.",
            )
        seen.add(mount.path)


def mounts_beyond(mounts: Sequence[Mount]) -> Iterator[Problem]:
    """Mounts that nothing carries out yet."""
    for number, mount in enumerate(mounts):
        if mount.is_of_host:
            yield not_supported(
                ("volumes", number),
                "Mounting directories of the host is not supported yet.",
                "Declare a volume with that directory as its `path:`, and mount it by name.",
            )
        elif mount.name is not None and len(mount.name) > 1:
            yield not_supported(
                ("volumes", number),
                "Choosing among several volumes is not supported yet.",
                "Name one of them.",
            )


Mounts = Annotated[
    tuple[Annotated[Mount, BeforeValidator(_mount), AfterValidator(_check_mount)], ...],
    BeforeValidator(one_or_many, json_schema_input_type=str | Mount | list[str | Mount]),
]
