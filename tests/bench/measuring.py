"""What the benches share: arguments, trees made on the spot, commands measured whole, and tables."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import signal
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
from types import FrameType
from typing import IO

FLEETFORM = str(Path(sys.executable).with_name("fleetform"))


def parser_of(said: str | None) -> argparse.ArgumentParser:
    """
    Make the parser of a bench, which refuses what it does not know.

    Args:
        said: The bench's docstring. Its line with the command, if any, gives way to the parser's.
    """
    lines = (said or "").strip().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("    python tests/bench/"))
    return argparse.ArgumentParser(
        description=text.replace("\n\n\n", "\n\n"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def positive(text: str) -> int:
    """Read a size or a number of repetitions."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"`{text}` is no number above 0")
    return int(text)


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
        with _ended_together([FLEETFORM, *arguments], out, environment) as process:
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
        "FLEETFORM_CONFIG_HOME": str(state / "config"),
        "NO_COLOR": "1",
    }
    # Whoever develops may have them set: each command would compile every module again, and each
    # line of its output would be written by itself.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.pop("PYTHONUNBUFFERED", None)
    return environment


_END_SECONDS = 10.0
"""How long what was interrupted has to end in good order: Terraform writes its state down."""


@contextmanager
def _ended_together(
    command: Sequence[str],
    out: IO[bytes],
    environment: Mapping[str, str],
    folder: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """
    Start a command in a process group of its own, and end the whole group if the bench is ended.

    Terraform's plugins, and Terraform itself below a wrapper of its, would go on for an hour.
    """
    process = None
    came: list[int] = []
    # An exception inside `Popen` would lose the process that it has just started, so a signal waits
    # until the process is known. The handlers are not inherited: exec resets them.
    before = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=folder,
                process_group=0,
            )
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)
        yield process
    except BaseException:
        if process is not None:
            _end_group(process)
        raise


def _end_group(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_END_SECONDS)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


_SAMPLE_SECONDS = 0.02


def measure_tree(
    command: Sequence[str], *, environment: Mapping[str, str], folder: Path
) -> Measured:
    """Run any command once; its peak memory is that of all its processes together, by samples."""
    with tempfile.TemporaryFile() as out:
        started = time.perf_counter()
        peaks = [0]
        ended = threading.Event()
        with _ended_together(command, out, environment, folder) as process:
            sampler = threading.Thread(target=_sample, args=(process.pid, peaks, ended))
            try:
                # An interrupt here must end the thread too: the interpreter waits for it.
                sampler.start()
                _, status, usage = os.wait4(process.pid, 0)
                wall = time.perf_counter() - started
                process.returncode = os.waitstatus_to_exitcode(status)
            finally:
                ended.set()
                if sampler.is_alive():
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
    """
    A folder that is gone afterwards, with the agents that were started in it.

    Also where the bench is asked to end, as `timeout` does: SIGTERM would leave both.
    """
    folder = Path(tempfile.mkdtemp(prefix="fleetform-bench-"))
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield folder
    finally:
        end_agents(folder / "state")
        shutil.rmtree(folder, ignore_errors=True)
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def end_agents(state: Path) -> None:
    """End the background controllers and agents of a state folder by the ids that they wrote down."""
    for lock in state.glob("environments/*/manager.lock"):
        try:
            os.kill(json.loads(lock.read_text())["pid"], 15)
        except (OSError, ValueError, KeyError):
            continue
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
        f"type: environment\nname: bench\nuid: {uid}\nrules:\n  allow_destroy: true\ngrants: {{root: true}}\n"
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
