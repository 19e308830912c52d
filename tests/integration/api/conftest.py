"""A `serve` that answers the API, in a lab of its own."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.ledger.lab import PATIENCE_SECONDS, Lab

MODULE = b"fleetform.app.api_process"


class Served:
    """One `serve --listen`, its log, and the process that answers for it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.log = lab.folder / "serve.log"
        with self.log.open("wb") as log:
            self.process = lab.start("serve", "--listen", "127.0.0.1:0", output=log)
        self.until(lambda: "/api/v1" in self.said())
        found = re.search(r"http://127\.0\.0\.1:(\d+)/api/v1", self.said())
        assert found is not None
        self.port = int(found[1])

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/v1"

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def children(self) -> list[int]:
        """Return the ids of the processes that answer the API of this lab."""
        found = []
        for path in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (path / "cmdline").read_bytes().split(b"\0") if path.name.isdigit() else []
                if MODULE in words and bytes(self.lab.tree) in words:
                    found.append(int(path.name))
        return found

    def child(self) -> int:
        """Wait for the process that answers, and return its id."""
        self.until(lambda: len(self.children()) == 1)
        return self.children()[0]

    def until(self, holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, self.said()[-4000:]
            time.sleep(0.02)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path / "lab")
    yield lab
    lab.close()


@pytest.fixture
def served(lab: Lab) -> Iterator[Served]:
    served = Served(lab)
    yield served
    if served.process.poll() is None:
        served.process.terminate()
        served.process.wait(PATIENCE_SECONDS)
    served.until(lambda: not served.children())


def seconds_of_processor(pid: int) -> float:
    """Return how much of it a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
