"""Readers of what the kernel and its tools print, against recorded output."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleetform.agents.host import (
    cgroups,
    gpu_processes,
    gpus,
    host_report,
    leftovers,
    probes,
    processes,
)
from fleetform.agents.protocol.host_report import GpuProcess, GpuReport, HostReport

MEMINFO = """\
MemTotal:       24684096 kB
MemFree:        20000000 kB
MemAvailable:   22000000 kB
HugePages_Total:       0
"""

MOUNTINFO = """\
24 1 0:22 / /proc rw,nosuid shared:5 - proc proc rw
30 24 0:27 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
31 24 0:28 /docker/abc /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
32 24 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""

CGROUP = """\
9:name=systemd:/
4:memory:/agents/one
1:cpu,cpuacct:/docker/abc/inner
0::/system.slice
"""


def test_the_driver_tool_is_found_beside_the_search_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent's PATH is fixed, and some hosts mount the driver in a folder of its own."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '0, GPU-1, NVIDIA H200, 143771'\n")
    tool.chmod(0o700)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(gpus, "_DRIVER_FOLDERS", (str(tmp_path),))
    assert gpus.present()
    assert gpus.detect() == (GpuReport(0, "GPU-1", "NVIDIA H200", 143771 << 20),)


def test_processes_that_use_gpus_outside_fleetform() -> None:
    """The one with the lowest pid of a GPU; not jobs, what has ended, and the server of MPS."""
    job = subprocess.Popen(
        ["sh", "-c", "echo; read line"],
        env={**os.environ, "FLEETFORM_JOB_UID": "a" * 32},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        # Its variables can be read only when it runs, a moment after it was started.
        assert job.stdout is not None
        job.stdout.readline()
        found = gpu_processes.parse(
            f"GPU-a, 1, /usr/bin/python3\n"
            f"GPU-b, {job.pid}, sleep\n"
            f"GPU-c, {os.getpid()}, /opt/my, tools/train\n"
            "GPU-c, 99999999, gone\n"
            f"GPU-d, {os.getpid()}, nvidia-cuda-mps-server\n"
            f"GPU-a, {os.getpid()}, other\n"
            "No devices were found\n"
        )
    finally:
        job.kill()
        job.communicate()
    owner = Path("/proc/1").owner()
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert found == {
        "GPU-a": GpuProcess(1, owner, "python3"),
        "GPU-c": GpuProcess(os.getpid(), me, "train"),
    }


def test_a_driver_that_does_not_answer_is_given_up_and_asked_again_once_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes its timeout and no more, and says nothing of who uses GPUs."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\ntest -e there || exec sleep 60\necho 'GPU-1, 1, init'\n")
    tool.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(gpus, "_TIMEOUT_SECONDS", 0.2)
    monkeypatch.chdir(tmp_path)
    assert gpu_processes.find() is None
    monkeypatch.setattr(gpus, "_TIMEOUT_SECONDS", 60)
    (tmp_path / "there").touch()
    deadline = time.monotonic() + 60
    while (found := gpu_processes.find()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert list(found) == ["GPU-1"]


def test_meminfo() -> None:
    """Sizes are KiB in the file and bytes for us; an old kernel has no estimate of what is free."""
    assert probes.parse_meminfo(MEMINFO) == (24684096 * 1024, 22000000 * 1024)
    old = "MemTotal: 100 kB\nMemFree: 40 kB\n"
    assert probes.parse_meminfo(old + "MemAvailable: 50 kB\n") == (102400, 51200)


@pytest.mark.parametrize(
    ("text", "millicores"),
    [("max 100000\n", None), ("150000 100000\n", 1500), ("50000 100000", 500)],
)
def test_cpu_max(text: str, millicores: int | None) -> None:
    """A quota is a part of a period; `max` is none."""
    assert probes.parse_cpu_max(text) == millicores


def test_gpus() -> None:
    """GPUs come in the driver's order, and lines that are none are passed over."""
    output = (
        "1, GPU-b, NVIDIA A100-SXM4-80GB, 81920\n"
        "0, GPU-a, NVIDIA A100-SXM4-80GB, 81920\n"
        "2, GPU-c, NVIDIA A100-SXM4-80GB, [N/A]\n"
        "Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error\n"
    )
    name = "NVIDIA A100-SXM4-80GB"
    assert gpus.parse(output) == (
        GpuReport(0, "GPU-a", name, 81920 << 20),
        GpuReport(1, "GPU-b", name, 81920 << 20),
    )
    assert gpus.parse("NVIDIA-SMI has failed because it couldn't communicate\n") == ()


def test_mountpoints() -> None:
    """A hierarchy is found by its kind and controller, with the part of it that is mounted."""
    assert cgroups.parse_mountpoint(MOUNTINFO, "cgroup", "memory") == ("/", "/sys/fs/cgroup/memory")
    assert cgroups.parse_mountpoint(MOUNTINFO, "cgroup", "cpu") == (
        "/docker/abc",
        "/sys/fs/cgroup/cpu",
    )
    assert cgroups.parse_mountpoint(MOUNTINFO, "cgroup2", "") == ("/", "/sys/fs/cgroup/unified")
    assert cgroups.parse_mountpoint(MOUNTINFO, "cgroup", "freezer") is None


def test_groups() -> None:
    """A process's group is found by controller, that of cgroup 2 by none."""
    assert cgroups.parse_group(CGROUP, "memory") == "/agents/one"
    assert cgroups.parse_group(CGROUP, "cpu") == "/docker/abc/inner"
    assert cgroups.parse_group(CGROUP, "") == "/system.slice"
    assert cgroups.parse_group(CGROUP, "freezer") is None


def test_process_files() -> None:
    """Names with spaces and brackets do not mislead, and masks are hexadecimal."""
    assert processes.parse_parent(b"12 (a) b (c)) S 7 12 12 0 -1") == 7
    assert processes.parse_caught(b"SigIgn:\t0\nSigCgt:\t0000000000000200\n") == 1 << 9
    assert processes.parse_caught(b"") == 0
    assert (
        processes.parse_pending(b"SigPnd:\t0000000000000000\nShdPnd:\t0000000000004000\n")
        == 1 << 14
    )
    assert processes.parse_pending(b"") == 0
    assert processes.parse_proportional(b"Rss: 8 kB\nPss:       5 kB\nPss_Anon: 1 kB\n") == 5120


def test_this_process() -> None:
    """The readers agree with what is known of this process and a child of it."""
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import signal; signal.signal(10, print); print(flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "FLEETFORM_JOB_UID": "job-of-this-test"},
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        # Others of this process come and go meanwhile, such as commands of other tests.
        for descendants in (processes.descendants, processes._descendants_by_scan):
            assert child.pid in descendants(os.getpid())
            assert not descendants(child.pid)
        assert processes.catching([child.pid], signal.SIGUSR1) == [child.pid]
        assert processes.catching([child.pid], signal.SIGUSR2) == []
        assert leftovers.search("job-of-this-test", ("/no/such",), 0).found == (child.pid,)
        assert processes.resident_bytes([child.pid]) > 1 << 20
        assert 0 < processes.proportional_bytes([child.pid]) < 1 << 30
    finally:
        child.communicate()


def test_report() -> None:
    """A host's report is whole and plausible."""
    report = host_report.report("/", ("poll",), ())
    assert isinstance(report, HostReport)
    assert 0 < report.cpu_millicores <= os.cpu_count() * 1000
    assert 0 < report.memory_free_bytes <= report.memory_bytes
    assert 0 <= report.disk_free_bytes <= report.disk_bytes
    assert all(not address.startswith("127.") for address in report.addresses)
