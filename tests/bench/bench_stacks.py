"""
Stacks of instances of AWS by fleetform's runner beside the library alone, in pairs: the real engine, on the EC2 of the tests.

100 instances created, a preview of 100 without changes, and 300 in three batches or in one stack.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import asyncssh
from measuring import parser_of, positive, scratch, seconds, table

from cloud.aws_cloud import REGION, AwsCloud
from cloud.catalog import ACCOUNT, UBUNTU
from fleetform.providers.pulumi.aws.program import (
    AwsAccount,
    Batch,
    HostTemplate,
    NewHost,
    SharedParts,
    SharedRequest,
    batch_program,
    shared_program,
)
from fleetform.providers.pulumi.engine.deployment import resources_of
from fleetform.providers.pulumi.engine.program import Program
from fleetform.providers.pulumi.engine.stack import open_stack
from fleetform.providers.pulumi.engine.stack_settings import (
    StackSettings,
    engine_environment,
    passphrase_file,
)

ITEMS = 100
BATCHES = 3
WAYS = ("fleetform", "the library alone")
PREVIEWS = 3
"""Of each creation."""


class Stacks:
    """Stacks over a cloud, with one state."""

    def __init__(self, cloud: AwsCloud, folder: Path) -> None:
        self._cloud = cloud
        self._state = folder / "environment"
        self._passphrase = passphrase_file(folder / "config", "e1")
        key = asyncssh.generate_private_key("ssh-ed25519")
        self._key = key.export_public_key().decode().strip()
        self._account = AwsAccount(REGION, ACCOUNT, "e1", endpoint=cloud.url)
        self._parts: SharedParts | None = None

    def settings(self, name: str) -> StackSettings:
        folder = self._state / "stacks" / name
        return StackSettings(name, folder, f"file://{self._state}/state", self._passphrase)

    async def up(self, name: str, program: Program) -> dict[str, str]:
        """Create what a program has; returns ids by name."""
        async with open_stack(self.settings(name), environment=self._cloud.environment()) as stack:
            (await stack.up(program)).require()
            return {one.name: one.id for one in resources_of(await stack.export_state())}

    async def preview(self, name: str, program: Program) -> None:
        async with open_stack(self.settings(name), environment=self._cloud.environment()) as stack:
            if await stack.preview(program):
                raise SystemExit("the preview has changes")

    async def share(self) -> None:
        """Create what the hosts share."""
        request = SharedRequest("f" * 32, "gpus", "o1", ("203.0.113.7/32",), self._key)
        ids = await self.up("shared", shared_program(self._account, request))
        self._parts = SharedParts(ids["security-group"], ids["key"])

    def program(self, name: str, batches: int = 1) -> Program:
        """Return a program with so many batches; more than one are more than fleetform gives one stack."""
        assert self._parts is not None
        template = HostTemplate("g5.xlarge", self._cloud.front.catalog.parameters[UBUNTU], 100)
        resources = []
        for batch in range(batches):
            hosts = tuple(
                NewHost(f"{name}-{batch}-{number}", f"gpus-{number}", "o1", "#cloud-config")
                for number in range(ITEMS)
            )
            wanted = Batch(name, "gpus", template, hosts)
            resources += batch_program(self._account, wanted, self._parts).resources[batch > 0 :]
        return Program(tuple(resources))

    def run(self, way: str, operation: str, program: Program) -> None:
        """Run a program by fleetform, or by the library alone in a process of its own."""
        if way == "fleetform":
            asyncio.run(getattr(self, operation)("ours", program))
            return
        settings = self.settings("alone")
        folder = settings.folder / "work"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "program.json"
        file.write_text(json.dumps(program.to_json()))
        subprocess.run(
            [sys.executable, Path(__file__).with_name("direct_stack.py"), operation, folder, file],
            env=engine_environment(settings, self._cloud.environment()),
            check=True,
        )


@dataclass
class Times:
    """Of one way to do something: by the clock, and of processors; those of the cloud are not in it."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    @contextmanager
    def taken(self) -> Iterator[None]:
        started, before = time.perf_counter(), _children()
        yield
        self.wall.append(time.perf_counter() - started)
        self.processor.append(_children() - before)

    @property
    def cells(self) -> list[str]:
        return [seconds(self.wall), seconds(self.processor)]


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


async def side_by_side(calls: Sequence[Awaitable[object]]) -> None:
    await asyncio.gather(*calls)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--runs", type=positive, default=3, help="Pairs.  [default: 3]")
    runs = parser.parse_args(arguments).runs
    ups, previews, batches = (
        {name: Times() for name in names} for names in (WAYS, WAYS, ("three stacks", "one stack"))
    )
    for number in range(runs):
        with scratch() as folder, AwsCloud(folder / "cloud") as cloud:
            cloud.front.catalog.vcpus["L-DB2E81BA"] = 1_000_000
            stacks = Stacks(cloud, folder)
            asyncio.run(stacks.share())
            programs = {name: stacks.program(name.split()[0]) for name in WAYS}
            # Each is first in turn: what runs second finds files in memory.
            for pair in range(PREVIEWS):
                for name in WAYS[:: 1 if (number + pair) % 2 else -1]:
                    if not pair:
                        with ups[name].taken():
                            stacks.run(name, "up", programs[name])
                    with previews[name].taken():
                        stacks.run(name, "preview", programs[name])
            names = [f"batch{batch}" for batch in range(BATCHES)]
            with batches["three stacks"].taken():
                calls = [stacks.up(name, stacks.program(name)) for name in names]
                asyncio.run(side_by_side(calls))
            with batches["one stack"].taken():
                asyncio.run(stacks.up("whole", stacks.program("whole", BATCHES)))
            print(f"load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    asked = {
        "preview without changes": (previews, "0.3 s more than the library at most"),
        "creation": (ups, "1.2 times the library at most"),
    }
    table(
        f"Stacks of {ITEMS} instances, in pairs, {runs} times",
        ["", "by", "wall", "processor", "asked"],
        [
            [what, name, *times.cells, words if name == "fleetform" else ""]
            for what, (both, words) in asked.items()
            for name, times in both.items()
        ],
    )
    table(
        f"{ITEMS * BATCHES} instances, {runs} times",
        ["in", "wall", "processor", "asked"],
        [
            [name, *times.cells, "faster than in one" if name == "three stacks" else ""]
            for name, times in batches.items()
        ],
    )


if __name__ == "__main__":
    main()
