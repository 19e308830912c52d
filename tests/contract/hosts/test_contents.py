"""Files and volumes that a job finds on its host."""

from __future__ import annotations

import hashlib
import os

import pytest

from contract.host_site import ENVIRONMENT, Site, connected, job_for
from fleetform.agents.protocol.messages import FileEntry, Mount
from fleetform.providers.contract.errors import PermanentError


def test_a_file_lies_in_the_jobs_directory(tell, tmp_path) -> None:
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
                job = job_for(listener, "wc -c < inside/script", "inside/script", files=(entry,))
                await host.prepare(job)
                assert (await listener.ending(job)).exit_code == 0
                assert listener.text(job) == f"{len(content)}\nfrom the file\n"

    tell(story)


def test_a_changed_file_is_refused(tell, tmp_path) -> None:
    """What lies under a digest has that digest."""
    (tmp_path / "file").write_bytes(b"new")
    digest = hashlib.sha256(b"old").hexdigest()

    async def story(site: Site) -> None:
        async with connected(site) as listener:
            with pytest.raises(PermanentError, match="has changed"):
                await listener.host.put_blob(digest, str(tmp_path / "file"))
            assert list(await listener.host.missing_blobs([digest])) == [digest]

    tell(story)


def test_a_volume_is_seen_where_it_lies(tell) -> None:
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


def test_a_volume_outlives_its_jobs(tell) -> None:
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


def test_a_volume_is_put_aside(tell) -> None:
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


def _is_gone(path: str) -> bool:
    return not os.path.lexists(path)
