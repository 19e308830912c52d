"""
How fast one agent runs short jobs: a thousand `true` through one session, without a ledger.

    python tests/bench/bench_jobs_agent.py [jobs]

At most `SLOTS` are under way, as a scheduler would have it. Every job is prepared and started
by one message, followed to its end, and its events are acknowledged. The latency is from the
request to the news of its end.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from measuring import parser_of, positive

from fleetform.agents.protocol.messages import Cursor, Event, JobKey, StartJob
from fleetform.agents.protocol.states import JobState
from fleetform.providers.contract.hosts import Host, Identity, InstanceRequest
from fleetform.providers.local.hosts import LocalHosts

JOBS = 1000
SLOTS = 256
ENVIRONMENT = "b" * 32
REQUEST = InstanceRequest("bench", "bench-0", "bench", {})


async def bench(jobs: int, slots: int) -> tuple[float, list[float]]:
    """Return the wall time of all jobs, and each one's latency, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        provider = LocalHosts(Path(folder), ENVIRONMENT, idle_exit_seconds=60)
        await provider.ensure(REQUEST)
        host = await provider.connect(REQUEST, Identity(ENVIRONMENT, "ledger", 1, 1), None)
        try:
            begun = time.perf_counter()
            async with asyncio.timeout(120):
                latencies = await run_jobs(host, jobs, slots)
            return time.perf_counter() - begun, latencies
        finally:
            await host.close()
            await provider.release(REQUEST)


async def run_jobs(host: Host, jobs: int, slots: int) -> list[float]:
    asked: dict[JobKey, float] = {}
    latencies: list[float] = []
    requests: list[asyncio.Task[None]] = []

    async def prepare(job: StartJob) -> None:
        reply = await host.prepare(job)
        assert reply.ok, reply

    def begin_jobs() -> None:
        while len(asked) < jobs and len(asked) - len(latencies) < slots:
            job = job_for(host, len(asked))
            asked[job.key] = time.perf_counter()
            requests.append(asyncio.create_task(prepare(job)))

    begin_jobs()
    async for batch in host.news():
        now = time.perf_counter()
        events = [message for message in batch if isinstance(message, Event)]
        for event in events:
            if event.record.state is JobState.FINISHED:
                assert event.record.exit_code == 0, event
                latencies.append(now - asked[event.record.key])
        if events:
            await host.acknowledge(Cursor(host.seen.cursor.log_id, events[-1].number))
        begin_jobs()
        if len(latencies) == jobs:
            await asyncio.gather(*requests)
            return latencies
    raise AssertionError("the agent has ended the connection")


def job_for(host: Host, number: int) -> StartJob:
    uid = uuid.uuid4().hex
    key = JobKey(uid, 1, 0)
    return StartJob(uid, key, 1, host.seen.boot_id, f"many-{number}", ("true",), go=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("jobs", nargs="?", type=positive, default=JOBS)
    jobs = parser.parse_args(arguments).jobs
    print(f"{'jobs':>6} {'slots':>6} {'wall s':>8} {'jobs/s':>8} {'p50 ms':>8} {'p95 ms':>8}")
    for count, slots in ((jobs // 10, 1), (jobs, 16), (jobs, SLOTS)):
        wall, latencies = asyncio.run(bench(count, slots))
        latencies.sort()
        p50, p95 = (latencies[int(len(latencies) * part)] * 1000 for part in (0.5, 0.95))
        print(f"{count:6} {slots:6} {wall:8.2f} {count / wall:8.0f} {p50:8.1f} {p95:8.1f}")


if __name__ == "__main__":
    main()
