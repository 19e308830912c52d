"""What the benches share: trees made on the spot, commands measured whole, and tables."""

from __future__ import annotations

import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

FLEETFORM = str(Path(sys.executable).with_name("fleetform"))


@dataclass(frozen=True)
class Measured:
    """
    One command, from its start to its end.

    `cpu_seconds` are its own and those of the processes that it has waited for: on a machine that
    others use, they say more than the clock.
    """

    wall_seconds: float
    peak_bytes: int
    exit_code: int
    output: str
    cpu_seconds: float = 0.0


def measure(arguments: Sequence[str], *, state: Path) -> Measured:
    """Run fleetform once with a state folder of its own."""
    environment = environment_of(state)
    with tempfile.TemporaryFile() as out:
        started = time.perf_counter()
        process = subprocess.Popen(
            [FLEETFORM, *arguments], stdout=out, stderr=subprocess.STDOUT, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        output = out.read().decode(errors="replace")
    return Measured(wall, usage.ru_maxrss * 1024, process.returncode, output)


def environment_of(state: Path) -> dict[str, str]:
    """The environment of a command whose state and cache are its own."""
    environment = {
        "FLEETFORM_CACHE_HOME": str(state / "cache"),
        **os.environ,
        "FLEETFORM_STATE_HOME": str(state),
        "NO_COLOR": "1",
    }
    # Whoever develops may have them set: each command would compile every module again, and each
    # line of its output would be written by itself.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.pop("PYTHONUNBUFFERED", None)
    return environment


_SAMPLE_SECONDS = 0.02


def measure_tree(
    command: Sequence[str], *, environment: Mapping[str, str], folder: Path
) -> Measured:
    """Run any command once; its peak memory is that of all its processes together, by samples."""
    with tempfile.TemporaryFile() as out:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=folder
        )
        peaks = [0]
        ended = threading.Event()
        sampler = threading.Thread(target=_sample, args=(process.pid, peaks, ended))
        sampler.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        ended.set()
        sampler.join()
        out.seek(0)
        output = out.read().decode(errors="replace")
    # The kernel's own peak of the first process misses nothing between two samples.
    peak = max(peaks[0], usage.ru_maxrss * 1024)
    cpu = usage.ru_utime + usage.ru_stime
    return Measured(wall, peak, process.returncode, output, cpu)


def _sample(pid: int, peaks: list[int], ended: threading.Event) -> None:
    while not ended.wait(_SAMPLE_SECONDS):
        peaks[0] = max(peaks[0], _resident_bytes(pid))


def _resident_bytes(pid: int) -> int:
    """Resident memory of a process and of all below it; 0 for one that has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(map(_resident_bytes, children))


def speed_of_machine() -> float:
    """Seconds that ten million additions take Python: what the figures beside it go with."""
    started = time.perf_counter()
    total = 0
    for number in range(10_000_000):
        total += number
    assert total == 49_999_995_000_000
    return time.perf_counter() - started


def expect(measured: Measured, exit_code: int = 0) -> Measured:
    """Stop the bench when a command did something else than what is measured."""
    if measured.exit_code != exit_code:
        print(measured.output[-4000:])
        raise SystemExit(f"exit code {measured.exit_code}, expected {exit_code}")
    return measured


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is gone afterwards, with the agents that were started in it."""
    folder = Path(tempfile.mkdtemp(prefix="fleetform-bench-"))
    try:
        yield folder
    finally:
        end_agents(folder / "state")
        shutil.rmtree(folder, ignore_errors=True)


def end_agents(state: Path) -> None:
    """End the agents of a state folder by the ids that they wrote down."""
    for file in state.glob("hosts/*/*/agent.pid"):
        try:
            os.kill(int(file.read_text().split()[0]), 15)
        except (OSError, ValueError, IndexError):
            continue


def write_tree(folder: Path, documents: dict[str, str]) -> Path:
    """Write an environment with these files beside its `environment.yaml`."""
    folder.mkdir(parents=True, exist_ok=True)
    uid = secrets.token_hex(16)
    (folder / "environment.yaml").write_text(
        f"type: environment\nname: bench\nuid: {uid}\nrules:\n  allow_destroy: true\n"
    )
    for name, text in documents.items():
        (folder / name).write_text(text)
    return folder


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table, ready for docs/benchmarks.md."""
    widths = [max(len(line[n]) for line in (header, *rows)) for n in range(len(header))]

    def shown(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return "| " + " | ".join(padded) + " |"

    print(f"\n### {title}\n")
    print(shown(header))
    print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    for row in rows:
        print(shown(row))
    sys.stdout.flush()


def seconds(values: Sequence[float]) -> str:
    """Median, and the range in brackets where there is one."""
    middle = statistics.median(values)
    if len(values) == 1:
        return f"{middle:.2f} s"
    return f"{middle:.2f} s ({min(values):.2f} to {max(values):.2f})"


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
