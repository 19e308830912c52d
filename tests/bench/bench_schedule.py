"""
How long one round of scheduling takes, and how recorded workloads fare under it.

    python tests/bench/bench_schedule.py [TRACE.swf[.gz] ...]

Rounds are measured on queues as they occur: an array on one host, an array on a full or an
empty cluster, many different requirements, gangs. A trace in the Standard Workload Format is
replayed event by event on one host that has all of the processors as CPUs, with requested
times as `max_duration`. Waits are in the trace's seconds; slowdown is bounded at 10 s.
"""

from __future__ import annotations

import gc
import gzip
import heapq
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from measuring import parser_of

from fleetform.model.decision import Decisions, Placement
from fleetform.model.instance import Allocation, Gpu, Instance, InstanceState
from fleetform.model.run import GpuRequirement, Requirement, Run, RunState, RunUid, Template
from fleetform.model.scaling import Scaling
from fleetform.schedule import Policies, Queue, schedule

GB = 1 << 30
ROUNDS = 15
JOBS_MAX = 5000
"""A trace is replayed up to this many jobs: a round an event, and a table in a minute."""


def instance(number: int, cpus: int, gpus: int = 0) -> Instance:
    return Instance(
        uid=f"i{number:05}",
        name=f"local-{number}",
        fleet="local",
        number=number,
        state=InstanceState.READY,
        cpu_millicores=cpus * 1000,
        memory_bytes=cpus * 4 * GB,
        disk_bytes=100 * GB,
        gpus=tuple(Gpu(f"{number}-{i}", "NVIDIA A100-SXM4-80GB", 80 * GB, i) for i in range(gpus)),
        boot_id="b",
    )


def run(number: int, requirement: Requirement, **more: object) -> Run:
    template = Template(
        name=f"r{number}",
        type="task",
        commands=("true",),
        requirement=requirement,
        **more,
    )
    return Run(RunUid(f"u{number:06}"), template.name, template, RunState.SUBMITTED, number, 1)


def cpus(count: int) -> Requirement:
    return Requirement(cpu_min_millicores=count * 1000)


def held(one: Instance) -> Allocation:
    return Allocation(one.uid, "j", "r", one.cpu_millicores, one.memory_bytes, 0, ())


def cases() -> Iterator[tuple[str, Queue, list[Instance]]]:
    one = [instance(0, 256)]
    thousand = [instance(n, 16, 8) for n in range(1000)]
    full = tuple(held(each) for each in thousand)
    array = tuple(run(n, cpus(1)) for n in range(1000))
    large = tuple(run(n, cpus(1)) for n in range(10_000))
    mixed = tuple(run(n, cpus(1 + n % 16)) for n in range(10_000))
    different = tuple(
        run(n, Requirement(1000 + n % 8 * 1000, memory_min_bytes=GB + n)) for n in range(10_000)
    )
    gpu = Requirement(1000, gpu=GpuRequirement(1, 1, ("A100",)))
    yield "1 000 waiting, 1 instance of 256 slots", Queue(array), one
    yield "1 000 waiting, the same, full", Queue(array, allocations=(held(one[0]),)), one
    yield "10 000 alike, 1 000 instances, full", Queue(large, allocations=full), thousand
    yield "10 000 alike, 1 000 instances, empty", Queue(large), thousand
    yield (
        "10 000 for a GPU each, 8 000 GPUs free",
        Queue(tuple(run(n, gpu) for n in range(10_000))),
        thousand,
    )
    yield "10 000 of 16 sizes, 1 000 instances, full", Queue(mixed, allocations=full), thousand
    yield "10 000 of 16 sizes, 1 000 instances, empty", Queue(mixed), thousand
    yield (
        "10 000 all different, 1 000 instances, full",
        Queue(different, allocations=full),
        thousand,
    )
    yield "1 000 all different, 1 000 instances, empty", Queue(different[:1000]), thousand
    yield (
        "100 gangs of 64, 1 000 instances",
        Queue(tuple(run(n, cpus(8), nodes=64) for n in range(100))),
        thousand,
    )
    host = replace(instance(0, 16), uid="", name="", state=InstanceState.UNCREATED, boot_id="")
    scaling = {"local": Scaling(0, 2000, None, frozenset(), host)}
    yield (
        "1 000 gangs of 2, no host yet, 2 000 by demand",
        Queue(tuple(run(n, cpus(8), nodes=2) for n in range(1000)), scaling=scaling),
        [],
    )


def measure(call: Callable[[], Decisions]) -> tuple[float, float, Decisions]:
    """Return median and worst milliseconds of a round, and what it decided."""
    times: list[float] = []
    for _ in range(ROUNDS):
        gc.collect()
        # CPU time: a round is pure computation, and other work on the machine is not its cost.
        start = time.process_time()
        decisions = call()
        times.append((time.process_time() - start) * 1000)
    return statistics.median(times), max(times), decisions


def print_rounds() -> None:
    print(f"{'one round':48}{'median ms':>10}{'worst ms':>10}{'starts':>8}{'waiting':>9}")
    for name, queue, instances in cases():
        median, worst, decisions = measure(
            lambda q=queue, i=instances: schedule(q, i, Policies(), now_ms=0)
        )
        print(
            f"{name:48}{median:10.1f}{worst:10.1f}"
            f"{len(decisions.starts):8}{len(decisions.waiting):9}"
        )


# -- traces ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    number: int
    submit_s: int
    run_s: int
    processors: int
    requested_s: int


def read_trace(path: Path) -> tuple[list[Job], int]:
    """Return jobs in order of submission, and the number of processors."""
    jobs: list[Job] = []
    processors = 0
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            if line.startswith(";"):
                key, _, value = line[1:].partition(":")
                if key.strip() == "MaxProcs":
                    processors = int(value.split()[0])
                continue
            fields = [int(float(field)) for field in line.split()]
            if len(fields) < 18 or fields[3] < 0:
                continue
            wanted = fields[7] if fields[7] > 0 else fields[4]
            requested = max(fields[8], fields[3], 1)
            jobs.append(Job(fields[0], fields[1], fields[3], wanted, requested))
            if len(jobs) == JOBS_MAX:
                break
    processors = processors or max(job.processors for job in jobs)
    jobs = [job for job in jobs if 0 < job.processors <= processors]
    return sorted(jobs, key=lambda job: (job.submit_s, job.number)), processors


class Replay:
    """One trace on one host that has all of its processors; time jumps from event to event."""

    def __init__(self, jobs: list[Job], processors: int, *, backfill: bool) -> None:
        self.jobs = {f"u{number:06}": job for number, job in enumerate(jobs)}
        self.arrivals = [
            run(
                number,
                Requirement(job.processors * 1000, memory_min_bytes=0),
                max_duration_seconds=job.requested_s,
                stop_grace_seconds=0,
            )
            for number, job in enumerate(jobs)
        ]
        self.host = instance(0, processors)
        self.policies = Policies(backfill)
        self.waiting: dict[str, Run] = {}
        self.ends: list[tuple[int, str]] = []
        self.held: dict[str, Allocation] = {}
        self.ends_at_ms: dict[str, int] = {}
        self.waits: dict[str, int] = {}
        self.round_ms: list[float] = []

    def replay(self) -> None:
        arrivals = iter(self.arrivals)
        upcoming = next(arrivals, None)
        while upcoming is not None or self.ends:
            now = self._next_moment(upcoming)
            while self.ends and self.ends[0][0] <= now:
                _, uid = heapq.heappop(self.ends)
                del self.held[uid], self.ends_at_ms[uid]
            while upcoming is not None and self.jobs[upcoming.uid].submit_s <= now:
                self.waiting[upcoming.uid] = upcoming
                upcoming = next(arrivals, None)
            self._round(now)

    def _next_moment(self, upcoming: Run | None) -> int:
        moments = [self.ends[0][0]] if self.ends else []
        if upcoming is not None:
            moments.append(self.jobs[upcoming.uid].submit_s)
        return min(moments)

    def _round(self, now: int) -> None:
        queue = Queue(
            tuple(self.waiting.values()),
            allocations=tuple(self.held.values()),
            ends_at_ms=self.ends_at_ms,
        )
        start = time.perf_counter()
        decisions = schedule(queue, [self.host], self.policies, now_ms=now * 1000)
        self.round_ms.append((time.perf_counter() - start) * 1000)
        for placement in decisions.starts:
            self._start(placement, now)

    def _start(self, placement: Placement, now: int) -> None:
        uid = placement.run_uid
        job, share = self.jobs[uid], placement.shares[0]
        del self.waiting[uid]
        self.waits[uid] = now - job.submit_s
        self.held[uid] = Allocation(
            share.instance_uid, uid, uid, share.cpu_millicores, share.memory_bytes, 0
        )
        self.ends_at_ms[uid] = (now + job.requested_s) * 1000 + 30_000
        heapq.heappush(self.ends, (now + job.run_s, uid))


def print_traces(paths: list[Path]) -> None:
    print()
    print(
        f"{'trace':34}{'rule':9}{'jobs':>6}{'mean wait s':>12}{'slowdown':>10}"
        f"{'round ms':>10}{'p99':>7}"
    )
    for path in paths:
        jobs, processors = read_trace(path)
        for backfill in (False, True):
            replay = Replay(jobs, processors, backfill=backfill)
            replay.replay()
            assert len(replay.waits) == len(jobs)
            slowdowns = [
                max(1.0, (wait + replay.jobs[uid].run_s) / max(replay.jobs[uid].run_s, 10))
                for uid, wait in replay.waits.items()
            ]
            p99 = sorted(replay.round_ms)[len(replay.round_ms) * 99 // 100]
            print(
                f"{path.name[:33]:34}{'easy' if backfill else 'strict':9}{len(jobs):6}"
                f"{statistics.mean(replay.waits.values()):12.0f}"
                f"{statistics.mean(slowdowns):10.1f}"
                f"{statistics.mean(replay.round_ms):10.2f}{p99:7.2f}"
            )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("traces", nargs="*", type=Path, metavar="TRACE.swf[.gz]")
    paths = parser.parse_args(arguments).traces
    print_rounds()
    if paths:
        print_traces(paths)


if __name__ == "__main__":
    main()
