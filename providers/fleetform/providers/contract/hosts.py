"""
What a provider of hosts promises: instances are made, reached, listed and ended.

Every call may be repeated: a provider keys what it makes by our uid, so that asking twice
makes one. All calls are coroutines; they raise only `errors.ProviderError`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from fleetform.agents.protocol.host_report import GpuProcess
from fleetform.agents.protocol.messages import Cursor, Event, JobKey, LogData, Reply, StartJob
from fleetform.agents.protocol.states import Cause
from fleetform.providers.contract.job_streams import JobStreams, RankStreams
from fleetform.providers.contract.observed import (
    HostSeen,
    InstanceSeen,
    NeighbourSeen,
    PlaceSeen,
    VolumeSeen,
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who speaks: checked by the agent before anything else."""

    environment_uid: str
    ledger_id: str
    epoch: int
    fence: int
    environment_name: str = ""


@dataclass(frozen=True, slots=True)
class InstanceRequest:
    """
    One instance to be made or reached.

    `share` is this instance's part of a local machine as (parts, number); `declared` is the
    capacity that the fleet declares instead of what is detected, in canonical form, or empty.

    `provider` is the row of the registry that has the instance. `endpoint` says how its host is
    reached, in the provider's own terms: for `ssh` the fields of one host of `ssh_config` with the
    defaults of the fleet, in canonical form. `host_key` is the key that the host had when it was
    first reached (`ssh-ed25519 AAAA…`), two lines while a new host replaces its first one; empty: it
    was never reached, or `known_hosts` has it.
    """

    uid: str
    name: str
    fleet: str
    declared: Mapping[str, Any]
    share: tuple[int, int] = (1, 0)
    provider: str = "local"
    endpoint: Mapping[str, Any] = field(default_factory=dict)
    host_key: str = ""


class Host(Protocol):
    """
    An open session with one host's agent.

    The session is one connection. When it is lost, calls raise `TemporaryError` and `events`
    ends; whoever holds it connects again and compares records.
    """

    seen: HostSeen
    ranks: RankStreams

    @property
    def silent_seconds(self) -> float:
        """For how long nothing has arrived from the agent."""

    @property
    def is_overdue(self) -> bool:
        """Whether the agent has missed a heartbeat; its connection may still be good."""

    async def look_again(self) -> HostSeen:
        """Ask what the host has now, such as accounts: `seen` without records, with another report."""
        ...

    async def prepare(self, job: StartJob) -> Reply: ...
    async def start(self, key: JobKey, gen: int, boot_id: str) -> Reply: ...
    async def stop(
        self, key: JobKey, job_uid: str, gen: int, *, cause: Cause, grace_seconds: int | None
    ) -> Reply: ...
    async def forget(self, keys: Sequence[JobKey]) -> Reply: ...
    async def acknowledge(self, cursor: Cursor, commits: int = 0) -> None:
        """
        Say that all events up to the cursor are written down, and keep a note of it.

        `commits`: how many the ledger had had by then (`InstanceSeen.commits`); 0: nobody says.
        """

    async def missing_blobs(self, digests: Sequence[str]) -> Sequence[str]: ...
    async def put_blob(self, sha256: str, path: str) -> None:
        """Send the file at `path`; raises PermanentError if its content is not `sha256`."""

    def volume_path(self, path: str) -> str:
        """Say where on this host a volume's declared path lies; absolute."""

    async def make_volume(
        self, operation_uid: str, volume_uid: str, name: str, path: str, *, take: str = "any"
    ) -> Reply:
        """`take`: `new` an empty directory only, `found` what is there, `any` either; see `MakeVolume`."""

    async def remove_volume(
        self, operation_uid: str, volume_uid: str, path: str, *, delete_data: bool
    ) -> Reply: ...
    async def snapshot_volume(
        self, operation_uid: str, volume_uid: str, name: str, path: str, into: str
    ) -> Reply:
        """
        Put a volume's directory aside as `into`, which lies beside it; then it is no volume.

        Asking twice is the same as once, also where the first time was cut off.
        """

    async def mount_disk(
        self, volume_uid: str, name: str, disk: str, path: str, snapshot: str = ""
    ) -> Reply:
        """
        Mount the disk that is attached to the host under this id; one that is empty is formatted, unless it was made of a `snapshot`.

        The body of the reply has a `warning` where the file system could not grow to the size of the disk. Asking twice is
        the same as once.
        """

    async def mount_file_system(self, kind: str, source: str, path: str) -> Reply:
        """Mount a shared file system, `efs` or `lustre`, as it is; asking twice is the same as once."""

    async def unmount_disk(self, path: str) -> Reply:
        """Unmount a disk or a file system; nothing where nothing is."""

    def answer_heartbeats(self, may: Callable[[], bool]) -> None:
        """
        Answer what the host says regularly, from now on and while `may` says so.

        Without answers the host ends jobs that have a limit to the silence of their controller.
        """

    async def follow_log(self, job_uid: str, offset: int) -> None: ...
    async def gpu_processes(self) -> Mapping[str, GpuProcess | None]:
        """
        Ask which GPUs of the machine are used outside fleetform now, by uuid.

        A GPU that the driver does not list now is missing.
        """

    async def shutdown(self, *, force: bool) -> Reply: ...
    def news(self) -> AsyncIterator[Sequence[Event | LogData]]:
        """Events and output in the order they came, in batches; ends when the connection does."""

    async def close(self) -> None: ...


BATCH_MAX = 100
"""
Hosts of a cloud that are created as one change.

An `up` of 300 takes 24.6 s of processor time, one of 100 takes 5.4 s.
"""


@dataclass(frozen=True, slots=True)
class CreatedHost:
    """
    An instance of a cloud that exists: its id there, and the address at which it is reached.

    `host_key` is the key with which its SSH server answers first, as in `InstanceRequest`. `image` is what
    it booted from; empty: the provider has no images. `zone` is where it is; empty: the provider has no zones.
    `created_at_ms` is when the cloud created it, Unix milliseconds; None: it was created by this call, just now.
    """

    id: str
    address: str
    host_key: str = ""
    image: str = ""
    zone: str = ""
    created_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PreviewedChange:
    """
    A change of one resource of a cloud, as the engine says before it is made.

    `action` is a verb such as `create`; `type` is the token of the engine.
    """

    action: str
    type: str
    name: str
    properties: tuple[PreviewedProperty, ...] = ()
    """Of an update: what differs."""


@dataclass(frozen=True, slots=True)
class PreviewedProperty:
    """A property of a resource from one value to another; `path` is as the engine writes it."""

    path: str
    before: Any
    after: Any


Report = Callable[[str], None]
"""Takes a sentence of progress."""


Pin = Callable[[str], Awaitable[None]]
"""Makes the keys durable that a host may have, one a line; later requests have them as `host_key`."""


@runtime_checkable
class HostCreator(Protocol):
    """A provider of hosts that do not exist until they are asked for, and cost money from then on."""

    async def preview(
        self, requests: Sequence[InstanceRequest], replaced: int = 0, *, emptied: bool = False
    ) -> Sequence[PreviewedChange]:
        """
        Say what the creation of hosts of one fleet would change in the cloud; nothing is changed.

        The requests have no uids yet, so their names stand in for them. `replaced` of them replace hosts that
        leave, so the quota of the account must have room only for the others. `emptied`: all hosts of the
        fleet are released before, and so is what they share.

        Raises:
            ProviderError: It cannot be said; the message says why.
        """
        ...

    async def preview_release(
        self, requests: Sequence[InstanceRequest], created: Sequence[InstanceRequest]
    ) -> Sequence[PreviewedChange]:
        """
        Say what the release of hosts of one fleet would delete, without asking the cloud.

        `created` are hosts that the same plan creates for the fleet: what they share with these stays.
        """
        ...

    async def secure(self, request: InstanceRequest, pin: Pin) -> None:
        """
        Have a created host use a key of its own in place of the first one; nothing if it does.

        Raises:
            TemporaryError: It does not answer yet.
            PermanentError: It has neither of the keys, or refuses.
        """
        ...

    async def listed(
        self, environment_uid: str, request: InstanceRequest
    ) -> Sequence[InstanceSeen]:
        """
        List the instances of an environment in the account and region of a request, also those that have ended.

        `alive` says which exist. The endpoint has the `id` of each. A cloud lists a new instance some minutes late, and forgets
        an ended one after about an hour.

        Raises:
            ProviderError: The cloud does not answer, or refuses.
        """
        ...

    async def terminate(self, instance: InstanceSeen, report: Report) -> None:
        """
        Terminate an instance that a cloud lists, whatever the ledger says; its stack is released where it has one.

        Raises:
            ProviderError: It may still exist.
        """
        ...

    async def preview_shared(
        self, fleet: str, requests: Sequence[InstanceRequest], shared: Mapping[str, Any]
    ) -> Sequence[PreviewedChange]:
        """Say what `update_shared` would change, without asking the cloud."""
        ...

    async def update_shared(
        self,
        fleet: str,
        requests: Sequence[InstanceRequest],
        shared: Mapping[str, Any],
        report: Report,
    ) -> None:
        """
        Change in place what the hosts of a fleet share; nothing where it is so.

        Args:
            fleet: Its name.
            requests: For all hosts that it has.
            shared: `cloud` is the name of the provider, all others are in its terms. For `aws`: `ssh_from`, the addresses
                from which connections are accepted. They are accepted before earlier ones no longer are.
            report: Told what is happening.

        Raises:
            ProviderError: It may be changed in part; asking again continues.
        """
        ...

    async def forget_fleet(self, cloud: str, fleet: str) -> None:
        """
        Forget what was chosen once for all hosts of a fleet, such as their image: it is removed, with all its hosts.

        `cloud` is the name of its provider.
        """

    async def adopt(
        self, instances: Sequence[InstanceSeen], report: Report
    ) -> Sequence[InstanceSeen]:
        """
        Record instances that a cloud lists, each in the stack by which it is released later.

        Returns them with that stack in their endpoints, and with the keys that their hosts may have. In the cloud nothing is
        changed. An instance that is recorded already keeps its stack.

        Raises:
            ProviderError: Some are not recorded; asking again continues.
        """
        ...

    async def create(self, request: InstanceRequest, report: Report) -> CreatedHost:
        """
        Create the instance, or return it if it exists; a uid is bought once.

        `report` is called with sentences about the progress.

        Raises:
            ProviderError: It does not exist; the message says why.
        """
        ...


@runtime_checkable
class ImageSource(Protocol):
    """Knows which image a host would boot from if it were created now."""

    async def newest_image(self, request: InstanceRequest) -> str:
        """
        Return the id of the image that the parameter of a request names now; empty: it names one image for ever.

        Raises:
            ProviderError: The cloud does not say.
        """
        ...


@runtime_checkable
class AnswerRecords(Protocol):
    """Records which instances a cloud was asked for, and what it has answered."""

    def unanswered(self, cloud: str) -> Mapping[str, int | None]:
        """
        Return the instances that a cloud was asked for, whose answer a ledger without their ids lacks, by uid; the cloud is not asked.

        The value is until when the cloud is given time to list the instance, Unix milliseconds. None: that time has not begun,
        because no process has looked, or the one that has asked still waits for the answer. `cloud` is the name of the provider.
        """
        ...


@runtime_checkable
class CloudProvider(Protocol):
    """The part of `HostCreator` that a provider of a cloud has; what has no docstring is as there."""

    async def preview(
        self, requests: Sequence[InstanceRequest], replaced: int = 0, *, emptied: bool = False
    ) -> Sequence[PreviewedChange]: ...
    async def preview_release(
        self, requests: Sequence[InstanceRequest], created: Sequence[InstanceRequest]
    ) -> Sequence[PreviewedChange]: ...
    async def listed(
        self, environment_uid: str, request: InstanceRequest
    ) -> Sequence[InstanceSeen]: ...
    async def terminate(self, instance: InstanceSeen, report: Report) -> None: ...
    async def preview_shared(
        self, fleet: str, requests: Sequence[InstanceRequest], shared: Mapping[str, Any]
    ) -> Sequence[PreviewedChange]: ...
    async def update_shared(
        self,
        fleet: str,
        requests: Sequence[InstanceRequest],
        shared: Mapping[str, Any],
        report: Report,
    ) -> None: ...
    async def forget_fleet(self, cloud: str, fleet: str) -> None: ...
    async def adopt(
        self, instances: Sequence[InstanceSeen], report: Report
    ) -> Sequence[InstanceSeen]: ...
    async def create(self, request: InstanceRequest, report: Report) -> CreatedHost: ...

    def first_host_key(self, uid: str) -> str:
        """Return the public key with which a new host answers before it has one of its own."""
        ...

    def keep_host_key(self, request: InstanceRequest, keys: str) -> None:
        """Keep the keys that were pinned for a host, for a ledger that does not know them."""

    async def known_host_key(self, request: InstanceRequest) -> str:
        """
        Return the keys that a host may have, as far as this machine knows: those that were kept, else its first one.

        Raises:
            TemporaryError: It printed its first key, and the cloud does not show that yet.
        """
        ...

    async def printed_host_key(self, request: InstanceRequest) -> str:
        """
        Return the host key that a host printed when it booted, of one that was given none.

        Raises:
            TemporaryError: The cloud does not show it yet.
        """
        ...

    async def newest_image(self, request: InstanceRequest) -> str: ...

    def ssh_endpoint(self, request: InstanceRequest) -> Mapping[str, Any] | None:
        """Return how an instance is reached over SSH, in the terms of that provider; None: not yet."""
        ...


class HostProvider(Protocol):
    """
    Where a fleet's hosts come from.

    Attributes:
        environment_variables: Names of the environment variables that the provider reads, such as
            `AWS_PROFILE`. A background controller is started with these and few others.
    """

    @property
    def environment_variables(self) -> tuple[str, ...]: ...

    async def ensure(self, request: InstanceRequest) -> Sequence[str]:
        """
        Make the instance exist and its agent run; nothing when both are so.

        Returns:
            What a person should know about the host although it works, a sentence each.
        """

    async def connect(
        self, request: InstanceRequest, identity: Identity, cursor: Cursor | None
    ) -> Host:
        """
        Say hello.

        Raises:
            OwnedElsewhere: the agent belongs to another environment or ledger.
            TemporaryError: nobody answers now.
        """

    async def release(self, request: InstanceRequest) -> None:
        """End the instance for good: its agent is gone and its state is removed."""

    async def inventory(self, environment_uid: str) -> Sequence[InstanceSeen]:
        """
        List every instance on this machine that bears the environment's uid, whatever the ledger says.

        Hosts elsewhere are in no list: `instances_on` asks one of them.
        """

    async def instances_on(
        self, environment_uid: str, request: InstanceRequest
    ) -> Sequence[InstanceSeen]:
        """
        List the instances of an environment on the host that the request's endpoint leads to.

        Of the request only what says how the host is reached counts, and its name and fleet: an
        instance of this fleet is called as the request is. Ledger and epoch stay empty; `look` tells
        them. Empty on a host without an agent, and where `inventory` lists all that there are.

        Raises:
            TemporaryError: The host does not answer now.
            PermanentError: It cannot be asked: its key has changed, or it has no Python.
        """

    async def look(self, instance: InstanceSeen) -> HostSeen:
        """
        Read all records of an instance's agent, whichever ledger of the environment it obeys.

        Nothing is changed by it but that an agent which had ended is started: for a ledger that
        is put together again.

        Raises:
            TemporaryError: nobody answers now.
        """

    async def volume_at(self, environment_uid: str, path: str) -> VolumeSeen | None:
        """Find the volume of the environment that lies at a declared path, by its mark."""

    async def observe(self, request: InstanceRequest) -> HostSeen | None:
        """
        See a host as it is now, with what it runs; None where nobody answers.

        Starts nothing, changes nothing, and disturbs nobody who manages it.
        """

    async def open_streams(self, request: InstanceRequest) -> JobStreams:
        """
        Open a connection of its own to a host, for commands and ports of its running jobs.

        The controller that manages the host is not disturbed by it.

        Raises:
            TemporaryError: The host does not answer now.
        """

    async def place_at(self, environment_uid: str, path: str) -> PlaceSeen:
        """See what is at a volume's declared path, whoever made it."""

    async def volume_around(self, environment_uid: str, path: str) -> NeighbourSeen | None:
        """
        Find a volume, whoever made it, that a declared path lies in, or else one that lies in it.

        Links are followed to the place, and none below it. Below it no more is looked at than a
        person would wait for; the agent, which looks at all, has the last word.
        """

    async def volumes(self, environment_uid: str) -> Sequence[VolumeSeen]:
        """List the volumes that bear the environment's mark, as far as they can be found."""
