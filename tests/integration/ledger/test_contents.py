"""Files of runs on their way to hosts, through the real program."""

from __future__ import annotations

import hashlib
import os

from integration.ledger.lab import FLEET, Lab, task


def test_an_array_shares_a_large_file(lab: Lab) -> None:
    """Each of eight elements that start at once has the whole file at its first attempt."""
    content = os.urandom(60_000_000)
    (lab.tree / "data.bin").write_bytes(content)
    more = "array: 1-8\nfiles: [data.bin]\nresources: {cpu: 1}\n"
    lab.declare(FLEET, task("arr", f"sha256sum < data.bin >> {lab.witness}", more=more))
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.said() == [hashlib.sha256(content).hexdigest(), "-"] * 8
    assert {run["attempt"] for run in lab.json("ps", "--all")} == {1}
