"""
A command in a process of its own that may not take more than so much, and what it took.

The address space is limited before anything is imported. The peak is the kernel's for the
program itself (`VmHWM`): what `wait4` reports also has what the parent was when it forked.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_MAIN = """
import os, resource, sys
memory, seconds, report = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
from fleetform.cli.main import main
sys.argv[1:] = sys.argv[4:]
code = main(sys.argv[1:])
sys.stdout.flush()
with open("/proc/self/status") as status:
    peak = next(line for line in status if line.startswith("VmHWM:"))
with open(report, "w") as file:
    file.write(peak.split()[1])
os._exit(code)
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """`peak_bytes` 0: it did not live to say."""

    code: int
    stdout: str
    stderr: str
    peak_bytes: int
    cpu_seconds: float


def fleetform(
    *arguments: str | Path,
    home: Path,
    memory_max: int = 2**30,
    cpu_seconds_max: int = 60,
) -> Measured:
    """Run a command with bounds; `home` takes its state and the report."""
    home.mkdir(exist_ok=True)
    report = home / "peak"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    finished = subprocess.run(
        [sys.executable, "-c", _MAIN, str(memory_max), str(cpu_seconds_max), str(report),
         *map(str, arguments)],
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "FLEETFORM_STATE_HOME": str(home),
             "FLEETFORM_DEBUG": "1", "TMPDIR": str(home), "COLUMNS": "100",
             "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        cwd="/",
        capture_output=True, check=False, timeout=600,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Measured(
        finished.returncode,
        finished.stdout.decode("utf-8", "replace"),
        finished.stderr.decode("utf-8", "replace"),
        int(report.read_text()) * 1024 if report.exists() else 0,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )
