"""
A volume: a directory that outlives the runs that mount it, or a disk in a cloud that does.

It is a directory on the hosts of a fleet, a disk or claim that a backend makes, or one that
exists there already and is registered by its id. This version makes directories, and disks on AWS.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from fleetform.spec.field_facts import UNSUPPORTED, control, default, execution, replaced
from fleetform.spec.findings import Level, Problem
from fleetform.spec.kinds.aws import AwsDisk, disk_size_problems, id_problems
from fleetform.spec.kinds.base import (
    NAME_PATTERN,
    Document,
    Flag,
    Model,
    Name,
    contradiction,
    listed,
    missing,
    not_supported,
    one_or_many,
    refuse,
)
from fleetform.spec.kinds.cloud_names import not_a_zone, unknown_regions
from fleetform.spec.kinds.hosts import Hostname, host_names
from fleetform.spec.kinds.offers import Offable, Text
from fleetform.spec.kinds.resources import Size
from fleetform.spec.names import EXPRESSION_MARK, is_zone, name_problem, natural_order, region_of
from fleetform.spec.quantities.ranges import shown


def directory(value: str) -> str:
    """
    A directory's path in its one spelling.

    `..` is refused: what it means depends on links on the host, so that nobody could tell from
    the tree what is meant.
    """
    if "\0" in value or "\n" in value:
        raise refuse("bad-path", "A path has neither newlines nor null characters.")
    if ".." in value.split("/"):
        raise refuse("bad-path", f"{shown(value)} contains `..`.", "Write the path it leads to.")
    # normpath keeps two leading slashes, which POSIX lets mean something of its own.
    path = posixpath.normpath(value)
    return path[1:] if path.startswith("//") else path


def _written_out(names: tuple[str, ...]) -> tuple[str, ...]:
    """Replace each range of names by its hosts; their order means nothing."""
    found = [name for text in names for name in host_names(text)]
    if len(set(found)) < len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise refuse(
            "said-twice", f"The host {shown(twice)} is listed twice.", "Remove one of them."
        )
    return tuple(sorted(found, key=natural_order))


Directory = Annotated[str, Field(min_length=1, max_length=4000), AfterValidator(directory)]


_DISK_FIELDS = (
    "region",
    "availability_zone",
    "size",
    "volume_id",
    "auto_cleanup_duration",
    "claim_name",
    "storage_class_name",
    "access_modes",
    "read_only",
    "aws",
)
# What only claims of Kubernetes have.
_CLAIM_FIELDS = ("claim_name", "storage_class_name", "access_modes", "read_only")
# Backends where a disk lies in a region that has to be said.
_REGIONAL = frozenset({"aws", "azure", "gcp", "runpod"})

AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]


_FILE_SYSTEM = re.compile(r"fs-[0-9a-f]{8,40}")


class Volume(Document):
    """
    A directory or disk that is kept from run to run.

    Its file `.fleetform-volume` is the marker that names its owner. Jobs must not delete it.

    Example:
        type: volume
        name: checkpoints
        fleet: local
        path: checkpoints
    """

    type: Literal["volume"]
    """The kind of the document: `volume`."""

    fleet: Annotated[Name | None, replaced("providers")] = None
    """
    The fleet whose hosts have the directory. A change of the fleet makes it another volume.
    Example: `local`.
    """

    path: Annotated[Directory | None, replaced("providers")] = None
    """
    The directory: absolute, or relative to the folder in which fleetform keeps the volumes of the
    environment. A change of the path makes it another volume; the data stays at the old path.
    Example: `checkpoints`.
    """

    hosts: (
        Annotated[
            tuple[Hostname, ...],
            *listed(Hostname),
            AfterValidator(_written_out),
            control("providers"),
        ]
        | None
    ) = None
    """
    The hosts of the fleet that have the directory, by name or range of names; the fleet must have
    `ssh_config`. Runs that mount the volume are placed on these hosts only. A host that is added
    gets the directory; on a host that is removed, `deletion_policy` decides about the data. Default:
    all hosts of the fleet. Example: `[node1, "gpu[01-04]"]`.
    """

    # From here on what disks of backends have; the document as a whole is told.
    backend: Annotated[Name | None, replaced("providers.aws")] = None
    """
    The backend of the disk, by type or by the name of a declared backend. A change of the backend
    makes it another volume. Example: `aws`.
    """

    region: Annotated[Text | None, replaced("providers.aws")] = None
    """
    The region of the disk. A change of the region makes it another volume. Example: `eu-west-1`.
    """

    availability_zone: Annotated[Text | None, replaced("providers.aws")] = None
    """
    The availability zone of the disk. A disk can only be mounted in its own zone. Default: chosen
    by the backend. Example: `eu-west-1a`.
    """

    size: Annotated[Size, Field(ge=1), control("providers.aws")] | None = None
    """The size of the disk, on AWS `1GB` to `64TB`. It can grow, but not shrink. Example: `500GB`."""

    volume_id: Annotated[Text | None, replaced("providers.aws")] = None
    """
    The id of an existing disk or shared file system at the backend. It is registered as it is and never deleted.
    Example: `vol-0f1e2d3c4b5a69788`.
    """

    aws: Annotated[AwsDisk | None, replaced("providers.aws")] = None
    """
    The account of a disk on AWS, and how it is created. A change of it makes it another volume.
    Example: `{account: "123456789012"}`.
    """

    auto_cleanup_duration: Annotated[Offable | None, control()] = None
    """
    The time without any run that mounts the disk, after which the disk and its data are deleted.
    Default: `off`. `off`: never. Example: `30d`.
    """

    claim_name: Annotated[Text | None, replaced()] = None
    """The name of an existing PersistentVolumeClaim of Kubernetes. Example: `imagenet`."""

    storage_class_name: Annotated[Text | None, replaced()] = None
    """
    The storage class of a new claim. Default: the default class of the cluster. Example:
    `fast-ssd`.
    """

    access_modes: (
        Annotated[tuple[AccessMode, ...], *listed(AccessMode, "access mode"), replaced()] | None
    ) = None
    """
    Which nodes may mount the claim at a time. `ReadWriteOnce`: one node. `ReadOnlyMany`: several
    nodes, read only. `ReadWriteMany`: several nodes. `ReadWriteOncePod`: one pod. Example:
    `[ReadWriteMany]`.
    """

    read_only: Annotated[Flag | None, control()] = None
    """Whether all runs may only read it. Default: `false`. Example: `true`."""

    deletion_policy: Annotated[
        Literal["retain", "delete", "snapshot"] | None, control("apply", default="retain")
    ] = None
    """
    What happens to the data when the volume is removed from the configuration. `retain`: it is
    kept. `delete`: it is deleted, by a step that the plan shows as destructive. `snapshot`: it is
    kept as a snapshot, and the path becomes free or the disk is deleted. Example: `retain`.
    """

    def whole(self) -> Problem | None:
        if self.backend is None:
            return None
        blocked = "Until then, plans block the volume and the runs that mount it."
        if self.backend != "aws":
            return not_supported(
                ("backend",),
                "Disks of backends other than `aws` are not supported yet.",
                f"{blocked} With `fleet:` and `path:`, it is a directory on that fleet's hosts.",
            )
        if self.aws is None:
            return not_supported(
                ("backend",),
                "A disk on AWS without its account is not supported.",
                f'{blocked} Add `aws: {{account: "123456789012"}}`.',
            )
        if self.availability_zone is None and self.aws.file_system is None:
            return not_supported(
                ("backend",),
                "A disk on AWS without `availability_zone` is not supported yet.",
                f"{blocked} Add the zone of the fleet whose runs mount it, such as"
                f" `availability_zone: {self.region}a`.",
            )
        return None

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.fleet is not None and self.backend is not None:
            yield contradiction(
                "backend",
                "A volume is either a directory on the hosts of a fleet or a disk of a backend.",
                "Remove `fleet` and `path`, or remove `backend`.",
            )
        elif self.backend is not None:
            yield from self._disk_problems(self.backend)
        else:
            yield from self._directory_problems()

    def _directory_problems(self) -> Iterator[Problem]:
        disk = [name for name in _DISK_FIELDS if getattr(self, name) is not None]
        if self.fleet is None:
            advice = "Add `fleet:` and `path:` for a directory on a fleet's hosts, or `backend:`."
            if disk:
                advice = f"Add `backend:`, which `{disk[0]}` goes with: `backend: aws`."
            yield missing("Neither `fleet` nor `backend` is set.", advice, "fleet", "backend")
            return
        if self.path is None:
            yield missing("`path` is missing.", "Add `path:`.", "path")
        for name in disk:
            yield contradiction(
                name,
                f"`{name}` is for disks of a backend, and this volume is a directory of the fleet"
                f" `{self.fleet}`.",
                "Remove one of the two.",
            )

    def _disk_problems(self, backend: str) -> Iterator[Problem]:
        if self.hosts is not None:
            yield contradiction(
                "hosts",
                "`hosts` is for directories on hosts, not for disks of a backend.",
                "Remove it.",
            )
        if self.path is not None:
            yield contradiction(
                "path",
                "`path` is for directories on hosts, not for disks of a backend.",
                "Remove it. Runs set the mount path in their `volumes:`.",
            )
        for name in _CLAIM_FIELDS if backend in _REGIONAL else ():
            if getattr(self, name) is not None:
                yield contradiction(
                    name,
                    f"`{name}` is for claims in Kubernetes, and the backend is `{backend}`.",
                    "Remove it.",
                )
        if self.aws is not None:
            yield from self._aws_problems(self.aws)
        if backend in _REGIONAL and self.region is None:
            yield missing(
                f"A disk of `{backend}` needs a region, and `region` is missing.",
                "Add `region:`.",
                "region",
            )
        yield from self._origin_problems()

    def _aws_problems(self, disk: AwsDisk) -> Iterator[Problem]:
        if self.backend != "aws":
            yield contradiction(
                "aws",
                f"`aws` is for disks on AWS, and the backend is `{self.backend}`.",
                "Remove one of the two.",
            )
        yield from self._file_system_problems(disk)
        yield from disk_size_problems(self.size, ("size",))
        yield from unknown_regions("region", [self.region] if self.region else [])
        zone, region = self.availability_zone, self.region or ""
        is_known = region and EXPRESSION_MARK not in f"{zone}{region}"
        if zone is not None and is_known and region_of(zone) == region and not is_zone(zone):
            yield not_a_zone("availability_zone", zone)
        elif zone is not None and is_known and region_of(zone) != region:
            yield contradiction(
                "availability_zone",
                f"{shown(zone)} is not a zone of {shown(region)}.",
                f"Write a zone of the region, such as `{region}a`, or change `region`.",
            )
        if self.size is None and self.volume_id is None:
            yield missing(
                "Neither `size` nor `volume_id` is set.",
                "Add `size:` for a new disk, or `volume_id:` for an existing disk.",
                "size",
                "volume_id",
            )
        for name in ("encrypted", "snapshot_id"):
            if self.volume_id is not None and getattr(disk, name) is not None:
                yield contradiction(
                    ("aws", name),
                    f"`{name}` is for new disks, and {shown(self.volume_id)} exists already.",
                    "Remove it.",
                )
        if self.volume_id is not None and self.deletion_policy == "snapshot":
            yield contradiction(
                "deletion_policy",
                "The disk that `volume_id` names is never deleted, so no snapshot replaces it.",
                "Write `deletion_policy: retain`, or leave it out.",
            )

    def _file_system_problems(self, disk: AwsDisk) -> Iterator[Problem]:
        identity = self.volume_id or ""
        if disk.file_system is None:
            if identity.startswith("fs-"):
                yield contradiction(
                    "volume_id",
                    f"{shown(identity)} is the id of a shared file system, and the volume is declared as a disk.",
                    "Add `file_system: efs` or `file_system: lustre` to `aws`.",
                )
            else:
                yield from id_problems("volume_id", self.volume_id, "vol", "a disk")
            return
        if not _FILE_SYSTEM.fullmatch(identity):
            yield contradiction(
                ("aws", "file_system"),
                "A shared file system exists already, and `volume_id` does not have its id.",
                "Add the id of the file system, such as `volume_id: fs-0f1e2d3c4b5a69788`.",
            )
        if self.availability_zone is not None:
            yield contradiction(
                "availability_zone",
                "`availability_zone` is for disks; a file system is mounted from every zone of its region.",
                "Remove it.",
            )

    def _origin_problems(self) -> Iterator[Problem]:
        """Whether it is to be made, or there already."""
        existing = "volume_id" if self.volume_id is not None else "claim_name"
        if self.volume_id is None and self.claim_name is None:
            if self.size is None and self.aws is None:
                yield Problem(
                    "missing-field",
                    (),
                    "Neither `size` nor `volume_id` is set.",
                    "Add `size:` for a new disk, or `volume_id:` for an existing disk.",
                    level=Level.WARNING,
                    for_lack_of=("size", "volume_id", "claim_name"),
                )
            return
        if self.size is not None and self.volume_id is not None:
            yield contradiction(
                "size",
                f"The disk {shown(self.volume_id)} exists already, and is as large as it is.",
                "Remove `size`, or remove `volume_id` for a new disk.",
            )
        if self.auto_cleanup_duration not in {None, -1}:
            yield contradiction(
                "auto_cleanup_duration",
                f"What `{existing}` names an existing disk, which is never deleted.",
                "Remove it.",
            )
        if self.deletion_policy == "delete":
            yield Problem(
                "contradiction",
                ("deletion_policy",),
                f"What `{existing}` names an existing disk, which is never deleted.",
                "Write `deletion_policy: retain`, or leave it out.",
            )


# Mounts: volumes and directories of the host, and their paths in the job.
#
# A volume has a name, a directory of the host has a path. Of several names, one for each region, any
# volume suffices; a name may contain an expression that is resolved for each node.

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

    name: Annotated[tuple[VolumeName, ...], *listed(VolumeName)] | None = None
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


_SYSTEM_FOLDERS = frozenset({
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys",
    "/usr", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/sbin", "/var", "/var/lib",
})  # fmt: skip
"""
What a command needs of its host, such as its shell, its accounts and the folder of its job. Only the job sees
a mount, so a folder below one of them, or `/home`, can be one: nothing else on the host changes.
"""

_KERNEL_FOLDERS = ("/proc/", "/sys/")
"""No directory can be created there to mount at."""


def mount_problems(mounts: Sequence[Mount], *, in_image: bool) -> Iterator[Problem]:
    """Two mounts at one place, or one over what the job needs; a job in an image has its own system folders."""
    seen: set[str] = set()
    for number, mount in enumerate(mounts):
        is_of_host = mount.path in _SYSTEM_FOLDERS or mount.path.startswith(_KERNEL_FOLDERS)
        if mount.path == "/" or (is_of_host and not in_image):
            yield Problem(
                "bad-path",
                ("volumes", number),
                f"A volume at {shown(mount.path)} would hide the system files that the job needs.",
                "Mount it at a directory of its own, such as `/mnt/data`, or at a relative path.",
            )
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
