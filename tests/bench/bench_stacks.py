"""Stacks of the real engine beside the library alone: 100 items created, a preview without changes, three batches or one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from measuring import parser_of, positive, scratch, seconds, table

from fleetform.providers.pulumi.engine.stack_settings import engine_environment
from pulumi_shelf import Shelf, items

ITEMS = 100
BATCHES = 3


async def create(shelf: Shelf, *stacks: str, count: int = ITEMS) -> float:
    """Create a stack of each name, side by side; returns seconds."""
    started = time.perf_counter()
    await asyncio.gather(*(_create(shelf, name, count) for name in stacks))
    return time.perf_counter() - started


async def _create(shelf: Shelf, name: str, count: int) -> None:
    program = items(*(f"{name}-{number}" for number in range(count)))
    async with shelf.open(name) as stack:
        await stack.preview(program)
        (await stack.up(program)).require()


async def preview(shelf: Shelf) -> float:
    program = items(*(f"one-{number}" for number in range(ITEMS)))
    started = time.perf_counter()
    async with shelf.open("one") as stack:
        if await stack.preview(program):
            raise SystemExit("the preview has changes")
    return time.perf_counter() - started


def directly(shelf: Shelf, operation: str) -> float:
    folder = shelf.settings().folder / "work"
    folder.mkdir(parents=True, exist_ok=True)
    (shelf.state / "pulumi" / "state").mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    subprocess.run(
        [
            sys.executable,
            Path(__file__).with_name("direct_stack.py"),
            operation,
            folder,
            str(ITEMS),
        ],
        env=engine_environment(shelf.settings(), shelf.environment),
        check=True,
    )
    return time.perf_counter() - started


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--runs", type=positive, default=3, help="Pairs.  [default: 3]")
    runs = parser.parse_args(arguments).runs
    ups: dict[str, list[float]] = {"ours": [], "alone": []}
    previews: dict[str, list[float]] = {"ours": [], "alone": []}
    batches: dict[str, list[float]] = {"three": [], "one": []}
    for _ in range(runs):
        with scratch() as folder:
            ours, alone = Shelf(folder / "ours"), Shelf(folder / "alone")
            ups["ours"].append(asyncio.run(create(ours, "one")))
            ups["alone"].append(directly(alone, "up"))
            previews["ours"].append(asyncio.run(preview(ours)))
            previews["alone"].append(directly(alone, "preview"))
            many = Shelf(folder / "many")
            names = [f"batch{number}" for number in range(BATCHES)]
            batches["three"].append(asyncio.run(create(many, *names)))
            batches["one"].append(asyncio.run(create(many, "whole", count=ITEMS * BATCHES)))
    table(
        f"Stacks of {ITEMS} items, in pairs, {runs} times",
        ["", "fleetform", "the library alone", "asked"],
        [
            ["preview and up", *map(seconds, ups.values()), "1.2 times as long at most"],
            ["preview without changes", *map(seconds, previews.values()), "0.3 s more at most"],
        ],
    )
    table(
        f"{ITEMS * BATCHES} items, {runs} times",
        ["in three stacks side by side", "in one", "asked"],
        [[*map(seconds, batches.values()), "three are faster"]],
    )


if __name__ == "__main__":
    main()
