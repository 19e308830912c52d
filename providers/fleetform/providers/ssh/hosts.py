"""
The provider of hosts that are reached over SSH.

An instance is a folder on its host with an agent that serves it. The agent is started over SSH and
goes on without it: a session is a channel of the connection whose command passes bytes to the
agent. Each host has one connection, which all calls share; when it is lost, the next call opens
another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import ipaddress
import posixpath
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.agents.client.bundle import make_bundle
from fleetform.agents.client.session import Session, open_session
from fleetform.agents.protocol.messages import Cursor, Hello
from fleetform.providers.contract.checks import HostChecked
from fleetform.providers.contract.errors import (
    AgentMissing,
    PermanentError,
    ProviderError,
    TemporaryError,
)
from fleetform.providers.contract.hosts import Host, Identity, InstanceRequest, Pin
from fleetform.providers.contract.job_streams import JobStreams
from fleetform.providers.contract.observed import (
    HostSeen,
    InstanceSeen,
    NeighbourSeen,
    PlaceSeen,
    VolumeSeen,
)
from fleetform.providers.session import (
    SessionHost,
    SessionStreams,
    end_jobs,
    hello_of,
    host_seen,
    translated,
)
from fleetform.providers.ssh import setup
from fleetform.providers.ssh.checks import check_host
from fleetform.providers.ssh.driver import drive
from fleetform.providers.ssh.endpoint import Endpoint, endpoint_key
from fleetform.providers.ssh.setup import Bundle, Claimed, Installed, Steps
from fleetform.providers.ssh.updates import Updates

if TYPE_CHECKING:
    from fleetform.providers.ssh.connection import Connection

CONNECT_SECONDS = 20.0
"""A host on another continent that wakes from idling answers in a few seconds."""

KEEPALIVE_SECONDS = 15.0
"""A host that is silent for three times this is unreachable: heartbeats of the protocol, 45 s."""


class SshHosts:
    """Fills `contract.hosts.HostProvider` for one environment; `close` ends its connections."""

    environment_variables: tuple[str, ...] = ("HOME", "SSH_AUTH_SOCK")

    def __init__(
        self,
        state_home: Path,
        environment_uid: str,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        keepalive_seconds: float = KEEPALIVE_SECONDS,
    ) -> None:
        self._state_home = state_home
        self._environment_uid = environment_uid
        self._connect_seconds = connect_seconds
        self._keepalive_seconds = keepalive_seconds
        self._connections: dict[str, Connection] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._read_bundle: Bundle | None = None
        # Where agents are, by instance uid, as far as this process has found out.
        self._installed: dict[str, Installed] = {}
        self._updates = Updates()

    async def ensure(self, request: InstanceRequest) -> Sequence[str]:
        connection = await self._connection(request)
        # Two that install at once would both upload the agent.
        async with self._lock(f"install {request.uid}"):
            installed = await self._ensure(request, connection)
            self._installed[request.uid] = installed
            return installed.notes

    async def _ensure(self, request: InstanceRequest, connection: Connection) -> Installed:
        claim = setup.claim(request, self._environment_uid, self._bundle())
        claimed = await drive(connection, claim)
        if claimed.is_update:
            return await self._update(request, connection, claimed)
        return await drive(connection, setup.start(request.name, claimed, claimed.bundle))

    async def _update(
        self, request: InstanceRequest, connection: Connection, claimed: Claimed
    ) -> Installed:
        """Replace the agent of another release, or have that one run on."""
        installed: Installed | None = None

        async def update() -> str:
            nonlocal installed
            installed = await drive(connection, setup.start(request.name, claimed, claimed.bundle))
            if not installed.failure and (
                why := await self._why_mute(request, connection, installed)
            ):
                earlier = setup.start(request.name, claimed, claimed.earlier)
                installed = dataclasses.replace(await drive(connection, earlier), failure=why)
            return installed.failure

        failure = await self._updates.run(request.fleet, self._bundle().sha256, update)
        if installed is None:
            return await drive(connection, setup.start(request.name, claimed, claimed.earlier))
        if not failure:
            return installed
        note = (
            f"the agent was not updated, and {posixpath.basename(claimed.earlier)} serves on, also on"
            f" the other hosts of fleet {request.fleet}: {failure}"
        )
        return dataclasses.replace(installed, notes=(*installed.notes, note))

    async def _why_mute(
        self, request: InstanceRequest, connection: Connection, installed: Installed
    ) -> str:
        """Say why an agent that runs does not answer a hello; empty where it does."""
        try:
            hello = Hello(self._environment_uid, "", 0, 0, look=True)
            await (await self._open(request, connection, installed, hello)).close()
        except ProviderError as error:
            if not connection.is_open:
                # The network, and not the agent.
                raise
            return f"the new agent runs and does not answer: {error}"
        return ""

    async def connect(
        self, request: InstanceRequest, identity: Identity, cursor: Cursor | None
    ) -> Host:
        connection = await self._connection(request)
        # Taken out: unless it answers there, the next call looks for it again.
        installed = self._installed.pop(request.uid, None) or await self._where(request, connection)
        session = await self._open(request, connection, installed, hello_of(identity, cursor))
        self._installed[request.uid] = installed
        try:
            seen = _located(request, host_seen(request, session, cursor), connection)
        except BaseException:
            await session.close()
            raise
        volumes = f"{installed.volumes}/{self._environment_uid}"
        return SessionHost(request.name, session, seen, volumes)

    async def release(self, request: InstanceRequest) -> None:
        self._installed.pop(request.uid, None)
        connection = await self._connection(request)
        found = await drive(connection, self._found(request))
        if found is not None:
            # Jobs outlive their agent, and only an agent knows how to find and end them. One that
            # has run here needs no update for that.
            claim = setup.claim(request, self._environment_uid, self._bundle())
            claimed = await drive(connection, claim)
            bundle = claimed.earlier or claimed.bundle
            installed = await drive(connection, setup.start(request.name, claimed, bundle))
            opening = functools.partial(self._open, request, connection, installed)
            await end_jobs(request.name, opening, self._environment_uid)
        await drive(connection, setup.remove(request, self._environment_uid, self._bundle()))

    async def inventory(self, environment_uid: str) -> Sequence[InstanceSeen]:
        """Return nothing: no list has all hosts. Whose a host is, its agent says at each hello."""
        return ()

    async def instances_on(
        self, environment_uid: str, request: InstanceRequest
    ) -> Sequence[InstanceSeen]:
        connection = await self._connection(request)
        found = await drive(connection, setup.instances(request, environment_uid))
        return [
            InstanceSeen(
                uid=one.uid,
                # Its folder keeps the name that it was made under.
                name=request.name if one.fleet == request.fleet else one.name,
                fleet=one.fleet,
                environment_uid=environment_uid,
                ledger_id="",
                epoch=0,
                alive=one.is_alive,
                provider=request.provider,
                endpoint=request.endpoint,
                host_key=connection.host_key,
                declared=request.declared if one.fleet == request.fleet else {},
            )
            for one in found
        ]

    async def look(self, instance: InstanceSeen) -> HostSeen:
        request = InstanceRequest(
            instance.uid,
            instance.name,
            instance.fleet,
            instance.declared,
            provider=instance.provider,
            endpoint=instance.endpoint,
            host_key=instance.host_key,
        )
        return await self._see(request, starts=True)

    async def observe(self, request: InstanceRequest) -> HostSeen | None:
        try:
            return await self._see(request)
        except ProviderError:
            # Also one whose key has changed, or that refuses to sign in: what runs there is unknown.
            return None

    async def _see(self, request: InstanceRequest, *, starts: bool = False) -> HostSeen:
        """Read an agent's records without commanding it; see `_look`."""
        connection, session = await self._look(request, starts=starts)
        try:
            return _located(request, host_seen(request, session, None), connection)
        finally:
            await session.close()

    async def check(self, request: InstanceRequest) -> HostChecked:
        from fleetform.providers.ssh.connection import open_connection

        # One of its own: what is kept open says nothing about who can sign in now.
        connection = await open_connection(
            request.name,
            _endpoint(request),
            request.host_key,
            connect_seconds=self._connect_seconds,
            keepalive_seconds=self._keepalive_seconds,
        )
        try:
            return await check_host(connection, request)
        finally:
            await connection.close()

    async def secure(self, request: InstanceRequest, first: str, pin: Pin) -> None:
        """Replace the first key of a new host by one that the host makes; see `own_key`."""
        from fleetform.providers.ssh.connection import open_connection
        from fleetform.providers.ssh.own_key import replace_first_key

        async def connect(request: InstanceRequest) -> Connection:
            # One of its own: each step is about which key the host has now.
            return await open_connection(
                request.name,
                _endpoint(request),
                request.host_key,
                connect_seconds=self._connect_seconds,
                keepalive_seconds=self._keepalive_seconds,
            )

        await replace_first_key(request, first, pin, connect)

    async def open_streams(self, request: InstanceRequest) -> JobStreams:
        _, session = await self._look(request)
        return SessionStreams(request.name, session)

    async def _look(
        self, request: InstanceRequest, *, starts: bool = False
    ) -> tuple[Connection, Session]:
        """Open a session that commands nothing; `starts` an agent that has ended, as after a reboot."""
        connection = await self._connection(request)
        installed = await self._where(request, connection)
        if starts:
            await drive(connection, setup.resume(request, installed))
        hello = Hello(self._environment_uid, "", 0, 0, look=True)
        return connection, await self._open(request, connection, installed, hello)

    async def volume_at(self, environment_uid: str, path: str) -> VolumeSeen | None:
        return None

    async def place_at(self, environment_uid: str, path: str) -> PlaceSeen:
        return PlaceSeen(path, exists=False)

    async def volume_around(self, environment_uid: str, path: str) -> NeighbourSeen | None:
        return None

    async def volumes(self, environment_uid: str) -> Sequence[VolumeSeen]:
        return ()

    async def close(self) -> None:
        """End all connections; agents and their jobs go on."""
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            await connection.close()

    # -- agents -----------------------------------------------------------------------------

    async def _where(self, request: InstanceRequest, connection: Connection) -> Installed:
        installed = await drive(connection, self._found(request))
        if installed is None:
            raise AgentMissing(f"instance {request.name}: no agent is installed on its host")
        return installed

    def _found(self, request: InstanceRequest) -> Steps[Installed | None]:
        return setup.find(request, self._environment_uid, self._bundle())

    async def _open(
        self, request: InstanceRequest, connection: Connection, installed: Installed, hello: Hello
    ) -> Session:
        reader, writer = await connection.open_stream(installed.connect)
        with translated(request.name):
            return await open_session(reader, writer, hello)

    def _bundle(self) -> Bundle:
        # Read once: each connection to each host needs its digest.
        if self._read_bundle is None:
            self._read_bundle = self._make_bundle()
        return self._read_bundle

    def _make_bundle(self) -> Bundle:
        try:
            return Bundle.read(make_bundle(self._state_home / "agent"))
        except OSError as error:
            raise TemporaryError(
                f"the agent's bundle cannot be written: {error.strerror or error}"
                f" ({error.filename})",
                delay_seconds=10.0,
            ) from error

    # -- connections ------------------------------------------------------------------------

    async def _connection(self, request: InstanceRequest) -> Connection:
        """Return the connection to the instance's host; opens one where there is none."""
        from fleetform.providers.ssh.connection import open_connection

        key = endpoint_key(request.endpoint)
        async with self._lock(f"connect {key}"):
            kept = self._connections.get(key)
            if kept is not None and kept.is_open and kept.host_key in _accepted(request, kept):
                return kept
            if kept is not None:
                del self._connections[key]
                await kept.close()
            connection = await open_connection(
                request.name,
                _endpoint(request),
                request.host_key,
                connect_seconds=self._connect_seconds,
                keepalive_seconds=self._keepalive_seconds,
            )
            self._connections[key] = connection
            return connection

    @contextlib.asynccontextmanager
    async def _lock(self, key: str) -> AsyncIterator[None]:
        async with self._locks.setdefault(key, asyncio.Lock()):
            yield


def _endpoint(request: InstanceRequest) -> Endpoint:
    try:
        return Endpoint.read(request.endpoint)
    except KeyError as error:
        raise PermanentError(
            f"instance {request.name}: its endpoint has no {error}",
            advice="declare the host in `ssh_config`",
        ) from error


def _accepted(request: InstanceRequest, kept: Connection) -> tuple[str, ...]:
    """Return the keys with which an open connection may be used for the request."""
    is_first_use = _endpoint(request).host_keys == "first-use"
    pinned = tuple(request.host_key.splitlines())
    return pinned if is_first_use and pinned else (kept.host_key,)


def _located(request: InstanceRequest, seen: HostSeen, connection: Connection) -> HostSeen:
    """
    Add the host's key, and the address at which its peers reach it.

    Raises:
        PermanentError: It has no address in the network of its fleet.
    """
    endpoint = _endpoint(request)
    address = connection.address
    if endpoint.network and not endpoint.internal_ip:
        address = _address_in(endpoint.network, seen.report.addresses)
        if not address:
            found = ", ".join(seen.report.addresses) or "none"
            raise PermanentError(
                f"instance {request.name}: its host has no address in the network {endpoint.network};"
                f" its addresses: {found}",
                advice="correct `network:` of the fleet, or set `internal_ip:` of the host",
            )
    # Behind a jump host, and at the end of a tunnel, the connection does not know the address.
    address = address or next(iter(seen.report.addresses), "")
    return dataclasses.replace(seen, address=address, host_key=connection.host_key)


def _address_in(network: str, addresses: Sequence[str]) -> str:
    wanted = ipaddress.ip_network(network)
    return next((one for one in addresses if ipaddress.ip_address(one) in wanted), "")
