"""A volume's data goes when no job has it mounted any more, and not when the jobs were asked to end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from contract.ledgers import CountingIds, Desk, StillClock, step, submit_step
from fleetform.agents.protocol.states import JobState
from fleetform.controllers.mirror import Mirror
from fleetform.controllers.volumes import SILENCE_MS, Volumes
from fleetform.model.run import RunState
from fleetform.providers.contract.errors import PermanentError
from fleetform.store.opening import ledger_in_memory
from simulation.controller import Silent

ENVIRONMENT = "e" * 32
MOUNTS = [{"name": "data", "path": "/d"}]


@dataclass
class Sessions:
    """What a wait asks of the sessions: whether rows are news, and which hosts answer."""

    silent: bool = False
    rows_changed: bool = False

    def wake(self) -> None: ...

    def session(self, uid: str) -> object:
        return None if self.silent else SimpleNamespace(host=object())


class Notices(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def notice(self, text: str, **_about: object) -> None:
        self.said.append(text)


@dataclass
class Story:
    """A step that waits for the volume `data`, while real rows move on under it."""

    desk: Desk = field(
        default_factory=lambda: Desk.of(ledger_in_memory(ENVIRONMENT, CountingIds(), now_ms=0))
    )
    hosts: Sessions = field(default_factory=Sessions)
    clock: StillClock = field(default_factory=StillClock)
    notices: Notices = field(default_factory=Notices)

    async def begin(self) -> asyncio.Task[None]:
        self.volumes = Volumes(hosts=self.hosts, clock=self.clock, progress=self.notices)
        waiting = asyncio.create_task(self.volumes.unmounted("data", "local"))
        await asyncio.sleep(0)
        return waiting

    async def round(self) -> None:
        """As the manager's: rows are read, and then it is asked who may go on."""
        mirror = Mirror()
        mirror.replace(self.desk.ledger.read_book())
        self.hosts.rows_changed = False
        self.volumes.round(mirror)
        for _ in range(3):
            await asyncio.sleep(0)


def test_it_waits_for_an_end_and_not_for_its_being_asked_for() -> None:
    """Until the host has said that the job is over; whose end it is, is told once."""

    async def story() -> None:
        one = Story()
        one.desk.submit(submit_step("train", volumes=MOUNTS))
        assert one.desk.place("train")
        one.desk.submit(step("run.stop", "train"))
        waiting = await one.begin()
        for _ in range(2):
            await one.round()
            assert not waiting.done()
        assert one.notices.said == ["volume/data waits for the end of run/train"]
        one.desk.say(one.desk.record("train", JobState.FINISHED))
        await one.round()
        await waiting

    asyncio.run(story())


def test_rows_that_are_older_than_the_wait_release_nothing() -> None:
    """They may know nothing yet of who is at work."""

    async def story() -> None:
        one = Story()
        waiting = await one.begin()
        assert one.hosts.rows_changed
        one.volumes.round(Mirror())
        await asyncio.sleep(0)
        assert not waiting.done()
        await one.round()
        await waiting

    asyncio.run(story())


def test_others_are_not_waited_for() -> None:
    """Who mounts another volume, or only waits, is no user of this one."""

    async def story() -> None:
        one = Story()
        one.desk.submit(submit_step("other", volumes=[{"name": "else", "path": "/d"}]))
        one.desk.submit(submit_step("later", volumes=MOUNTS))
        assert one.desk.place("other")
        waiting = await one.begin()
        await one.round()
        await waiting

    asyncio.run(story())


def test_whom_nobody_has_asked_to_end_keeps_the_volume() -> None:
    """To wait might take for ever, and not to wait would cost the data."""

    async def story() -> None:
        one = Story()
        one.desk.submit(submit_step("train", volumes=MOUNTS))
        assert one.desk.place("train")
        waiting = await one.begin()
        await one.round()
        with pytest.raises(
            PermanentError, match="run/train is running with it mounted, and no stop was requested"
        ):
            await waiting

    asyncio.run(story())


def test_a_host_that_is_silent_proves_no_end() -> None:
    """After a while the step fails instead: a job may still write the data."""

    async def story() -> None:
        one = Story()
        one.desk.submit(submit_step("train", volumes=MOUNTS))
        assert one.desk.place("train")
        one.desk.submit(step("run.stop", "train"))
        one.hosts.silent = True
        waiting = await one.begin()
        await one.round()
        assert not waiting.done()
        one.clock.now += SILENCE_MS
        await one.round()
        with pytest.raises(PermanentError, match="host local-0 is unreachable"):
            await waiting

    asyncio.run(story())


def test_a_job_that_was_given_up_is_waited_for_too() -> None:
    """Its run is over by the ledger's word, and its host has not said so."""

    async def story() -> None:
        one = Story()
        one.desk.submit(submit_step("train", volumes=MOUNTS))
        assert one.desk.place("train")
        one.desk.finish("train", RunState.STOPPED, "stopped")
        waiting = await one.begin()
        await one.round()
        assert not waiting.done()
        assert one.notices.said == ["volume/data waits for the end of a job that was declared lost"]
        one.desk.say(one.desk.record("train", JobState.FINISHED))
        await one.round()
        await waiting

    asyncio.run(story())
