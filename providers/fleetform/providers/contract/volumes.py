"""
What a provider of network volumes promises: disks that exist apart from hosts, and are attached to one at a time.

Every call may be repeated: a disk is created once under its uid, and a call for what is done already
changes nothing. All calls are coroutines; they raise only `errors.ProviderError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from fleetform.providers.contract.hosts import PreviewedChange, Report

__all__ = ["DiskSeen", "VolumeProvider", "VolumeRequest", "VolumeSource"]


@dataclass(frozen=True, slots=True)
class VolumeRequest:
    """
    One disk.

    `place` says where and what it is, in the provider's terms; on AWS: `account`, `region`, `zone`,
    and for a new disk `size_gb`, `encrypted`, `snapshot`; `file_system` is the kind of a shared one. `registered` is the id of a disk that the
    document names: it is never created, changed or deleted. `id` is the id by the ledger, empty
    before the disk exists.
    """

    uid: str
    name: str
    provider: str
    place: Mapping[str, Any]
    registered: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class DiskSeen:
    """
    A disk that exists. `instance` is the cloud's id of the instance it is attached to, or empty.

    Of a shared file system `source` is what hosts mount, and it has neither a zone nor a size.
    """

    id: str
    zone: str
    size_gb: int
    instance: str = ""
    source: str = ""


class VolumeProvider(Protocol):
    """Where disks come from."""

    async def preview(self, request: VolumeRequest) -> Sequence[PreviewedChange]:
        """
        Say what `ensure` would change in the cloud; nothing is changed.

        A new disk has no uid yet, so its name stands in for it. A disk with an `id` may grow.

        Raises:
            ProviderError: It could not be created, or does not exist as requested.
        """
        ...

    async def preview_delete(
        self, request: VolumeRequest, *, with_snapshot: bool
    ) -> Sequence[PreviewedChange]:
        """Say what the deletion of the disk would change, and its snapshot before that; empty: there is no disk."""
        ...

    async def ensure(self, request: VolumeRequest, report: Report) -> DiskSeen:
        """
        Create the disk, or grow it to its size, or find the registered one.

        A disk that was created before and is gone is an error, and not created again: its data is lost.

        Raises:
            ProviderError: It does not exist as requested; the message says why.
        """
        ...

    async def attach(self, request: VolumeRequest, instance: str, report: Report) -> None:
        """
        Attach the disk to an instance, by the cloud's id of it; shared file systems are not attached.

        Raises:
            ProviderError: It is attached elsewhere, in another zone, or gone.
        """
        ...

    async def detach(self, request: VolumeRequest, report: Report) -> None:
        """
        Detach the disk from its host; by force if the host does not release it.

        From an instance that is no host of the environment nothing is detached.
        """
        ...

    async def snapshot(self, request: VolumeRequest, operation_uid: str, report: Report) -> str:
        """Make a snapshot and return its id once it is complete, one for each operation; empty: there is no disk."""
        ...

    async def delete(self, request: VolumeRequest, report: Report) -> None:
        """
        Delete the disk with its data.

        Raises:
            AttachedElsewhere: It is attached to something that is no host of the environment.
        """
        ...

    async def release(self, request: VolumeRequest) -> None:
        """Stop managing the disk. It stays, with its data."""
        ...

    async def observe(self, request: VolumeRequest) -> DiskSeen | None:
        """See the disk as it is now; None: there is none."""
        ...


@runtime_checkable
class VolumeSource(Protocol):
    """Has the providers of network volumes by name."""

    def volume_provider(self, name: str) -> VolumeProvider: ...
