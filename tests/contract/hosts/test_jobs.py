"""Jobs on a host: started once, ended as asked, and told of."""

from __future__ import annotations

import asyncio
import dataclasses

from contract.host_site import Listener, Site, connected, job_for
from fleetform.agents.protocol.messages import StartJob
from fleetform.agents.protocol.states import Cause, JobState


async def stop(listener: Listener, job: StartJob):
    return await listener.host.stop(job.key, job.job_uid, 2, cause=Cause.STOPPED, grace_seconds=1)


def test_a_job_runs_and_all_of_its_output_arrives(tell) -> None:
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

    tell(story)


def test_it_sees_what_it_was_given(tell) -> None:
    """Environment and directory are the job's own."""

    async def story(site: Site) -> None:
        async with connected(site) as listener:
            job = job_for(listener, 'echo "$GREETING"', "ls -A", env={"GREETING": "hello"})
            assert (await listener.host.prepare(job)).ok
            await listener.ending(job)
            assert listener.text(job) == "hello\n"

    tell(story)


def test_nothing_runs_between_prepare_and_start(tell) -> None:
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


def test_a_request_that_comes_twice_runs_once(tell) -> None:
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


def test_another_boot_is_refused(tell) -> None:
    """What was reserved under another boot may be gone."""

    async def story(site: Site) -> None:
        async with connected(site) as listener:
            job = dataclasses.replace(job_for(listener, "true"), boot_id="another")
            reply = await listener.host.prepare(job)
            assert (reply.ok, reply.code) == (False, "boot_changed")

    tell(story)


def test_a_running_job_is_stopped_with_all_it_started(tell) -> None:
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


def test_a_job_stopped_before_it_came_never_starts(tell) -> None:
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


def test_too_much_output_is_cut_in_the_middle(tell) -> None:
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


def test_forgotten_jobs_leave_a_tombstone(tell) -> None:
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
