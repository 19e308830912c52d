"""
`kill -9` of the CLI, of the runner and of the caller at random moments of `up`.

The files of the shelf are the witness: after recovery and the next `up` each item exists once.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleetform.agents.host import processes
from fleetform.providers.contract.errors import StackLocked
from fleetform.providers.pulumi.recovery.recover import recover
from pulumi_shelf import Shelf, items

pytestmark = [pytest.mark.waits, pytest.mark.crash]

KILLS = int(os.environ.get("FLEETFORM_TEST_PULUMI_KILLS", "10"))
VICTIMS = ("cli", "runner", "caller")
CALL_SECONDS = 0.8
"""What the plugin takes for a create; most kills are to meet one."""

LOCKED_SECONDS = 300.0

ALL = tuple("abcdef")


def test_kills_lose_and_double_nothing(tmp_path):
    """Creates and deletes are cut off; whatever had begun, the state and the items agree at last."""
    shelf = Shelf(tmp_path)
    half = CALL_SECONDS / 2
    shelf.control(
        before_create_seconds=half,
        after_create_seconds=half,
        before_delete_seconds=half,
        after_delete_seconds=half,
    )
    dice = random.Random(KILLS)
    settled = 0
    for number in range(KILLS):
        names = sorted(dice.sample(ALL, dice.randint(1, len(ALL))))
        victim = VICTIMS[number % len(VICTIMS)]
        # Every fourth kill meets the engine before its first call, or between calls.
        _cut_off(tmp_path, names, victim, dice.uniform(0, CALL_SECONDS), is_early=number % 4 == 3)
        settled += asyncio.run(_recover(shelf, names))
        assert shelf.names() == names, f"kill {number} of the {victim}"
    assert settled, "no kill met an operation"


def _cut_off(
    folder: Path, names: list[str], victim: str, after_seconds: float, *, is_early: bool
) -> None:
    """Start a caller, and kill one of its processes some time after `up` or its first call began."""
    caller = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("cut_off.py"), folder, ",".join(names)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert caller.stdout is not None
    runner = int(caller.stdout.readline())
    if not is_early:
        caller.stdout.readline()
    time.sleep(after_seconds)
    if victim == "caller":
        caller.kill()
    elif victim == "runner":
        processes.send([runner], signal.SIGKILL)
    else:
        processes.send([one for one in processes.children(runner) if _is_cli(one)], signal.SIGKILL)
    caller.communicate()


def _is_cli(pid: int) -> bool:
    try:
        return processes.command_line(pid)[0].endswith(b"/pulumi")
    except OSError:
        return False


async def _recover(shelf: Shelf, names: list[str]) -> bool:
    """Do what the next controller does; returns whether an operation was left."""
    program = items(*names)
    deadline = time.monotonic() + LOCKED_SECONDS
    while True:
        try:
            async with shelf.open() as stack:
                settlement = await recover(
                    stack, program, shelf.inventory(), settle_seconds=0.5, look_seconds=0.1
                )
                await stack.preview(program)
                (await stack.up(program)).require()
                assert await stack.preview(program) == ()
                return settlement is not None
        except StackLocked:
            # The runner of a caller that was killed ends what it began, in at most 30 s.
            assert time.monotonic() < deadline
            await asyncio.sleep(0.2)
