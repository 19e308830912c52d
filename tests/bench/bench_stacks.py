"""Stacks of the real engine: 100 items created, and a preview without changes beside the library alone."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from measuring import parser_of, scratch, seconds, table

from fleetform.providers.pulumi.engine.stack_settings import engine_environment
from pulumi_shelf import Shelf, items

ITEMS = 100
RUNS = 5


async def create(shelf: Shelf) -> float:
    program = items(*(f"n{number}" for number in range(ITEMS)))
    started = time.perf_counter()
    async with shelf.open() as stack:
        await stack.preview(program)
        (await stack.up(program)).require()
    return time.perf_counter() - started


async def preview(shelf: Shelf) -> float:
    program = items(*(f"n{number}" for number in range(ITEMS)))
    started = time.perf_counter()
    async with shelf.open() as stack:
        if await stack.preview(program):
            raise SystemExit("the preview has changes")
    return time.perf_counter() - started


def preview_directly(shelf: Shelf) -> float:
    script = Path(__file__).with_name("direct_preview.py")
    folder = shelf.settings().folder / "work"
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, script, folder, str(ITEMS)],
        env=engine_environment(shelf.settings(), shelf.environment),
        check=True,
    )
    return time.perf_counter() - started


def main(arguments: Sequence[str] | None = None) -> None:
    parser_of(__doc__).parse_args(arguments)
    with scratch() as folder:
        shelf = Shelf(folder)
        created = asyncio.run(create(shelf))
        ours, direct = [], []
        for _ in range(RUNS):
            ours.append(asyncio.run(preview(shelf)))
            direct.append(preview_directly(shelf))
    table(
        f"A stack of {ITEMS} items, in pairs, {RUNS} times",
        ["preview and up", "preview without changes", "the library alone", "asked"],
        [[seconds([created]), seconds(ours), seconds(direct), "0.3 s more at most"]],
    )


if __name__ == "__main__":
    main()
