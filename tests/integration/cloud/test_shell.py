"""The shell of `make cloud`, in which people try fleets without an account."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cloud import cloud_init

REPOSITORY = Path(__file__).parents[3]

pytestmark = pytest.mark.waits

WALK = rf"""
set -eux
cp -r {REPOSITORY}/environments/cloud .
cd cloud
fleetform offer gpus --refresh | grep 'g5.xlarge .*1\.01'
fleetform apply -y
first=$(cloud list | grep -o '^i-[0-9a-f]*' | head -n 1)
if cloud interrupt $first; then exit 1; fi
cloud terminate $first
fleetform drift | grep "$first (expected) → gone (seen)"
fleetform apply -y
fleetform drift | grep 'Nothing has drifted'
sed -i 's/^nodes: 2/nodes: 0..0/' fleet.yaml
fleetform apply -y
test "$(cloud list)" = nothing
if cloud terminate i-0; then exit 1; fi
"""


def test_the_shown_environment(pulumi, need, tmp_path):
    """Its hosts are created, replaced after one was terminated by hand, and gone without a trace; the run sees a GPU."""
    need("cloud-init", not cloud_init.reason_missing(), cloud_init.reason_missing())
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "tests/cloud/shell.py"), "sh", "-c", WALK],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout + done.stderr)
    assert done.returncode == 0
    assert "GPU 0: NVIDIA A10G" in done.stdout
    assert "is on demand: only spot instances are taken back" in done.stderr
    assert "there is no instance i-0; `cloud list` shows them" in done.stderr
