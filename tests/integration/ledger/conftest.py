"""A lab for each test, and a small disk where one can be mounted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.ledger.lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path / "lab")
    yield lab
    lab.close()


@pytest.fixture
def small_disk(lab: Lab, tmp_path: Path, need: Callable[[str, bool, str], None]) -> Iterator[Path]:
    """Give the lab a state folder on a disk of 12 MiB; a test fills it and empties it again."""
    disk = tmp_path / "disk"
    disk.mkdir()
    need("root", os.geteuid() == 0, "only root may mount a small disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m,mode=700", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    need("mount", mounted.returncode == 0, f"a tmpfs cannot be mounted: {mounted.stderr.strip()}")
    lab.state = disk
    yield disk
    # While its agents can still be found there.
    lab.close()
    subprocess.run(["umount", "-l", str(disk)], check=True)
