"""Benches can be asked what they do, refuse what they do not know, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"
BENCHES = [BENCH / "all.py", *sorted(BENCH.glob("bench_*.py"))]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=240, check=False
    )


@pytest.mark.parametrize("bench", BENCHES, ids=lambda bench: bench.stem)
def test_a_bench_says_what_it_is(bench: Path) -> None:
    """Its help is its docstring, and nothing is measured for it."""
    done = run(str(bench), "--help")
    assert done.returncode == 0, done.stderr
    first = bench.read_text().split('"""')[1].strip().splitlines()[0]
    assert first in done.stdout
    assert done.stdout.startswith(f"usage: {bench.name} [-h]")
    assert "|--" not in done.stdout


@pytest.mark.parametrize("bench", BENCHES, ids=lambda bench: bench.stem)
def test_a_bench_refuses_what_it_does_not_know(bench: Path) -> None:
    """An option that is misspelt measures nothing."""
    done = run(str(bench), "--nothing")
    assert done.returncode == 2
    assert "--nothing" in done.stderr
    assert not done.stdout


@pytest.mark.parametrize("size", ["0", "-5", "many"])
def test_a_size_is_a_number_above_nothing(size: str) -> None:
    """Others are refused with what was typed."""
    done = run(str(BENCH / "bench_array.py"), "--", size)
    assert done.returncode == 2
    assert f"`{size}` is no number above 0" in done.stderr


MEASURING = """
import os, pathlib, sys
sys.path.insert(0, sys.argv[1])
import measuring
with measuring.scratch() as folder:
    print(folder, flush=True)
    command = ["sh", "-c", f"sleep 300 & echo $! > {sys.argv[2]}; wait"]
    measuring.measure_tree(command, environment=dict(os.environ), folder=folder)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_bench_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    """Neither what it measures, nor what that has started, nor its folder."""
    said = tmp_path / "pid"
    bench = subprocess.Popen(
        [sys.executable, "-c", MEASURING, str(BENCH), str(said)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with bench:
        assert bench.stdout is not None
        folder = Path(bench.stdout.readline().strip())
        end = time.monotonic() + 60
        while not (said.exists() and said.read_text().strip()):
            assert time.monotonic() < end
            time.sleep(0.02)
        pid = int(said.read_text())
        bench.send_signal(number)
        try:
            assert bench.wait(60) != 0
        finally:
            # A failure is told at once; leaving the block would wait for the bench without end.
            bench.kill()
    assert not folder.exists()
    # Its parent has ended before it: whoever adopts it may take a moment.
    end = time.monotonic() + 60
    while is_running(pid):
        assert time.monotonic() < end, f"sleep {pid} goes on"
        time.sleep(0.02)


INTERRUPTED_AT_START = """
import os, signal, subprocess, sys
sys.path.insert(0, sys.argv[1])
import measuring

class Interrupted(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        print(self.pid, flush=True)
        signal.raise_signal(int(sys.argv[2]))

subprocess.Popen = Interrupted
with measuring.scratch() as folder:
    print(folder, flush=True)
    measuring.measure_tree(["sleep", "300"], environment=dict(os.environ), folder=folder)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_bench_interrupted_as_its_command_starts_ends_the_command(number: signal.Signals) -> None:
    """The signal comes when the process exists, and `Popen` has not returned it yet."""
    done = run("-c", INTERRUPTED_AT_START, str(BENCH), str(int(number)))
    folder, pid = done.stdout.split()
    try:
        assert done.returncode != 0
        assert not Path(folder).exists()
        assert not is_running(int(pid))
    finally:
        if is_running(int(pid)):
            os.kill(int(pid), signal.SIGKILL)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
