"""
The caller that `test_kill` kills: it applies one program to one stack, and says when it begins.

    python cut_off.py FOLDER NAME,NAME,…
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from fleetform.providers.contract.errors import ProviderError
from fleetform.providers.pulumi.engine.changes import Change
from pulumi_shelf import Shelf, items


async def main(folder: Path, names: list[str]) -> None:
    async with Shelf(folder).open() as stack:
        await stack.preview(items(*names))
        say(stack.pid)
        began: list[str] = []

        def note(change: Change) -> None:
            if not began:
                say("began")
            began.append(change.name)

        await stack.up(items(*names), on_change=note)


def say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        asyncio.run(main(Path(sys.argv[1]), sys.argv[2].split(",")))
    except ProviderError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
