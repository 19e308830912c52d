from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fleetform.lsp.validation import Buffers, Superseded, Validations, validate

ROOT = Path("/lab")


def test_edits_in_a_row_are_one_reading():
    """The last of them."""

    async def session():
        read = []

        async def check(asked):
            read.append(asked.is_stale())

        validations = Validations(check, delay_seconds=0.01)
        for _ in range(5):
            validations.ask(ROOT)
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
        await asyncio.sleep(0.02)
        validations.ask(ROOT)
        await asyncio.sleep(0.02)
        assert [asked.is_stale() for asked in seen] == [True, False]
        validations.close()
        assert all(asked.is_stale() for asked in seen)

    asyncio.run(session())


def test_a_stale_reading_stops_at_the_next_file(tmp_path):
    """So that a large environment is not read to its end for nobody."""
    (tmp_path / "environment.yaml").write_text("type: environment\nname: lab\nuid: abcd\n")
    with pytest.raises(Superseded):
        validate(tmp_path, {}, Buffers({}, lambda: True))
    assert validate(tmp_path, {}, Buffers({}, lambda: False))[0].code == "empty-tree"
