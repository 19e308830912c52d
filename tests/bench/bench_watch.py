"""What a watch of a thousand elements costs: processor time of `ps --watch` and `logs --follow`."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from measuring import FLEETFORM, environment_of, parser_of, positive, scratch, table

ELEMENTS = 1000
SECONDS = 30
WARM_SECONDS = 5
"""The start is not measured: imports and the first reading."""

ARRAY = """\
type: task
name: arr
array: 1-{elements}
commands: ["true"]
resources: {{cpu: 1}}
"""
# Rows as the scheduler writes them, without a controller, so that none changes.
_ENTER = """\
import applied, pathlib, sys
root = applied.write_tree(pathlib.Path(sys.argv[1]), applied.FLEET, sys.argv[2])
applied.enter(root)
applied.place_all(root)
"""
# Another process that commits: each commit has the rows read again.
_COMMIT = """\
import sys, time
from fleetform.app.ledger import open_for_writing
from fleetform.app.workspace import Workspace
ledger = open_for_writing(Workspace.open(sys.argv[1]))
while True:
    ledger.take_fence(who="bench", now_ms=time.time_ns() // 1_000_000)
    time.sleep(0.5)
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("elements", nargs="?", type=positive, default=ELEMENTS)
    elements = parser.parse_args(arguments).elements
    with scratch() as folder:
        environment = {
            **environment_of(folder / "state"),
            "PYTHONPATH": str(Path(__file__).parents[1]),
        }
        tree = str(folder / "tree")
        entered = subprocess.run(
            [sys.executable, "-c", _ENTER, tree, ARRAY.format(elements=elements)],
            env=environment,
            check=False,
        )
        if entered.returncode:
            raise SystemExit(entered.returncode)
        watches = {
            "ps --watch": ["ps", "-C", tree, "--watch"],
            "ps arr --watch": ["ps", "-C", tree, "arr", "--watch"],
            "ps --watch, JSON lines": ["ps", "-C", tree, "--watch", "--format", "json"],
            "logs arr --follow": ["logs", "-C", tree, "arr", "--follow"],
        }
        quiet = [share(command, environment) for command in watches.values()]
        with running([sys.executable, "-c", _COMMIT, tree], environment):
            busy = [share(command, environment) for command in watches.values()]
    table(
        f"Watch {elements} elements on a terminal for {SECONDS} s",
        ["share of a CPU", "nothing changes", "two commits a second", "asked (nothing changes)"],
        [
            [f"fleetform {title}", f"{100 * one:.1f} %", f"{100 * other:.1f} %", "5 %"]
            for title, one, other in zip(watches, quiet, busy, strict=True)
        ],
    )


def share(command: Sequence[str], environment: dict[str, str]) -> float:
    """Run a watch on a terminal; return its processor time by wall time, after its start."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (50, 120))
    reader = threading.Thread(target=drain, args=(master,), daemon=True)
    reader.start()
    try:
        terminal = {**environment, "TERM": "xterm"}
        with running([FLEETFORM, *command], terminal, slave) as process:
            time.sleep(WARM_SECONDS)
            before, began = cpu_seconds(process), time.monotonic()
            time.sleep(SECONDS)
            if process.poll() is not None:
                raise SystemExit(f"{command} ended with {process.returncode}")
            return (cpu_seconds(process) - before) / (time.monotonic() - began)
    finally:
        os.close(slave)
        reader.join()
        os.close(master)


def drain(master: int) -> None:
    """Read what is drawn, as a terminal does, until its other end is closed."""
    try:
        while os.read(master, 65536):
            pass
    except OSError:
        return


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """Processor time so far, of the process itself."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(
    command: Sequence[str], environment: dict[str, str], terminal: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process until the block ends."""
    process = subprocess.Popen(
        command, env=environment, stdin=terminal, stdout=terminal, stderr=terminal
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
