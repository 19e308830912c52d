"""What is known of a host after its session was lost."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from contract.host_site import Site, connected, job_for
from fleetform.agents.protocol.states import JobState
from fleetform.providers.contract.errors import TemporaryError


def test_without_a_cursor_all_records_come(tell) -> None:
    """Whoever lost its place gets a snapshot, and a place to go on from."""

    async def story(site: Site) -> None:
        async with connected(site) as listener:
            job = job_for(listener, "exit 4")
            assert (await listener.host.prepare(job)).ok
            await listener.ending(job)
            cursor = listener.cursor
        async with connected(site) as again:
            seen = again.host.seen
            assert seen.records is not None
            assert [(one.key, one.exit_code) for one in seen.records] == [(job.key, 4)]
            assert seen.cursor == cursor

    tell(story)


def test_with_a_cursor_only_the_rest_comes(tell) -> None:
    """Events behind the cursor come again, those before it do not."""

    async def story(site: Site) -> None:
        async with connected(site) as listener:
            first, second = job_for(listener, "true"), job_for(listener, "false")
            await listener.host.prepare(first)
            await listener.ending(first)
            cursor = listener.cursor
            await listener.host.acknowledge(cursor)
            await listener.host.prepare(second)
            await listener.ending(second)
            missed = [event for event in listener.events if event.number > cursor.number]
        async with connected(site, cursor=cursor) as again:
            assert again.host.seen.records is None
            assert again.host.seen.cursor == cursor
            await again.ending(second)
            assert again.events == missed

    tell(story)


def test_a_cursor_of_another_log_brings_a_snapshot(tell) -> None:
    """Numbers of another log mean nothing."""

    async def story(site: Site) -> None:
        async with connected(site) as listener:
            cursor = dataclasses.replace(listener.cursor, log_id="another", number=5)
        async with connected(site, cursor=cursor) as again:
            assert again.host.seen.records == ()
            assert again.host.seen.cursor.log_id != "another"

    tell(story)


def test_output_goes_on_where_it_was_left(tell) -> None:
    """Asked from an offset on, nothing is lost and nothing before it is repeated."""

    async def story(site: Site) -> None:
        go = site.folder / "go"
        async with connected(site) as listener:
            job = job_for(
                listener, "echo first", f"until [ -e {go} ]; do sleep 0.02; done", "echo second"
            )
            await listener.host.prepare(job)
            await listener.until(lambda: listener.text(job) == "first\n")
            cursor = listener.cursor
        async with connected(site, cursor=cursor) as again:
            await again.host.follow_log(job.job_uid, 6)
            go.touch()
            await again.ending(job)
            assert again.output[job.job_uid][0].offset == 6
            assert again.text(job) == "…second\n"

    tell(story)


def test_jobs_outlive_their_agent(tell) -> None:
    """An agent that is killed is started again, and finds what its jobs did meanwhile."""

    async def story(site: Site) -> None:
        go = site.folder / "go"
        async with connected(site) as listener:
            running = job_for(listener, f"until [ -e {go} ]; do sleep 0.02; done", "exit 5")
            ending = job_for(listener, "sleep 0.3", "exit 6")
            for job in (running, ending):
                await listener.host.prepare(job)
                await listener.state(job, JobState.RUNNING)
            cursor, install = listener.cursor, listener.host.seen.install_id
            site.kill_agent("fleet-0")
            await listener.until(lambda: listener.ended)
            with pytest.raises(TemporaryError):
                await listener.host.prepare(job_for(listener, "true"))
        await asyncio.sleep(0.5)
        async with connected(site, cursor=cursor) as again:
            assert again.host.seen.install_id == install
            known = {one.key: one for one in again.host.seen.records or ()}
            record = known.get(ending.key)
            if record is None or record.state is not JobState.FINISHED:
                record = await again.ending(ending)
            assert record.exit_code == 6
            go.touch()
            assert (await again.ending(running)).exit_code == 5

    tell(story)
