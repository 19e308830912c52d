from __future__ import annotations

import asyncio
from pathlib import Path

from fleetform.lsp.validation import Readings, Validations

ROOT = Path("/lab")


async def grown(kept, count):
    """Wait until there are so many."""
    async with asyncio.timeout(60):
        while len(kept) < count:  # noqa: ASYNC110 -- a list tells nobody that it grows
            await asyncio.sleep(0.01)


def test_edits_in_a_row_are_one_reading():
    """The last of them."""

    async def session():
        read = []

        async def check(asked):
            read.append(asked.is_stale())

        validations = Validations(check, delay_seconds=0.01)
        for _ in range(5):
            validations.ask(ROOT)
        await grown(read, 1)
        # Long enough for another one, were there one.
        await asyncio.sleep(0.1)
        validations.close()
        assert read == [False]

    asyncio.run(session())


def test_a_reading_that_is_overtaken_knows_it():
    """And the newer one begins all the same."""

    async def session():
        seen = []
        go = asyncio.Event()

        async def check(asked):
            seen.append(asked)
            await go.wait()

        validations = Validations(check, delay_seconds=0)
        validations.ask(ROOT)
        await grown(seen, 1)
        validations.ask(ROOT)
        await grown(seen, 2)
        assert [asked.is_stale() for asked in seen] == [True, False]
        validations.close()
        assert all(asked.is_stale() for asked in seen)

    asyncio.run(session())


def test_a_worker_that_was_killed_is_replaced(tmp_path):
    """What it was reading is read again, and so is what is asked for next."""
    (tmp_path / "environment.yaml").write_text("type: environment\nname: lab\nuid: abcd\n")

    async def session():
        readings = Readings()
        assert [one.code for one in await readings.read(tmp_path, "", {})] == ["empty-tree"]
        first = readings._process
        reading = asyncio.create_task(readings.read(tmp_path, "", {"a.yaml": b"x: [" * 50_000}))
        await asyncio.sleep(0)
        first.kill()
        assert next(one.place.file for one in await reading) == "a.yaml"
        assert readings._process is not first
        task = {"a.yaml": b"type: task\nname: aa\ncommands: [a]\nnods: 2\n"}
        told = await readings.read(tmp_path, "", task)
        assert "unknown-field" in [one.code for one in told]
        readings.close()
        await readings._process.wait()

    asyncio.run(session())


def test_the_newer_of_two_readings_is_the_one_that_is_read(tmp_path):
    """The other has no findings, whenever it was overtaken."""
    (tmp_path / "environment.yaml").write_text("type: environment\nname: lab\nuid: abcd\n")

    async def session():
        readings = Readings()
        await readings.read(tmp_path, "", {})
        older = asyncio.create_task(readings.read(tmp_path, "", {"a.yaml": b"[" * 100_000}))
        newer = asyncio.create_task(readings.read(tmp_path, "", {}))
        assert (await newer)[0].code == "empty-tree"
        assert await older is None or (await older)[0].place.file == "a.yaml"
        readings.close()
        await readings._process.wait()

    asyncio.run(session())
