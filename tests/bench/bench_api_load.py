"""From a document that is written to the first line of its job, beside readers of the API."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench_latency import figures
from measuring import (
    FLEETFORM,
    environment_of,
    expect,
    measure,
    parser_of,
    percentile,
    positive,
    scratch,
    table,
    write_tree,
)

SAMPLES = 40
READERS = 20
RUNS = 3000
PATH = "/api/v1/runs?limit=1000"

FLEET = """\
type: fleet
name: here
nodes: 1
local: {cpu: 256, memory: 256GB}
"""
PAST = """\
type: task
name: past
array: 1-{runs}
commands: ["true"]
fleets: [here]
resources: {{cpu: 1}}
"""
SAY = """\
type: task
name: say-{number}
commands: ["date +%s%N > {said}"]
fleets: [here]
resources: {{cpu: 1}}
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """
    `serve --listen` drives a fleet, and one document after another is written, each with one task.

    First without readers; then as many readers as there are ask for a page of a thousand of the runs
    that are over, each again as soon as it has its answer. The first line is the host's own clock.
    """
    parser = parser_of(__doc__)
    parser.add_argument("samples", nargs="?", type=positive, default=SAMPLES)
    parser.add_argument("--readers", type=positive, default=READERS)
    parser.add_argument("--runs", type=positive, default=RUNS)
    options = parser.parse_args(arguments)
    with scratch() as folder:
        state = folder / "state"
        documents = {"fleet.yaml": FLEET, "past.yaml": PAST.format(runs=options.runs)}
        tree = write_tree(folder / "tree", documents)
        expect(measure(["apply", str(tree), "-y"], state=state))
        with serving(tree, state, folder / "serve.log") as port:
            alone = submit(tree, state, range(options.samples))
            with reading(port, options.readers) as answered:
                began = time.monotonic()
                before = sum(answered)
                beside = submit(tree, state, range(options.samples, 2 * options.samples))
                rate = (sum(answered) - before) / (time.monotonic() - began)
    rows = []
    for what, alone_ms, beside_ms in zip(
        ("from the ledger's entry", "from the document"), alone, beside, strict=True
    ):
        times = percentile(beside_ms, 0.95) / percentile(alone_ms, 0.95)
        rows.append([f"{what}, no readers", *figures(alone_ms), "-", "-"])
        rows.append(
            [f"{what}, {options.readers} readers", *figures(beside_ms), f"{times:.1f}", "2"]
        )
    table(
        f"To the first line of a job, {options.samples} one after another, beside {options.runs}"
        f" runs that are over; {rate:.0f} answers a second",
        ["", "p50", "p95", "worst", "times (p95)", "asked"],
        rows,
    )


@contextmanager
def serving(tree: Path, state: Path, log: Path) -> Iterator[int]:
    """Serve the environment; yields the port of its API once that answers."""
    with log.open("wb") as output:
        server = subprocess.Popen(
            [FLEETFORM, "serve", str(tree), "--listen", "127.0.0.1:0"],
            env=environment_of(state),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + 60
        while not (found := re.search(r"127\.0\.0\.1:(\d+)/", log.read_text())):
            if time.monotonic() > deadline:
                raise SystemExit(f"serve does not answer:\n{log.read_text()}")
            time.sleep(0.05)
        port = int(found[1])
        rows = json.loads(ask(http.client.HTTPConnection("127.0.0.1", port, timeout=60)))
        assert rows["items"], "there are runs to read"
        yield port
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


@contextmanager
def reading(port: int, readers: int) -> Iterator[list[int]]:
    """Read all the while; yields how many answers each reader has had."""
    answered = [0] * readers
    over = threading.Event()

    def read(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while not over.is_set():
            ask(connection)
            answered[number] += 1
        connection.close()

    threads = [threading.Thread(target=read, args=(number,)) for number in range(readers)]
    for thread in threads:
        thread.start()
    try:
        while not all(answered):
            if not all(thread.is_alive() for thread in threads):
                raise SystemExit("a reader has ended")
            time.sleep(0.05)
        yield answered
    finally:
        over.set()
        for thread in threads:
            thread.join()


def ask(connection: http.client.HTTPConnection) -> bytes:
    connection.request("GET", PATH)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{answer.status}: {body[:500]!r}")
    return body


def submit(tree: Path, state: Path, numbers: range) -> tuple[list[float], list[float]]:
    """Submit one task after another; returns milliseconds from its entry, and from its document."""
    written_ns, said_ns = {}, {}
    for number in numbers:
        said = state / f"said-{number}"
        document = SAY.format(number=number, said=said)
        written_ns[number] = time.time_ns()
        (tree / f"say-{number}.yaml").write_text(document)
        said_ns[number] = wait_for_line(said)
    rows = json.loads(expect(measure(["ps", "-C", str(tree), "--json"], state=state)).output)
    entered_ms = {row["name"]: row["submitted_at_ms"] for row in rows}
    return (
        [said_ns[number] / 1e6 - entered_ms[f"say-{number}"] for number in numbers],
        [(said_ns[number] - written_ns[number]) / 1e6 for number in numbers],
    )


def wait_for_line(file: Path) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if file.exists() and (text := file.read_text()).endswith("\n"):
            return int(text)
        time.sleep(0.002)
    raise SystemExit("no line within 60 s")


if __name__ == "__main__":
    main()
