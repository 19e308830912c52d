"""A disk is attached where a job needs it, and leaves its host when no job there uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from contract.ledgers import CountingIds, Desk, StillClock, submit_step
from fleetform.agents.protocol.states import JobState
from fleetform.controllers.disks import SILENCE_MS, Disks
from fleetform.controllers.mirror import Mirror
from fleetform.controllers.task_group import TaskGroup
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.run import Run
from fleetform.model.volume import NetworkVolume
from fleetform.providers.contract.errors import AttachedElsewhere, PermanentError
from fleetform.providers.contract.volumes import VolumeRequest
from fleetform.store.opening import ledger_in_memory
from simulation.controller import Silent

T = TypeVar("T")

PLACE = {"account": "1", "region": "us-east-1", "zone": "us-east-1a"}
DISK = {"provider": "aws", "registered": "", "id": "vol-1", "place": PLACE}
UID = "d" * 32


@dataclass
class Cloud:
    """One disk, and all calls about it; a `VolumeProvider` and its source."""

    instance: str = ""
    calls: list[str] = field(default_factory=list)

    def volume_provider(self, name: str) -> Cloud:
        return self

    async def attach(self, request: VolumeRequest, instance: str, report: object) -> None:
        self.calls.append(f"attach {instance}")
        if self.instance not in {"", instance}:
            raise AttachedElsewhere(f"it is attached to {self.instance}")
        self.instance = instance

    async def detach(self, request: VolumeRequest, report: object) -> None:
        self.calls.append("detach")
        self.instance = ""


@dataclass
class Host:
    calls: list[str]
    warning: str = ""
    capabilities: tuple[str, ...] = ("disk.snapshot",)

    @property
    def seen(self) -> object:
        return SimpleNamespace(capabilities=self.capabilities)

    def volume_path(self, path: str) -> str:
        return f"/volumes/{path}"

    async def mount_disk(
        self, volume_uid: str, name: str, disk: str, path: str, snapshot: str = ""
    ) -> object:
        self.calls.append(f"mount {disk} {path}{snapshot and f' of {snapshot}'}")
        return SimpleNamespace(ok=True, body={"warning": self.warning} if self.warning else {})

    async def mount_file_system(self, kind: str, source: str, path: str) -> object:
        self.calls.append(f"mount {kind} {source} {path}")
        return SimpleNamespace(ok=True)

    async def unmount_disk(self, path: str) -> object:
        self.calls.append(f"unmount {path}")
        return SimpleNamespace(ok=True)


def instance(uid: str, zone: str = "us-east-1a") -> Instance:
    endpoint = {**PLACE, "zone": zone, "id": f"i-{uid}"}
    return Instance(
        uid=uid, name=uid, fleet="gpus", number=0, state=InstanceState.READY, generation=1,
        provider="aws", endpoint=endpoint,
    )  # fmt: skip


class Story:
    """A run that mounts the disk, on the first host of the desk."""

    def __init__(self, attached_to: str = "") -> None:
        ledger = ledger_in_memory("e" * 32, CountingIds(), now_ms=0)
        self.desk = Desk.of(ledger)
        self.clock, self.cloud, self.is_silent = StillClock(), Cloud(), False
        self.host = Host(self.cloud.calls)
        self.desk.submit(submit_step("train", volumes=[{"name": "data", "path": "/d"}]))
        assert self.desk.place("train")
        self.worker = self.desk.instances[0]
        self.volume = NetworkVolume("data", UID, DISK, attached_to or self.worker)
        self.disks = Disks(
            hosts=self, provider=self.cloud, ledger=ledger, gate=self.gate, clock=self.clock,
            progress=Silent(), task_group=TaskGroup(), fence=self.desk.fence,
        )  # fmt: skip

    def wake(self) -> None: ...

    def session(self, uid: str) -> object:
        host = None if self.is_silent else self.host
        return SimpleNamespace(host=host, instance=SimpleNamespace(name=uid))

    async def reach_some(self, instances: list[Instance]) -> dict[str, Host]:
        return {one.uid: self.host for one in instances}

    async def gate(self, call: Callable[[], T]) -> T:
        return call()

    def mirror(self) -> Mirror:
        mirror = Mirror()
        mirror.replace(self.desk.ledger.read_book())
        mirror.disks = {"data": self.volume}
        return mirror

    async def round(self) -> None:
        self.disks.round(self.mirror())
        for _ in range(5):
            await asyncio.sleep(0)

    def end(self) -> None:
        self.desk.say(self.desk.record("train", JobState.FINISHED))

    async def mount(self, on: Instance) -> Any:
        run: Run = self.desk.run("train")
        return await self.disks.mounted(run, on, self.host, self.mirror())


def play(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story())


def test_a_disk_that_is_attached_elsewhere_stays_there() -> None:
    """The job is refused, and the end of it takes nothing away from a person's instance."""

    async def story() -> None:
        one = Story(attached_to="none")
        one.volume = replace(one.volume, attached_to="")
        one.cloud.instance = "i-of-a-person"
        with pytest.raises(AttachedElsewhere):
            await one.mount(instance(one.worker))
        one.end()
        await one.round()
        assert one.cloud.instance == "i-of-a-person"
        assert one.cloud.calls == [f"attach i-{one.worker}"]

    play(story)


def test_it_is_detached_after_the_last_job() -> None:
    """First its host writes back what it has; a job that uses it keeps it."""

    async def story() -> None:
        one = Story()
        await one.round()
        assert one.cloud.calls == []
        one.end()
        await one.round()
        assert one.cloud.calls == [f"unmount /volumes/.disks/{UID}", "detach"]
        await one.round()
        assert not one.disks.is_busy

    play(story)


def test_a_silent_host_loses_it_after_a_while() -> None:
    """Until then the controller does not end."""

    async def story() -> None:
        one = Story()
        one.is_silent = True
        one.end()
        await one.round()
        assert one.cloud.calls == []
        assert one.disks.is_busy
        one.clock.now += SILENCE_MS
        await one.round()
        assert one.cloud.calls == ["detach"]

    play(story)


def test_a_disk_of_a_snapshot_is_for_agents_that_never_format_it() -> None:
    """An agent of an earlier release would format it. The warning of a disk that could not grow is shown."""

    async def story() -> None:
        one = Story(attached_to="a")
        place = {**PLACE, "snapshot": "snap-1"}
        one.volume = replace(one.volume, request={**DISK, "place": place})
        told: list[str] = []
        one.disks._progress.notice = lambda text, **_about: told.append(text)
        one.host.capabilities = ()
        with pytest.raises(PermanentError, match="is of an earlier release"):
            await one.mount(instance("a"))
        one.host.capabilities, one.host.warning = ("disk.snapshot",), "it is smaller"
        await one.mount(instance("a"))
        assert one.cloud.calls[-1] == f"mount vol-1 /volumes/.disks/{UID} of snap-1"
        assert told == ["volume data: it is smaller"]

    play(story)


def test_a_job_gets_it() -> None:
    """It is attached and mounted, and its path is that of the volume."""

    async def story() -> None:
        one = Story(attached_to="a")
        assert await one.mount(instance("a")) == {"data": f".disks/{UID}"}
        assert one.cloud.calls == ["attach i-a", f"mount vol-1 /volumes/.disks/{UID}"]

    play(story)


def test_it_leaves_a_host_that_does_not_use_it() -> None:
    """Another host gets it once it is detached."""

    async def story() -> None:
        one = Story(attached_to="b")
        await one.mount(instance("a"))
        path = f"/volumes/.disks/{UID}"
        calls = [f"unmount {path}", "detach", "attach i-a", f"mount vol-1 {path}"]
        assert one.cloud.calls == calls

    play(story)


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        (instance("a"), "volume data is in use on another host"),
        (instance("a", "us-east-1b"), "vol-1 is in us-east-1a, where host a is not"),
    ],
)
def test_it_is_refused(host: Instance, problem: str) -> None:
    """Nothing is asked of the cloud."""

    async def story() -> None:
        one = Story()
        with pytest.raises(PermanentError, match=problem):
            await one.mount(host)
        assert one.cloud.calls == []

    play(story)


def test_hosts_that_may_have_it() -> None:
    """All of its zone, or the one where a job uses it."""
    one = Story()
    mirror = one.mirror()
    worker = mirror.instances[0]
    mirror.instances = (*mirror.instances, instance("a"), instance("b", "us-east-1b"))
    assert mirror.as_scheduler_state().volume_hosts["data"] == {worker.name}
    one.end()
    mirror = one.mirror()
    mirror.instances = (*mirror.instances, instance("a"), instance("b", "us-east-1b"))
    assert mirror.as_scheduler_state().volume_hosts["data"] == {"a"}


SHARED = NetworkVolume(
    "data",
    UID,
    {
        **DISK,
        "registered": "fs-1",
        "id": "fs-1",
        "place": {**PLACE, "zone": "", "file_system": "efs"},
    },
    source="fs-1.efs:/",
)


def test_a_shared_file_system_is_on_several_hosts() -> None:
    """Nothing is attached or noted, hosts of every zone have it, and a release unmounts it from all."""

    async def story() -> None:
        one = Story()
        one.volume = SHARED
        path = f"/volumes/.disks/{UID}"
        mount = f"mount efs fs-1.efs:/ {path}"
        await one.mount(instance("a"))
        await one.mount(instance("b", "us-east-1b"))
        assert one.cloud.calls == [mount, mount]
        one.end()
        await one.round()
        assert not one.disks.is_busy
        one.cloud.calls.clear()
        book = SimpleNamespace(instances=(instance("a"), instance("b", "us-east-1b")))
        one.disks._ledger = SimpleNamespace(read_book=lambda _: book)
        await one.disks.detached(VolumeRequest(uid=UID, name="data", **SHARED.request))
        assert one.cloud.calls == [f"unmount {path}", f"unmount {path}"]

    play(story)


def test_hosts_that_may_have_a_shared_file_system() -> None:
    """All of its region, also while a job uses it."""
    one = Story()
    one.volume = SHARED
    mirror = one.mirror()
    far = replace(instance("c"), endpoint={**PLACE, "region": "us-west-2"})
    mirror.instances = (instance("a"), instance("b", "us-east-1b"), far)
    state = mirror.as_scheduler_state()
    assert state.volume_hosts["data"] == {"a", "b"}
    assert not state.disks_in_use


def test_a_file_system_of_another_region_is_refused() -> None:
    """Its region is named."""

    async def story() -> None:
        one = Story()
        one.volume = SHARED
        far = replace(instance("c"), endpoint={**PLACE, "region": "us-west-2"})
        with pytest.raises(PermanentError, match="fs-1 is in us-east-1, where host c is not"):
            await one.mount(far)

    play(story)
