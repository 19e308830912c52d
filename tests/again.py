"""
Try what failed beside the other tests once more, alone: `again.py`, after pytest ended with 1.

Thousands of tests with real processes share two processors. One that fails there and passes by itself
says that its machine was busy, or that something races: it is told by name so that it gets
cured, and the rest counts. What is wrong is wrong alone too, since CI draws the same examples each
time. More than a few at once are no chance, and what failed outside of a test's own lines (a fixture,
something left behind) is not tried again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOST = 3
ROOT = Path(__file__).parents[1]
FAILURES = "fleetform/failures"
"""Where in pytest's cache `conftest` leaves what failed, as `{id of a test: it was its own lines}`."""


def main() -> int:
    failures = json.loads((ROOT / ".pytest_cache" / "v" / FAILURES).read_text())
    names = sorted(failures)
    if not names or len(names) > MOST or not all(failures.values()):
        return 1
    print(f"once more, alone: {' '.join(names)}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", *names], cwd=ROOT, check=False
    )
    if done.returncode == 0:
        print(f"failed beside the others, passed alone: {' '.join(names)}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
