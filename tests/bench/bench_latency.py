"""From a submission entering the ledger to the first line of output, on an idle fleet."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence

from measuring import (
    FLEETFORM,
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

FLEET = "type: fleet\nname: here\nnodes: 1\nlocal: {cpu: 4}\n"


def task(number: int) -> str:
    return f"""\
type: task
name: say-{number}
commands: ["date +%s%N"]
fleets: [here]
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """
    `serve` drives a fleet that is idle; `apply --detach` submits one task at a time.

    The first line is the host's own clock in nanoseconds; the submission's time is what the
    ledger wrote down in the same transaction. A second column counts to the line's arrival in
    the log that `logs` reads.
    """
    parser = parser_of(__doc__)
    parser.add_argument("samples", nargs="?", type=positive, default=SAMPLES)
    samples = parser.parse_args(arguments).samples
    started, arrived = [], []
    with scratch() as folder:
        state = folder / "state"
        tree = write_tree(folder / "tree", {"fleet.yaml": FLEET})
        expect(measure(["apply", str(tree), "-y"], state=state))
        environment = {
            **os.environ,
            "FLEETFORM_STATE_HOME": str(state),
            "FLEETFORM_CONFIG_HOME": str(state / "config"),
        }
        server = subprocess.Popen(
            [FLEETFORM, "serve", str(tree)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            time.sleep(2)
            for number in range(samples):
                (tree / f"say-{number}.yaml").write_text(task(number))
                log, seen_ns = wait_for_log(state)
                events = json.loads(
                    expect(
                        measure(["ps", "-C", str(tree), "--json"], state=state), exit_code=0
                    ).output
                )
                rows = events["runs"] if isinstance(events, dict) else events
                row = next(one for one in rows if one["name"] == f"say-{number}")
                submitted_ns = row["submitted_at_ms"] * 1_000_000
                started.append((int(log) - submitted_ns) / 1e6)
                arrived.append((seen_ns - submitted_ns) / 1e6)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(20)
    table(
        f"Submission to first line on an idle fleet, {samples} tasks one after another",
        ["", "p50", "p95", "worst", "asked (p95)"],
        [
            ["line printed by the job", *figures(started), "-"],
            ["line readable by `logs`", *figures(arrived), "150 ms"],
        ],
    )


_known: set[str] = set()


def wait_for_log(state) -> tuple[str, int]:
    """Watch the log folder for a new log with a line in it."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for file in state.glob("environments/*/logs/*/*.log"):
            if str(file) not in _known and (text := file.read_text().strip()):
                seen = time.time_ns()
                _known.add(str(file))
                return text, seen
        time.sleep(0.002)
    raise SystemExit("no output within 20 s")


def figures(values: list[float]) -> list[str]:
    return [
        f"{percentile(values, 0.5):.0f} ms",
        f"{percentile(values, 0.95):.0f} ms",
        f"{max(values):.0f} ms",
    ]


if __name__ == "__main__":
    main()
