"""What every provider of hosts promises, tried on real agents with real jobs."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import os
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest

from contract.host_site import (
    ENVIRONMENT,
    Listener,
    LocalSite,
    Site,
    connected,
    identity,
    job_for,
    request,
)
from fleetform.agents.protocol.messages import FileEntry, Mount, StartJob
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.providers.contract.errors import OwnedElsewhere, PermanentError, TemporaryError

SITES = {"local": LocalSite}

Story = Callable[[Site], Awaitable[None]]


@pytest.fixture(params=SITES)
def tell(request, tmp_path) -> Iterator[Callable[[Story], None]]:
    """Run a story on a fresh site of each provider and end everything it started."""
    site = SITES[request.param](tmp_path)

    async def run(story: Story) -> None:
        try:
            async with asyncio.timeout(60):
                await story(site)
        finally:
            await site.close()

    return lambda story: asyncio.run(run(story))


async def stop(listener: Listener, job: StartJob, *, gen: int = 2):
    return await listener.host.stop(job.key, job.job_uid, gen, cause=Cause.STOPPED, grace_seconds=1)


class TestInstances:
    def test_a_host_that_is_ensured_answers(self, tell) -> None:
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

        tell(story)

    def test_ensuring_twice_at_once_makes_one(self, tell) -> None:
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

    def test_nobody_answers_before_ensure(self, tell) -> None:
        """That is a state which may pass."""

        async def story(site: Site) -> None:
            with pytest.raises(TemporaryError):
                await site.provider.connect(request(), identity(), None)

        tell(story)

    def test_the_inventory_knows_what_no_ledger_knows(self, tell) -> None:
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

    def test_releasing_ends_jobs_and_leaves_nothing(self, tell) -> None:
        """Afterwards nothing runs and nothing is listed; a second time changes nothing."""

        async def story(site: Site) -> None:
            mark = site.folder / "alive"
            async with connected(site) as listener:
                job = job_for(listener, f"while true; do touch {mark}; sleep 0.05; done")
                assert (await listener.host.prepare(job)).ok
                await listener.state(job, JobState.RUNNING)
                await asyncio.to_thread(_wait_for, mark.exists)
            await site.provider.release(request())
            mark.unlink()
            assert await site.provider.inventory(ENVIRONMENT) == []
            await site.provider.release(request())
            await asyncio.sleep(0.2)
            assert not mark.exists()

        tell(story)

    def test_releasing_ends_jobs_of_a_dead_agent(self, tell) -> None:
        """Jobs outlive their agent, and must not outlive their instance."""

        async def story(site: Site) -> None:
            mark = site.folder / "alive"
            async with connected(site) as listener:
                job = job_for(listener, f"while true; do touch {mark}; sleep 0.05; done")
                assert (await listener.host.prepare(job)).ok
                await asyncio.to_thread(_wait_for, mark.exists)
                site.kill_agent("fleet-0")
            await site.provider.release(request())
            mark.unlink()
            await asyncio.sleep(0.2)
            assert not mark.exists()

        tell(story)

    def test_another_instance_of_the_same_name_is_not_released(self, tell) -> None:
        """A name may be used again; the uid says which instance is meant."""

        async def story(site: Site) -> None:
            async with connected(site) as listener:
                other = dataclasses.replace(request(), uid="another")
                await site.provider.release(other)
                with pytest.raises(PermanentError, match="exists"):
                    await site.provider.ensure(other)
                assert (await listener.host.prepare(job_for(listener, "true"))).ok

        tell(story)


class TestJobs:
    def test_a_job_runs_and_its_output_arrives_before_its_end(self, tell) -> None:
        """Standard output and error are one stream; the exit code is the shell's."""

        async def story(site: Site) -> None:
            async with connected(site) as listener:
                job = job_for(listener, "echo one", "echo two >&2", "exit 3", "echo never")
                assert (await listener.host.prepare(job)).ok
                record = await listener.ending(job)
                assert (record.cause, record.exit_code, record.signal) == (Cause.EXITED, 3, None)
                assert listener.text(job) == "one\ntwo\n"
                assert listener.output[job.job_uid][-1].complete
                assert record.log_bytes == 8
                ends = [index for index, message in enumerate(listener.order)
                        if getattr(message, "complete", False)
                        or getattr(getattr(message, "record", None), "state", None)
                        is JobState.FINISHED]  # fmt: skip
                assert getattr(listener.order[ends[0]], "complete", False)

        tell(story)

    def test_it_sees_what_it_was_given(self, tell) -> None:
        """Environment and directory are the job's own."""

        async def story(site: Site) -> None:
            async with connected(site) as listener:
                job = job_for(listener, 'echo "$GREETING"', "ls -A", env={"GREETING": "hello"})
                assert (await listener.host.prepare(job)).ok
                await listener.ending(job)
                assert listener.text(job) == "hello\n"

        tell(story)

    def test_nothing_runs_between_prepare_and_start(self, tell) -> None:
        """A gang waits prepared until all its ranks are."""

        async def story(site: Site) -> None:
            async with connected(site) as listener:
                mark = site.folder / "ran"
                job = job_for(listener, f"touch {mark}", go=False)
                assert (await listener.host.prepare(job)).ok
                await listener.state(job, JobState.PREPARED)
                await asyncio.sleep(0.2)
                assert not mark.exists()
                assert (await listener.host.start(job.key, 2, job.boot_id)).ok
                assert (await listener.ending(job)).exit_code == 0
                assert mark.exists()

        tell(story)

    def test_a_request_that_comes_twice_runs_once(self, tell) -> None:
        """The same again is answered as before; another job under the same key conflicts."""

        async def story(site: Site) -> None:
            async with connected(site) as listener:
                job = job_for(listener, f"echo x >> {site.folder}/times")
                for _ in range(2):
                    assert (await listener.host.prepare(job)).ok
                await listener.ending(job)
                assert (await listener.host.prepare(job)).ok
                other = dataclasses.replace(job, commands=("false",))
                reply = await listener.host.prepare(other)
                assert (reply.ok, reply.code) == (False, "conflict")
                assert (site.folder / "times").read_text() == "x\n"

        tell(story)

    def test_another_boot_is_refused(self, tell) -> None:
        """What was reserved under another boot may be gone."""

        async def story(site: Site) -> None:
            async with connected(site) as listener:
                job = dataclasses.replace(job_for(listener, "true"), boot_id="another")
                reply = await listener.host.prepare(job)
                assert (reply.ok, reply.code) == (False, "boot_changed")

        tell(story)

    def test_a_running_job_is_stopped_with_all_it_started(self, tell) -> None:
        """The cause says that somebody wanted it so, whatever it exits with."""

        async def story(site: Site) -> None:
            async with connected(site) as listener:
                mark = site.folder / "alive"
                job = job_for(
                    listener,
                    f"(while true; do touch {mark}; sleep 0.05; done) &",
                    "echo up",
                    "wait",
                )
                assert (await listener.host.prepare(job)).ok
                await listener.until(lambda: "up" in listener.text(job))
                assert (await stop(listener, job)).ok
                assert (await listener.ending(job)).cause is Cause.STOPPED
                mark.unlink(missing_ok=True)
                await asyncio.sleep(0.2)
                assert not mark.exists()

        tell(story)

    def test_a_job_stopped_before_it_came_never_starts(self, tell) -> None:
        """A tombstone answers for it, and refuses the start that arrives late."""

        async def story(site: Site) -> None:
            async with connected(site) as listener:
                mark = site.folder / "ran"
                job = job_for(listener, f"touch {mark}")
                assert (await stop(listener, job)).ok
                assert (await listener.ending(job)).cause is Cause.NEVER_STARTED
                reply = await listener.host.prepare(job)
                assert (reply.ok, reply.code) == (False, "stale")
                assert not mark.exists()

        tell(story)

    def test_too_much_output_is_cut_in_the_middle(self, tell) -> None:
        """Head and tail come; the job is not held up."""

        async def story(site: Site) -> None:
            async with connected(site) as listener:
                job = job_for(
                    listener,
                    "echo begin",
                    "head -c 3000000 /dev/zero | tr '\\0' x",
                    "echo",
                    "echo end",
                    log_head_bytes=10_000,
                    log_tail_bytes=10_000,
                )
                assert (await listener.host.prepare(job)).ok
                record = await listener.ending(job)
                assert record.log_bytes == 3_000_011
                last = listener.output[job.job_uid][-1]
                assert last.complete
                text = listener.text(job)
                assert text.startswith("begin\nxxx")
                assert text.endswith("xxx\nend\n")

        tell(story)

    def test_forgotten_jobs_leave_a_tombstone(self, tell) -> None:
        """The key is used up for ever, and a new hello still tells how it ended."""

        async def story(site: Site) -> None:
            async with connected(site) as listener:
                job = job_for(listener, "exit 7")
                assert (await listener.host.prepare(job)).ok
                await listener.ending(job)
                await listener.host.acknowledge(listener.cursor)
                assert (await listener.host.forget([job.key])).ok
            async with connected(site) as again:
                assert again.host.seen.records is not None
                (record,) = (one for one in again.host.seen.records if one.key == job.key)
                assert (record.tombstone, record.cause, record.exit_code) == (True, Cause.EXITED, 7)
                await again.host.prepare(job)
                assert again.events == []

        tell(story)


class TestReconnects:
    def test_without_a_cursor_all_records_come(self, tell) -> None:
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

    def test_with_a_cursor_only_the_rest_comes(self, tell) -> None:
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

    def test_a_cursor_of_another_log_brings_a_snapshot(self, tell) -> None:
        """Numbers of another log mean nothing."""

        async def story(site: Site) -> None:
            async with connected(site) as listener:
                cursor = dataclasses.replace(listener.cursor, log_id="another", number=5)
            async with connected(site, cursor=cursor) as again:
                assert again.host.seen.records == ()
                assert again.host.seen.cursor.log_id != "another"

        tell(story)

    def test_output_goes_on_where_it_was_left(self, tell) -> None:
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

    def test_jobs_outlive_their_agent(self, tell) -> None:
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


class TestOwners:
    def test_another_environment_is_turned_away(self, tell) -> None:
        """It learns whose the host is."""

        async def story(site: Site) -> None:
            async with connected(site):
                with pytest.raises(OwnedElsewhere) as caught:
                    await site.provider.connect(request(), identity(environment="f" * 32), None)
                assert caught.value.owner == ENVIRONMENT

        tell(story)

    def test_another_ledger_is_turned_away(self, tell) -> None:
        """A lost ledger is replaced by a rebuilt one of a higher epoch, not by an empty one."""

        async def story(site: Site) -> None:
            async with connected(site, who=identity(epoch=2)):
                for stranger in (identity(ledger="other", epoch=2), identity(epoch=1)):
                    with pytest.raises(OwnedElsewhere) as caught:
                        await site.provider.connect(request(), stranger, None)
                    assert (caught.value.ledger_id, caught.value.epoch) == ("ledger", 2)

        tell(story)

    def test_looking_changes_nothing(self, tell) -> None:
        """Who looks gets every record with its run's name; who manages goes on undisturbed."""

        async def story(site: Site) -> None:
            async with connected(site, who=identity(epoch=3, fence=5)) as listener:
                job = job_for(listener, "exit 4", execution_digest="d" * 64)
                assert (await listener.host.prepare(job)).ok
                await listener.ending(job)
                await listener.host.acknowledge(listener.cursor)
                assert (await listener.host.forget([job.key])).ok
                (before,) = await site.provider.inventory(ENVIRONMENT)
                assert before.fence == 5
                site_seen = await site.provider.look(before)
                assert site_seen.records is not None
                (record,) = site_seen.records
                assert (record.tombstone, record.exit_code) == (True, 4)
                assert (record.run_name, record.execution_digest) == (job.run_name, "d" * 64)
                assert (site_seen.ledger_id, site_seen.epoch) == ("ledger", 3)
                assert not listener.ended
                assert (await listener.host.prepare(job_for(listener, "true"))).ok
                assert [before] == await site.provider.inventory(ENVIRONMENT)

        tell(story)

    def test_observing_starts_and_disturbs_nothing(self, tell) -> None:
        """A host that answers is seen with its jobs; one whose agent was killed stays down."""

        async def story(site: Site) -> None:
            assert await site.provider.observe(request("never-made")) is None
            async with connected(site, who=identity(fence=5)) as listener:
                job = job_for(listener, "exit 4")
                assert (await listener.host.prepare(job)).ok
                await listener.ending(job)
                seen = await site.provider.observe(request())
                assert seen is not None
                assert [one.key for one in seen.records or ()] == [job.key]
                assert seen.boot_id == listener.host.seen.boot_id
                assert not listener.ended
                site.kill_agent("fleet-0")
                await listener.until(lambda: listener.ended)
            assert await site.provider.observe(request()) is None
            (there,) = await site.provider.inventory(ENVIRONMENT)
            assert (there.alive, there.resting) == (False, False)

        tell(story)

    def test_a_newer_manager_ends_the_older_session(self, tell) -> None:
        """Two that both believe to manage never both do."""

        async def story(site: Site) -> None:
            async with connected(site) as older, connected(site, who=identity(fence=2)) as newer:
                await older.until(lambda: older.ended)
                with pytest.raises((TemporaryError, PermanentError)):
                    await older.host.prepare(job_for(older, "true"))
                assert (await newer.host.prepare(job_for(newer, "true"))).ok
                with pytest.raises(PermanentError):
                    await site.provider.connect(request(), identity(fence=1), None)

        tell(story)


class TestContents:
    def test_a_file_lies_in_the_jobs_directory(self, tell, tmp_path) -> None:
        """It is sent once, has its mode, and is the job's own copy."""
        content = b"#!/bin/sh\necho from the file; echo more >> inside/script\n" + b"#" * 3_000_000
        script = tmp_path / "script"
        script.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()

        async def story(site: Site) -> None:
            async with connected(site) as listener:
                host = listener.host
                assert list(await host.missing_blobs([digest])) == [digest]
                await host.put_blob(digest, str(script))
                assert list(await host.missing_blobs([digest])) == []
                entry = FileEntry("inside/script", digest, len(content), 0o755)
                for _ in range(2):
                    job = job_for(
                        listener, "wc -c < inside/script", "inside/script", files=(entry,)
                    )
                    await host.prepare(job)
                    assert (await listener.ending(job)).exit_code == 0
                    assert listener.text(job) == f"{len(content)}\nfrom the file\n"

        tell(story)

    def test_a_changed_file_is_refused(self, tell, tmp_path) -> None:
        """What lies under a digest has that digest."""
        (tmp_path / "file").write_bytes(b"new")
        digest = hashlib.sha256(b"old").hexdigest()

        async def story(site: Site) -> None:
            async with connected(site) as listener:
                with pytest.raises(PermanentError, match="has changed"):
                    await listener.host.put_blob(digest, str(tmp_path / "file"))
                assert list(await listener.host.missing_blobs([digest])) == [digest]

        tell(story)

    def test_a_volume_is_seen_where_it_lies(self, tell) -> None:
        """Its place tells whose it is, and a look by the mark finds it."""

        async def story(site: Site) -> None:
            path = site.provider.volume_path(ENVIRONMENT, "sets/a")
            assert not (await site.provider.place_at(ENVIRONMENT, "sets/a")).exists
            async with connected(site) as listener:
                assert (await listener.host.make_volume("op", "vol", "sets", path)).ok
            place = await site.provider.place_at(ENVIRONMENT, "sets/a")
            assert (place.exists, place.volume_uid, place.path) == (True, "vol", path)
            (found,) = await site.provider.volumes(ENVIRONMENT)
            assert (found.uid, found.name, found.path) == ("vol", "sets", path)

        tell(story)

    def test_a_volume_outlives_its_jobs(self, tell) -> None:
        """What one job writes the next one reads; removing it with its data removes both."""

        async def story(site: Site) -> None:
            path = site.provider.volume_path(ENVIRONMENT, "sets/a")
            async with connected(site) as listener:
                for _ in range(2):
                    assert (await listener.host.make_volume("op", "vol", "sets", path)).ok
                mounts = (Mount("sets", path, "data"),)
                writer = job_for(listener, "echo kept > data/note", mounts=mounts)
                reader = job_for(listener, "cat data/note", mounts=mounts)
                for job in (writer, reader):
                    await listener.host.prepare(job)
                    assert (await listener.ending(job)).exit_code == 0
                assert listener.text(reader) == "kept\n"
                removed = await listener.host.remove_volume("op2", "vol", path, delete_data=True)
                assert removed.ok
                assert _is_gone(path)

        tell(story)

    def test_a_volume_is_put_aside(self, tell) -> None:
        """Its data is found beside where it lay; asking twice is once, and its place is free."""

        async def story(site: Site) -> None:
            path = site.provider.volume_path(ENVIRONMENT, "sets/a")
            into = site.provider.volume_path(ENVIRONMENT, "sets/a.snapshot-sets-1")
            async with connected(site) as listener:
                host = listener.host
                assert (await host.make_volume("op", "vol", "sets", path)).ok
                mounts = (Mount("sets", path, "data"),)
                writer = job_for(listener, "echo kept > data/note", mounts=mounts)
                await host.prepare(writer)
                assert (await listener.ending(writer)).exit_code == 0
                for _ in range(2):
                    aside = await host.snapshot_volume("op2", "vol", "sets", path, into)
                    assert (aside.ok, aside.body) == (True, {"places": [into]})
                refused = await host.snapshot_volume("op3", "other", "sets", path, into)
                assert (refused.ok, refused.code) == (False, "conflict")
                assert _is_gone(path)
                reader = job_for(listener, f"cat {into}/note")
                await host.prepare(reader)
                assert (await listener.ending(reader)).exit_code == 0
                assert listener.text(reader) == "kept\n"
                assert (await host.make_volume("op4", "vol-2", "sets", path)).ok

        tell(story)


def _wait_for(claim: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _is_gone(path: str) -> bool:
    return not os.path.lexists(path)
