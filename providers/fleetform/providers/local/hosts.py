"""
The provider of hosts for this machine.

An instance is a folder under STATE/hosts/<environment uid>/ with an agent that serves it. The
folder is what exists: an agent that has ended, because nothing was to be done or because
somebody killed it, is started again and finds its jobs in there.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fleetform.agents.client.bundle import bundle_name, make_bundle, portable_name
from fleetform.agents.client.session import Session, open_session
from fleetform.agents.protocol.messages import Cursor, Hello
from fleetform.providers import host_facts
from fleetform.providers.contract.checks import HostChecked, HostFacts
from fleetform.providers.contract.errors import TemporaryError
from fleetform.providers.contract.hosts import Host, Identity, InstanceRequest
from fleetform.providers.contract.job_streams import JobStreams
from fleetform.providers.contract.observed import (
    HostSeen,
    InstanceSeen,
    NeighbourSeen,
    PlaceSeen,
    VolumeSeen,
)
from fleetform.providers.local import daemon
from fleetform.providers.local.folder import Folder, Owner, instance_folders, read_mark
from fleetform.providers.local.places import find_volumes, see_around, see_place
from fleetform.providers.session import (
    SessionHost,
    SessionStreams,
    end_jobs,
    hello_of,
    host_seen,
    translated,
    volume_path,
)

IDLE_EXIT_SECONDS = 600
"""An agent without jobs and without a controller ends after this; the next ensure starts it."""

_LOOK_SECONDS = 2.0
"""Between two looks at whether an agent is stopped: two small files are read each time."""


class LocalHosts:
    """Fills `contract.hosts.HostProvider` for one environment."""

    environment_variables: tuple[str, ...] = ()

    def __init__(
        self,
        state_home: Path,
        environment_uid: str,
        *,
        idle_exit_seconds: int = IDLE_EXIT_SECONDS,
    ) -> None:
        self._state_home = state_home
        self._environment_uid = environment_uid
        self._idle_exit_seconds = idle_exit_seconds
        # Looked through once: whoever makes one afterwards is this process.
        self._made: dict[str, Path] | None = None

    async def ensure(self, request: InstanceRequest) -> Sequence[str]:
        folder = self._folder(request.uid, request.name)
        with _machine_trouble(request.name):
            folder.claim(
                uid=request.uid,
                name=request.name,
                fleet=request.fleet,
                environment_uid=self._environment_uid,
            )
        if self._made is not None:
            self._made[request.uid] = folder.path
        await self._start(folder)
        return ()

    async def connect(
        self, request: InstanceRequest, identity: Identity, cursor: Cursor | None
    ) -> Host:
        folder = self._folder(request.uid, request.name)
        session = await self._open(folder, hello_of(identity, cursor))
        try:
            # Before any job is given to it: a lost ledger and an older one are recognised by this.
            with _machine_trouble(request.name):
                folder.note_owner(Owner(identity.ledger_id, identity.epoch, identity.fence))
            note_commits = functools.partial(
                folder.note_commits, identity.ledger_id, identity.epoch
            )
            seen = host_seen(request, session, cursor)
            return _LocalHost(
                folder,
                request.name,
                session,
                seen,
                self._volumes(self._environment_uid),
                note_commits,
            )
        except BaseException:
            await session.close()
            raise

    async def release(self, request: InstanceRequest) -> None:
        folder = self._folder(request.uid, request.name)
        if folder.exists:
            if folder.identity().get("uid") != request.uid:
                return  # Another's, of the same name: ours is gone already.
            await self._start(folder)
            await self._end_jobs(folder)
        with _machine_trouble(request.name):
            await asyncio.to_thread(folder.remove)

    async def inventory(self, environment_uid: str) -> Sequence[InstanceSeen]:
        return [
            await _instance_seen(folder, environment_uid)
            for folder in instance_folders(self._hosts / environment_uid)
            if folder.identity()
        ]

    async def instances_on(
        self, environment_uid: str, request: InstanceRequest
    ) -> Sequence[InstanceSeen]:
        return ()

    async def look(self, instance: InstanceSeen) -> HostSeen:
        folder = self._folder(instance.uid, instance.name)
        if not folder.exists:
            raise TemporaryError(f"instance {instance.name} is not on this machine")
        await self._start(folder)
        return await self._see(
            folder, InstanceRequest(instance.uid, instance.name, instance.fleet, {})
        )

    async def observe(self, request: InstanceRequest) -> HostSeen | None:
        folder = self._folder(request.uid, request.name)
        if not folder.exists:
            return None
        try:
            return await self._see(folder, request)
        except TemporaryError:
            return None

    async def check(self, request: InstanceRequest) -> HostChecked:
        asked_at_ms = time.time_ns() // 1_000_000
        question = {"folder": str(self._state_home), "person": host_facts.account_name()}
        facts = HostFacts.read(await asyncio.to_thread(host_facts.read_facts, question))
        agents = tuple(replace(one, bundle=portable_name(one.bundle)) for one in facts.agents)
        return HostChecked(
            "",
            replace(facts, agents=agents),
            asked_at_ms=asked_at_ms,
            answered_at_ms=time.time_ns() // 1_000_000,
            bundle=bundle_name(),
        )

    async def _see(self, folder: Folder, request: InstanceRequest) -> HostSeen:
        """Read an agent's records without commanding it."""
        session = await self._open(folder, self._looking(folder))
        try:
            return host_seen(request, session, None)
        finally:
            await session.close()

    async def open_streams(self, request: InstanceRequest) -> JobStreams:
        return SessionStreams(request.name, await self._look(request))

    async def _look(self, request: InstanceRequest) -> Session:
        """Open a session that commands nothing."""
        folder = self._folder(request.uid, request.name)
        if not folder.exists:
            raise TemporaryError(f"instance {request.name} is not on this machine")
        # Jobs outlive their agent, and one that was killed is started again.
        await self._start(folder)
        return await self._open(folder, self._looking(folder))

    def _looking(self, folder: Folder) -> Hello:
        """Return the hello that commands nothing."""
        owner = folder.owner()
        return Hello(self._environment_uid, owner.ledger_id, owner.epoch, owner.fence, look=True)

    async def volume_at(self, environment_uid: str, path: str) -> VolumeSeen | None:
        place = self.volume_path(environment_uid, path)
        mark = read_mark(Path(place))
        if mark.get("environment_uid") != environment_uid or not mark.get("volume_uid"):
            return None
        return VolumeSeen(str(mark["volume_uid"]), str(mark.get("name", "")), place)

    async def place_at(self, environment_uid: str, path: str) -> PlaceSeen:
        return await asyncio.to_thread(see_place, self.volume_path(environment_uid, path))

    async def volume_around(self, environment_uid: str, path: str) -> NeighbourSeen | None:
        return await asyncio.to_thread(see_around, self.volume_path(environment_uid, path))

    async def volumes(self, environment_uid: str) -> Sequence[VolumeSeen]:
        folder = self._state_home / "volumes" / environment_uid
        return await asyncio.to_thread(lambda: tuple(find_volumes(folder, environment_uid)))

    def volume_path(self, environment_uid: str, path: str) -> str:
        return volume_path(self._volumes(environment_uid), path)

    def _volumes(self, environment_uid: str) -> str:
        return f"{self._state_home}/volumes/{environment_uid}"

    @property
    def _hosts(self) -> Path:
        return self._state_home / "hosts"

    def _folder(self, uid: str, name: str) -> Folder:
        """
        Say where the instance is: below its name, or below the one it was made under.

        A folder keeps its name when its instance gets another: jobs run in there, by their paths.
        """
        named = Folder(self._hosts / self._environment_uid / name)
        found = named.identity()
        if found.get("uid") == uid:
            return named
        if self._made is None:
            self._made = {
                str(one.identity().get("uid")): one.path
                for one in instance_folders(self._hosts / self._environment_uid)
            }
        if uid in self._made and self._made[uid].is_dir():
            return Folder(self._made[uid])
        if found and found.get("name") != name:
            # Whoever was made under this name is called otherwise now.
            return Folder(self._hosts / self._environment_uid / f"{name}.{uid[:8]}")
        return named

    async def _start(self, folder: Folder) -> None:
        def archive() -> Path:
            with _machine_trouble(folder.path.name):
                return make_bundle(self._state_home / "agent", for_this_python=True)

        await daemon.start(folder, archive, idle_exit_seconds=self._idle_exit_seconds)

    async def _open(self, folder: Folder, hello: Hello) -> Session:
        name = folder.path.name
        try:
            reader, writer = await daemon.dial(folder)
        except OSError as error:
            raise TemporaryError(f"instance {name}: no agent listens: {error}") from error
        with translated(name):
            return await open_session(reader, writer, hello)

    async def _end_jobs(self, folder: Folder) -> None:
        """
        End the agent and what it runs, and return when it is gone.

        An agent that did not run has been started for it: jobs outlive their agent, and only
        an agent knows how to find and end them.
        """
        owner = folder.owner()
        await end_jobs(
            folder.path.name,
            functools.partial(self._open, folder),
            self._environment_uid,
            ledger_id=owner.ledger_id,
            epoch=owner.epoch,
        )


class _LocalHost(SessionHost):
    """A host of this machine, whose agent is looked at for as long as the session lasts."""

    def __init__(self, folder: Folder, *session: Any) -> None:
        super().__init__(*session)
        self._looking = asyncio.create_task(_keep_awake(folder), name=f"look at {folder.path.name}")

    async def close(self) -> None:
        self._looking.cancel()
        await super().close()


async def _keep_awake(folder: Folder) -> None:
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        daemon.continue_stopped(folder)


@contextlib.contextmanager
def _machine_trouble(name: str) -> Iterator[None]:
    """Raise what this machine's file system refuses as an error of the contract."""
    try:
        yield
    except OSError as error:
        # A disk is given space again, and a file that cannot be removed is let go in the end.
        place = f" ({error.filename})" if error.filename else ""
        raise TemporaryError(
            f"instance {name}: this machine refuses an operation: {error.strerror or error}{place}",
            delay_seconds=10.0,
        ) from error


async def _instance_seen(folder: Folder, environment_uid: str) -> InstanceSeen:
    identity, owner = folder.identity(), folder.owner()
    alive = await daemon.answers(folder)
    return InstanceSeen(
        uid=identity["uid"],
        name=identity["name"],
        fleet=identity["fleet"],
        environment_uid=environment_uid,
        ledger_id=owner.ledger_id,
        epoch=owner.epoch,
        alive=alive,
        fence=owner.fence,
        # One that ends by itself takes its socket away; one that was killed leaves it.
        resting=not alive and not folder.socket.exists(),
        commits=folder.commits(),
    )
