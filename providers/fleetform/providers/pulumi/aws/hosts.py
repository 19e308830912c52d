"""
Hosts on AWS: instances that are created and deleted through stacks, batch by batch.

Calls for hosts of one stack that come at the same time, or while it is changed, are one change of it. Whether an instance exists is
asked of the stack and of EC2, never of the ledger; how it is reached is for another provider to say.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetform.agents.protocol.messages import Cursor
from fleetform.providers.contract.checks import HostChecked
from fleetform.providers.contract.errors import (
    AnswerUnknown,
    OfferRefused,
    ProviderError,
    TemporaryError,
)
from fleetform.providers.contract.hosts import (
    CreatedHost,
    Host,
    Identity,
    InstanceRequest,
    PreviewedChange,
    Report,
)
from fleetform.providers.contract.job_streams import JobStreams
from fleetform.providers.contract.observed import (
    HostSeen,
    InstanceSeen,
    NeighbourSeen,
    PlaceSeen,
    VolumeSeen,
)
from fleetform.providers.contract.stacks import StackRecords
from fleetform.providers.contract.tools import ToolCheck
from fleetform.providers.pulumi.aws.adoption import adopted_batches, request_for
from fleetform.providers.pulumi.aws.batch_record import (
    BatchRecord,
    keep_host_key,
    read_host_keys,
    read_unanswered,
)
from fleetform.providers.pulumi.aws.batches import Batches
from fleetform.providers.pulumi.aws.clients import ServiceClients
from fleetform.providers.pulumi.aws.console import prints_host_key, read_host_key
from fleetform.providers.pulumi.aws.gathered_changes import GatheredChanges
from fleetform.providers.pulumi.aws.images import Images
from fleetform.providers.pulumi.aws.interfaces import efa_cards
from fleetform.providers.pulumi.aws.inventory import AwsInventory, ec2_client
from fleetform.providers.pulumi.aws.keys import EnvironmentKeys
from fleetform.providers.pulumi.aws.place import (
    account_of,
    orphan_seconds,
    record_of,
    shared_of,
    stack_of,
)
from fleetform.providers.pulumi.aws.preview import (
    preview_batch,
    previewed_access,
    previewed_release,
)
from fleetform.providers.pulumi.aws.program import OPERATION_TAG, AwsAccount
from fleetform.providers.pulumi.aws.requirements import (
    SERVICE,
    require_installed,
    require_libraries,
)
from fleetform.providers.pulumi.aws.tools import check_tools
from fleetform.providers.pulumi.aws.volumes import AwsVolumes
from fleetform.providers.pulumi.engine.file_records import FileRecords
from fleetform.providers.pulumi.engine.installation import install_cli, pulumi_program
from fleetform.providers.pulumi.engine.runner_slots import RunnerSlots
from fleetform.providers.pulumi.engine.stack import Stack, open_stack
from fleetform.providers.pulumi.engine.stack_settings import StackSettings
from fleetform.providers.pulumi.recovery.inventory import IDENTITY_TAG

ACCOUNT = "fleetform"
"""`first_boot.cloud_config.ACCOUNT`: that module is imported when a host is created."""

if TYPE_CHECKING:
    from fleetform.providers.first_boot.host_key import FirstKey

__all__ = ["AwsHosts"]

FAILED_SECONDS = 60.0
"""After a failure the same host is not asked for again for so long: an `up` takes seconds of processor time."""


class AwsHosts:
    """
    Implements `contract.hosts.HostProvider` and `HostCreator`, and `contract.tools.ToolChecker`, for one environment and event loop.

    An instance that is created is reached by another provider: `routing` asks `ssh_endpoint`.
    """

    environment_variables = (
        "AWS_ACCESS_KEY_ID",
        "AWS_CA_BUNDLE",
        "AWS_CONFIG_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        SERVICE,
        "AWS_PROFILE",
        "AWS_ROLE_ARN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "HTTPS_PROXY",
        "NO_PROXY",
        "PULUMI_HOME",
        "XDG_CONFIG_HOME",
    )

    def __init__(
        self, state: Path, environment_uid: str, records: StackRecords | None = None
    ) -> None:
        """`state` is the user's state folder; `records` of stacks are files in it unless they are given."""
        self._folder = state / "environments" / environment_uid / "pulumi"
        self._environment_uid = environment_uid
        self._records = FileRecords(self._folder) if records is None else records
        self._keys = EnvironmentKeys(self._folder, _passphrases(), environment_uid, self._records)
        stacks = self._folder / "stacks"
        self._slots = RunnerSlots()
        self._batches = Batches(stacks, self._records, self._open, self._slots)
        self._images = Images(self._records)
        self.disks = AwsVolumes(stacks, self._records, environment_uid, self._open, self._slots)
        self._creates = GatheredChanges[CreatedHost](self._create)
        self._releases = GatheredChanges[None](self._release)
        self._refused: dict[str, tuple[float, ProviderError]] = {}

    async def create(self, request: InstanceRequest, report: Report) -> CreatedHost:
        now = asyncio.get_running_loop().time()
        until, refusal = self._refused.get(request.uid, (now, None))
        if refusal is not None and now < until:
            raise refusal
        try:
            return await self._creates(request, report)
        except (AnswerUnknown, OfferRefused):
            # The caller knows which offers were refused and asks by another one, or asks again when the answer may be known.
            raise
        except ProviderError as problem:
            until = asyncio.get_running_loop().time() + FAILED_SECONDS
            self._refused[request.uid] = (until, problem)
            raise

    def first_host_key(self, uid: str) -> str:
        """Return the public key with which a new host answers before it has one of its own."""
        return self._first_key(uid).public

    def keep_host_key(self, request: InstanceRequest, keys: str) -> None:
        keep_host_key(self._records, stack_of(request), request.uid, keys)

    async def known_host_key(self, request: InstanceRequest) -> str:
        if kept := read_host_keys(self._records, stack_of(request)).get(request.uid):
            return kept
        if prints_host_key(request):
            return await self.printed_host_key(request)
        return self.first_host_key(request.uid)

    async def printed_host_key(self, request: InstanceRequest) -> str:
        account = self._account(request)
        return await asyncio.to_thread(read_host_key, request, account)

    def ssh_endpoint(self, request: InstanceRequest) -> dict[str, Any] | None:
        """Return how an instance is reached over SSH, in the terms of that provider; None: not yet."""
        if "hostname" not in request.endpoint or not request.host_key:
            return None
        jump = request.endpoint.get("proxy_jump")
        return {
            **({"proxy_jump": jump} if jump else {}),
            "hostname": request.endpoint["hostname"],
            "user": ACCOUNT,
            "become": "sudo",
            "identity_file": str(self._keys.key_file()),
            # The key is known before the first connection: it is pinned with the address.
            "host_keys": "first-use",
            "openssh_config": "off",
        }

    async def preview(
        self, requests: Sequence[InstanceRequest], replaced: int = 0, *, emptied: bool = False
    ) -> Sequence[PreviewedChange]:
        first = requests[0]
        require_installed()
        account = self._account(first)
        image = await asyncio.to_thread(self._images.resolve, first, account)
        cards = await asyncio.to_thread(efa_cards, first, account)
        record = record_of(first, account, image, cards)
        record = replace(record, hosts={one.name: one.name for one in requests})
        shared = shared_of(first, self._keys.previewed_key())
        return await preview_batch(
            self._folder, self._records, record, shared, self._slots, replaced, emptied=emptied
        )

    async def preview_release(
        self, requests: Sequence[InstanceRequest], created: Sequence[InstanceRequest]
    ) -> Sequence[PreviewedChange]:
        uids = frozenset(one.uid for one in requests)
        kept = frozenset(shared_of(one, "").operation_uid for one in created)
        found = list(previewed_release(self._records, uids, kept))
        await self._require_credentials(requests if found else ())
        return found

    async def newest_image(self, request: InstanceRequest) -> str:
        require_installed()
        return await asyncio.to_thread(self._images.newest, request, self._account(request))

    async def check(self, request: InstanceRequest) -> HostChecked:
        """Refuse: a host that is created is checked by the provider that reaches it."""
        raise _not_created(request.name)

    async def ensure(self, request: InstanceRequest) -> Sequence[str]:
        raise _not_created(request.name)

    async def connect(
        self, request: InstanceRequest, identity: Identity, cursor: Cursor | None
    ) -> Host:
        raise _not_created(request.name)

    async def release(self, request: InstanceRequest) -> None:
        await self._releases(request, lambda _: None)
        self._refused.pop(request.uid, None)

    async def inventory(self, environment_uid: str) -> Sequence[InstanceSeen]:
        """Return nothing: this machine has none of the hosts."""
        return ()

    async def instances_on(
        self, environment_uid: str, request: InstanceRequest
    ) -> Sequence[InstanceSeen]:
        """List all that exist in the account and region of the request."""
        return [one for one in await self.listed(environment_uid, request) if one.alive]

    async def listed(
        self, environment_uid: str, request: InstanceRequest
    ) -> Sequence[InstanceSeen]:
        require_installed()
        inventory = await self._inventory(self._account(request))
        return [
            InstanceSeen(
                uid=one.tags[IDENTITY_TAG],
                name=one.tags.get("Name", one.id),
                fleet=one.tags.get("fleetform:fleet", ""),
                environment_uid=environment_uid,
                ledger_id="",
                epoch=0,
                alive=one.state != "terminated",
                is_ending=one.state == "shutting-down",
                provider=request.provider,
                endpoint={
                    **request.endpoint,
                    **one.terms,
                    "stack": one.tags.get(OPERATION_TAG, ""),
                    "id": one.id,
                    "hostname": one.address,
                },
                created_at_ms=one.created_at_ms,
            )
            for one in await inventory.instances()
            if IDENTITY_TAG in one.tags
        ]

    def unanswered(self, cloud: str) -> Mapping[str, int | None]:
        return read_unanswered(self._records)

    async def terminate(self, instance: InstanceSeen, report: Report) -> None:
        require_installed()
        service = os.environ.get(SERVICE, "")
        account = account_of(instance.endpoint, self._environment_uid, service)
        await self._batches.terminate(
            instance.uid, instance.endpoint["id"], await self._inventory(account), report
        )

    async def adopt(
        self, instances: Sequence[InstanceSeen], report: Report
    ) -> Sequence[InstanceSeen]:
        require_installed()
        names, batches = await asyncio.to_thread(
            adopted_batches, instances, self._records, self._adopted_record
        )
        key = self._keys.public_key()
        for request, record in batches:
            inventory = await self._inventory(record.account)
            await self._batches.adopt(record, shared_of(request, key), inventory, report)
        found = []
        for one in instances:
            placed = replace(one, endpoint={**one.endpoint, "stack": names[one.uid]})
            known = await self.known_host_key(request_for(placed))
            found.append(replace(placed, host_key=one.host_key or known))
        return found

    def _adopted_record(self, request: InstanceRequest) -> BatchRecord:
        account = self._account(request)
        cards = efa_cards(request, account)
        record = record_of(request, account, request.endpoint["image"], cards)
        # The cloud may have chosen another zone for each instance of one batch.
        return replace(record, template=replace(record.template, zone=""))

    async def preview_shared(
        self, fleet: str, requests: Sequence[InstanceRequest], shared: Mapping[str, Any]
    ) -> Sequence[PreviewedChange]:
        stacks, ssh_from = _stacks(requests), tuple(shared["ssh_from"])
        found = [
            change
            for name in self._batches.outdated_access(fleet, stacks, ssh_from)
            for change in previewed_access(self._records, name, ssh_from)
        ]
        await self._require_credentials(requests if found else ())
        return found

    async def _require_credentials(self, requests: Sequence[InstanceRequest]) -> None:
        """Make sure that the credentials are of the accounts of these hosts: records know nothing of them."""
        accounts = {one.endpoint["account"]: one for one in requests}
        for one in accounts.values():
            require_installed()
            await asyncio.to_thread(ServiceClients, self._account(one))

    async def update_shared(
        self,
        fleet: str,
        requests: Sequence[InstanceRequest],
        shared: Mapping[str, Any],
        report: Report,
    ) -> None:
        stacks, ssh_from = _stacks(requests), tuple(shared["ssh_from"])
        names = self._batches.outdated_access(fleet, stacks, ssh_from)
        if names:
            require_installed()
        for name in names:
            await self._batches.update_access(name, ssh_from, self._inventory, report)

    async def forget_fleet(self, cloud: str, fleet: str) -> None:
        self._images.forget(fleet)

    async def look(self, instance: InstanceSeen) -> HostSeen:
        raise _not_created(instance.name)

    async def observe(self, request: InstanceRequest) -> HostSeen | None:
        return None

    async def open_streams(self, request: InstanceRequest) -> JobStreams:
        raise _not_created(request.name)

    async def volume_at(self, environment_uid: str, path: str) -> VolumeSeen | None:
        return None

    async def place_at(self, environment_uid: str, path: str) -> PlaceSeen:
        return PlaceSeen(path, exists=False)

    async def volume_around(self, environment_uid: str, path: str) -> NeighbourSeen | None:
        return None

    async def volumes(self, environment_uid: str) -> Sequence[VolumeSeen]:
        return ()

    # -- tools ------------------------------------------------------------------------------------

    def require_tools(self) -> None:
        require_installed()

    async def check_tools(self, places: Sequence[Mapping[str, Any]]) -> Sequence[ToolCheck]:
        service = os.environ.get(SERVICE, "")
        accounts = {account_of(one, self._environment_uid, service): None for one in places}
        return await check_tools(list(accounts))

    async def install_tools(self, report: Report) -> None:
        if (program := pulumi_program()) is None:
            # The library downloads the CLI of its own version.
            require_libraries()
            report("downloading the Pulumi CLI from get.pulumi.com")
            program = await install_cli()
        report(f"the Pulumi CLI is {program}")

    # -- changes ----------------------------------------------------------------------------------

    async def _create(
        self, requests: Sequence[InstanceRequest], report: Report
    ) -> Mapping[str, CreatedHost | ProviderError]:
        # Here: most commands load this class for the names of its variables only.
        from fleetform.providers.first_boot.cloud_config import cloud_config

        first = requests[0]
        require_installed()
        account = self._account(first)
        image = await asyncio.to_thread(self._images.pin, first, account)
        cards = await asyncio.to_thread(efa_cards, first, account)
        record = record_of(first, account, image, cards)
        key = self._keys.public_key()
        created = await self._batches.create(
            record.with_hosts({one.uid: one.name for one in requests}),
            shared_of(first, key),
            await self._inventory(account),
            user_data={
                one.uid: cloud_config(
                    key,
                    None if prints_host_key(one) else self._first_key(one.uid),
                    orphan_seconds=orphan_seconds(one.endpoint),
                )
                for one in requests
            },
            report=report,
        )
        if prints_host_key(first):
            return created
        return {uid: self._with_key(uid, one) for uid, one in created.items()}

    def _with_key(
        self, uid: str, created: CreatedHost | ProviderError
    ) -> CreatedHost | ProviderError:
        if isinstance(created, ProviderError):
            return created
        return replace(created, host_key=self._first_key(uid).public)

    def _first_key(self, uid: str) -> FirstKey:
        from fleetform.providers.first_boot.host_key import first_key

        return first_key(self._keys.passphrase().read_bytes(), uid)

    async def _release(
        self, requests: Sequence[InstanceRequest], report: Report
    ) -> Mapping[str, None]:
        first = requests[0]
        uids = frozenset(one.uid for one in requests)
        was_created = any("id" in one.endpoint for one in requests)
        if not was_created and self._batches.has_released(stack_of(first)):
            return dict.fromkeys(uids)
        require_installed()
        inventory = await self._inventory(self._account(first))
        await self._batches.release(stack_of(first), uids, inventory, report)
        return dict.fromkeys(uids)

    def _account(self, request: InstanceRequest) -> AwsAccount:
        service = os.environ.get(SERVICE, "")
        return account_of(request.endpoint, self._environment_uid, service)

    async def _inventory(self, account: AwsAccount) -> AwsInventory:
        client = await asyncio.to_thread(ec2_client, account)
        return AwsInventory(client, self._environment_uid)

    def _open(self, name: str) -> AbstractAsyncContextManager[Stack]:
        backend = self._records.backend()
        settings = StackSettings(
            name=name,
            folder=self._folder / "stacks" / name,
            backend=backend.url,
            passphrase=self._keys.passphrase(),
            variables=backend.variables,
            breaks_locks=backend.breaks_locks,
        )
        return open_stack(settings, environment=os.environ)


def _stacks(requests: Sequence[InstanceRequest]) -> frozenset[str]:
    return frozenset(map(stack_of, requests))


def _passphrases() -> Path:
    """Return the folder of passphrases: not in the state folder, so that one backup does not contain both."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "fleetform"
    return Path(os.environ.get("FLEETFORM_CONFIG_HOME") or config) / "pulumi"


def _not_created(name: str) -> ProviderError:
    return TemporaryError(f"instance {name}: it is not created yet")
