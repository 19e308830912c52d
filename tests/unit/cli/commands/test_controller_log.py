"""The log of a background controller."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WRITING = """
import sys
from pathlib import Path
from fleetform.cli.commands.controller import BoundedLog
log = BoundedLog(Path(sys.argv[1]), bytes_max=1000)
for number in range(200):
    log.write(f"line {number}\\n")
print("Python's own", file=sys.stderr)
"""


def test_a_log_never_grows_beyond_two_files(tmp_path: Path) -> None:
    """The newest lines are kept, private, with what Python itself prints."""
    path = tmp_path / "background.log"
    subprocess.run([sys.executable, "-c", WRITING, str(path)], check=True)
    older = path.with_name("background.log.1")
    assert sorted(tmp_path.iterdir()) == [path, older]
    assert all(os.stat(one).st_mode & 0o777 == 0o600 for one in (path, older))  # noqa: PTH116 -- in one line
    assert older.stat().st_size <= 1100
    *lines, last = path.read_text().splitlines()
    assert last == "Python's own"
    assert lines[-1] == "line 199"


FULL = """
import sys
from pathlib import Path
from fleetform.cli.commands.controller import BoundedLog
log = BoundedLog(Path("/dev/full"))
log.write("lost\\n")
"""


def test_a_full_disk_ends_nothing() -> None:
    """What cannot be written is left out: runs are more than their log."""
    subprocess.run([sys.executable, "-c", FULL], check=True)
