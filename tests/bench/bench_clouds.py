"""
Fleets on AWS by the real commands and the real engine, on the EC2 of the tests: how long people and runs wait.

100 hosts that are created and planned again, one changed fleet among many with 10 batches each, a list of all their hosts,
50 runs that need hosts, and an offer that is refused.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from measuring import Measured, expect, measure_tree, parser_of, positive, scratch, table

from cloud import faults
from cloud.aws_cloud import REGION, AwsCloud
from cloud.catalog import ACCOUNT, UBUNTU
from cloud.cli_record import CliRecord
from integration.cloud.aws_site import ENVIRONMENT, FLEET, Site

BATCHES = 10
RUNS = 50
HOSTS = 100

RULES = "run_as: root\nsharing: whole\nidle_duration: 10m\n"
SWEEP = """
type: task
name: {name}
fleets: [gpus]
matrix: {{number: {numbers}}}
commands: ["true"]
"""

WAIT_SECONDS = 120.0

SETTLE_SECONDS = 3.0
"""For how long a controller has nothing to do before runs are submitted."""


class Bench(Site):
    """An environment over a cloud of its own."""

    def __init__(self, folder: Path, cloud: AwsCloud) -> None:
        super().__init__(folder, cloud, cloud.front.catalog.parameters[UBUNTU])
        cloud.front.catalog.vcpus["L-DB2E81BA"] = 1_000_000
        document = (self.root / "environment.yaml").read_text()
        (self.root / "environment.yaml").write_text(f"{document}grants: {{root: true}}\n")
        self.record = CliRecord(cloud)

    def measured(self, *words: str, program: str = "-m fleetform.cli.entry") -> Measured:
        command = [sys.executable, *program.split(), *words]
        return expect(measure_tree(command, environment=self.variables, folder=self.root))

    def declare_fleets(self, numbers: Sequence[int], nodes: int) -> None:
        text = FLEET.format(nodes=nodes, image=self.image)
        for number in numbers:
            name = f"gpus{number}"
            (self.root / f"{name}.yaml").write_text(text.replace("name: gpus", f"name: {name}"))


@contextmanager
def benched() -> Iterator[Bench]:
    """An environment whose controller is ended and whose files are removed afterwards."""
    with scratch() as folder, AwsCloud(folder / "cloud") as cloud:
        bench = Bench(folder, cloud)
        try:
            yield bench
        finally:
            bench.run("controller", "stop", code=None)


def row(what: str, wall: float, processor: float | None, asked: str) -> list[str]:
    load = f"{os.getloadavg()[0]:.1f}"
    print(f"{what}: {wall:.2f} s, load {load}", file=sys.stderr)
    return [what, f"{wall:.2f} s", "" if processor is None else f"{processor:.2f} s", load, asked]


def hundred() -> Iterator[list[str]]:
    with benched() as bench:
        bench.declare(HOSTS)
        made = bench.measured("apply", "-y")
        assert len(bench.cloud.instances()) == HOSTS
        yield row(
            f"`apply -y` of {HOSTS} hosts, with the first preview",
            made.wall_seconds, made.cpu_seconds, "",
        )  # fmt: skip
        before = len(bench.record.starts())
        plan = bench.measured("plan", "--preview")
        assert len(bench.record.starts()) == before
        yield row(
            f"`plan --preview` of {HOSTS} hosts without changes: no process of Pulumi",
            plan.wall_seconds, plan.cpu_seconds, "0.3 s",
        )  # fmt: skip


def many(fleets: int) -> Iterator[list[str]]:
    with benched() as bench:
        numbers = range(fleets)
        quick = str(Path(__file__).with_name("many_batches.py"))
        for nodes in range(1, BATCHES + 1):
            bench.declare_fleets(numbers, nodes)
            bench.measured("apply", "-y", program=quick)
        stacks = len(list(Path(bench.variables["FLEETFORM_STATE_HOME"]).glob("**/batch.json")))
        assert stacks == len(bench.cloud.instances()) == fleets * BATCHES, stacks
        bench.declare_fleets([fleets // 2], BATCHES + 1)
        before = len(bench.record.starts("preview"))
        plan = bench.measured("plan", "--preview")
        assert "create 1 aws:ec2/instance:Instance" in plan.output, plan.output
        assert len(bench.record.starts("preview")) == before + 1
        yield row(
            f"`plan --preview` of {fleets} fleets with {BATCHES} batches each, one changed: one preview",
            plan.wall_seconds, plan.cpu_seconds, "3 s",
        )  # fmt: skip
        program = str(Path(__file__).with_name("list_hosts.py"))
        listed = bench.measured(ACCOUNT, REGION, ENVIRONMENT, program=program)
        assert listed.output.split() == [str(fleets * BATCHES)], listed.output
        yield row(
            f"the inventory of {fleets * BATCHES} hosts, in a process of its own",
            listed.wall_seconds, listed.cpu_seconds, "5 s",
        )  # fmt: skip


def submitted() -> Iterator[list[str]]:
    with benched() as bench:
        bench.declare(f"0..{2 * RUNS}", more=RULES)
        bench.run("apply", "-y")
        bench.run("controller", "stop")
        with bench.start("serve") as server:
            try:
                time.sleep(SETTLE_SECONDS)
                yield from demand(bench, "first", "the first hosts, and what they share", ups=2)
                yield from demand(bench, "more", "more hosts", ups=1)
            finally:
                server.terminate()


def demand(bench: Bench, name: str, what: str, ups: int) -> Iterator[list[str]]:
    """Submit runs that need as many hosts; returns when the engine was started for them."""
    before, there = bench.record.starts(), len(bench.cloud.instances())
    file = bench.root / f"{name}.yaml"
    file.write_text(SWEEP.format(name=name, numbers=list(range(RUNS))))
    wait(lambda: len(bench.cloud.instances()) == there + RUNS)
    rows = json.loads(bench.run("ps", "--format", "json"))
    at = min(one["submitted_at_ms"] for one in rows if one["name"].startswith(name)) / 1000
    new = bench.record.starts()[len(before) :]
    found = [one for one in new if one.command == "up"]
    assert len(found) == ups, found
    title = f"from the submission of {RUNS} runs to"
    yield row(f"{title} the engine, for {what}", new[0].at - at, None, "")
    yield row(f"{title} its last of {ups} `up`, for {what}", found[-1].at - at, None, "2 s")


def refused() -> Iterator[list[str]]:
    with benched() as bench:
        bench.declare(2)
        file = bench.root / "fleet.yaml"
        types = "instance_types: [g5.xlarge, g5.2xlarge]"
        file.write_text(file.read_text().replace("instance_types: [g5.xlarge]", types))
        first = watch(bench.cloud, faults.no_capacity("g5.xlarge"), "g5.xlarge")
        other = watch(bench.cloud, faults.slow_create(0.0), "g5.2xlarge")
        bench.run("apply", "-y")
        yield row("from the refusal of an offer to the next one", other[0] - first[-1], None, "5 s")


def watch(cloud: AwsCloud, fault: faults.Fault, instance_type: str) -> list[float]:
    """Inject a fault of a type; returns when each call met it."""
    times: list[float] = []

    def meets(parameters: dict[str, object]) -> bool:
        met = parameters["InstanceType"] == instance_type
        times.extend([time.time()] if met else [])
        return met

    cloud.inject(dataclasses.replace(fault, when=meets))
    return times


def wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("it has not come true")
        time.sleep(0.02)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument(
        "--fleets", type=positive, default=200, help="With 10 batches each.  [default: 200]"
    )
    fleets = parser.parse_args(arguments).fleets
    rows = [line for lines in (refused(), submitted(), hundred(), many(fleets)) for line in lines]
    table("Fleets on AWS", ["", "wall", "processor", "load", "asked"], rows)


if __name__ == "__main__":
    main()
