"""Hosts that are made, found and let go."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from contract.host_site import ENVIRONMENT, Site, connected, identity, job_for, request, wait_until
from fleetform.agents.protocol.states import JobState
from fleetform.providers.contract.errors import PermanentError, TemporaryError


def test_a_host_that_is_ensured_answers(tell) -> None:
    """It says what it is and has; a first hello brings an empty snapshot."""

    async def story(site: Site) -> None:
        async with connected(site) as listener:
            seen = listener.host.seen
            assert seen.instance_uid == request().uid
            assert (seen.ledger_id, seen.epoch, seen.records) == ("ledger", 1, ())
            assert seen.cursor.number == 0
            assert seen.report.cpu_millicores > 0
            assert seen.report.memory_bytes > 0
            assert seen.boot_id
            assert seen.install_id
            uses = await listener.host.gpu_processes()
            assert uses.keys() >= {gpu.uuid for gpu in seen.report.gpus}

    tell(story)


def test_ensuring_twice_at_once_makes_one(tell) -> None:
    """However often it is asked for, there is one agent with one installation."""

    async def story(site: Site) -> None:
        await asyncio.gather(*(site.provider.ensure(request()) for _ in range(3)))
        installs = set()
        for _ in range(2):
            async with connected(site) as listener:
                installs.add(listener.host.seen.install_id)
        assert len(installs) == 1
        assert len(await site.provider.inventory(ENVIRONMENT)) == 1

    tell(story)


def test_no_agent_answers_before_ensure(tell) -> None:
    """That is a state which may pass."""

    async def story(site: Site) -> None:
        with pytest.raises(TemporaryError):
            await site.provider.connect(request(), identity(), None)

    tell(story)


def test_the_inventory_knows_what_no_ledger_knows(tell) -> None:
    """Whose ledger an instance obeys is told also when its agent is dead."""

    async def story(site: Site) -> None:
        assert await site.provider.inventory(ENVIRONMENT) == []
        async with connected(site, who=identity(epoch=3)):
            (seen,) = await site.provider.inventory(ENVIRONMENT)
            assert (seen.uid, seen.name, seen.fleet) == (request().uid, "fleet-0", "fleet")
            assert (seen.environment_uid, seen.ledger_id, seen.epoch) == (ENVIRONMENT, "ledger", 3)  # fmt: skip
            assert seen.alive
            site.kill_agent("fleet-0")
        (dead,) = await site.provider.inventory(ENVIRONMENT)
        assert dead == dataclasses.replace(seen, alive=False)
        assert await site.provider.inventory("another") == []

    tell(story)


def test_releasing_ends_jobs_and_leaves_nothing(tell) -> None:
    """Afterwards nothing runs and nothing is listed; a second time changes nothing."""

    async def story(site: Site) -> None:
        mark = site.folder / "alive"
        async with connected(site) as listener:
            job = job_for(listener, f"while true; do touch {mark}; sleep 0.05; done")
            assert (await listener.host.prepare(job)).ok
            await listener.state(job, JobState.RUNNING)
            await asyncio.to_thread(wait_until, mark.exists)
        await site.provider.release(request())
        mark.unlink()
        assert await site.provider.inventory(ENVIRONMENT) == []
        await site.provider.release(request())
        await asyncio.sleep(0.2)
        assert not mark.exists()

    tell(story)


def test_releasing_ends_jobs_of_a_dead_agent(tell) -> None:
    """Jobs outlive their agent, and must not outlive their instance."""

    async def story(site: Site) -> None:
        mark = site.folder / "alive"
        async with connected(site) as listener:
            job = job_for(listener, f"while true; do touch {mark}; sleep 0.05; done")
            assert (await listener.host.prepare(job)).ok
            await asyncio.to_thread(wait_until, mark.exists)
            site.kill_agent("fleet-0")
        await site.provider.release(request())
        mark.unlink()
        await asyncio.sleep(0.2)
        assert not mark.exists()

    tell(story)


def test_another_instance_of_the_same_name_is_not_released(tell) -> None:
    """A name may be used again; the uid says which instance is meant."""

    async def story(site: Site) -> None:
        async with connected(site) as listener:
            other = dataclasses.replace(request(), uid="another")
            await site.provider.release(other)
            with pytest.raises(PermanentError, match="exists"):
                await site.provider.ensure(other)
            assert (await listener.host.prepare(job_for(listener, "true"))).ok

    tell(story)
