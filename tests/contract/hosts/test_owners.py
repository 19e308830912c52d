"""Whose a host is, and which of its owners' orders it obeys."""

from __future__ import annotations

import pytest

from contract.host_site import ENVIRONMENT, Site, connected, identity, job_for, request
from fleetform.providers.contract.errors import OwnedElsewhere, PermanentError, TemporaryError


def test_another_environment_is_turned_away(tell) -> None:
    """It learns whose the host is."""

    async def story(site: Site) -> None:
        async with connected(site):
            with pytest.raises(OwnedElsewhere) as caught:
                await site.provider.connect(request(), identity(environment="f" * 32), None)
            assert caught.value.owner == ENVIRONMENT

    tell(story)


def test_another_ledger_is_turned_away(tell) -> None:
    """A lost ledger is replaced by a rebuilt one of a higher epoch, not by an empty one."""

    async def story(site: Site) -> None:
        async with connected(site, who=identity(epoch=2)):
            for stranger in (identity(ledger="other", epoch=2), identity(epoch=1)):
                with pytest.raises(OwnedElsewhere) as caught:
                    await site.provider.connect(request(), stranger, None)
                assert (caught.value.ledger_id, caught.value.epoch) == ("ledger", 2)

    tell(story)


def test_looking_changes_nothing(tell) -> None:
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


def test_how_far_the_ledger_has_come_is_found_by_an_inventory(tell) -> None:
    """Each acknowledgement says it, and whoever comes with another epoch begins anew."""

    async def story(site: Site) -> None:
        async with connected(site, who=identity(epoch=3)) as listener:
            (before,) = await site.provider.inventory(ENVIRONMENT)
            assert before.commits == 0
            for commits in (41, 42):
                await listener.host.acknowledge(listener.cursor, commits)
                (after,) = await site.provider.inventory(ENVIRONMENT)
                assert after.commits == commits
        async with connected(site, who=identity(epoch=4)):
            (anew,) = await site.provider.inventory(ENVIRONMENT)
            assert anew.commits == 0

    tell(story)


def test_observing_starts_and_disturbs_nothing(tell) -> None:
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


def test_a_newer_manager_ends_the_older_session(tell) -> None:
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
