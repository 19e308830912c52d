"""What is read of a host: by the program itself, and over the commands that send it there."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
from pathlib import Path

import pytest

from fleetform.providers import host_facts
from fleetform.providers.contract.checks import GpuDevice, HostFacts
from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.ssh import setup
from fleetform.providers.ssh.setup import Output

REQUEST = InstanceRequest("uid-1", "gpu-0", "gpu", {})
FOLDER = {"folder": ".local/state/fleetform", "person": "root"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def read() -> HostFacts:
    # As it comes over SSH.
    return HostFacts.read(json.loads(json.dumps(host_facts.read_facts(FOLDER))))


def test_reading_creates_nothing(home: Path) -> None:
    """The folder of the agent need not exist; the nearest one that does is described."""
    facts = read()
    assert facts.folder.path == f"{home}/.local/state/fleetform"
    assert (facts.folder.nearest, facts.folder.is_writable) == (str(home), True)
    assert facts.folder.mount
    assert facts.folder.file_system
    assert [*home.iterdir()] == []


def test_a_file_in_the_way_is_no_folder(home: Path) -> None:
    """The nearest part of the path that exists may be a file."""
    (home / ".local").write_text("")
    facts = read()
    assert (facts.folder.nearest, facts.folder.is_folder) == (f"{home}/.local", False)


def test_agents_of_every_environment_are_listed(home: Path) -> None:
    """An agent is its folder; one without a process does not run, and damaged folders are skipped."""
    for environment, name in (("e1", "gpu-0"), ("e2", "gpu-1"), ("e2", "damaged")):
        root = home / FOLDER["folder"] / "hosts" / environment / name
        root.mkdir(parents=True)
        mark = {"uid": f"u-{name}", "name": name, "fleet": "gpu", "environment_uid": environment}
        (root / "instance.json").write_text("{" if name == "damaged" else json.dumps(mark))
    assert [(one.environment_uid, one.uid, one.is_running) for one in read().agents] == [
        ("e1", "u-gpu-0", False),
        ("e2", "u-gpu-1", False),
    ]


@pytest.mark.parametrize(
    ("output", "exit_code", "names", "complaint"),
    [
        ("550.54.15, NVIDIA H100 80GB HBM3, 81559, 0, GPU-5e", 0, ("NVIDIA H100 80GB HBM3",), ""),
        (
            "550.54.15, NVIDIA A100, 40960, 0, GPU-5e\n550.54.15, NVIDIA A100, [Unknown Error], 1, GPU-5f",
            0,
            ("NVIDIA A100",),
            "550.54.15, NVIDIA A100, [Unknown Error], 1, GPU-5f",
        ),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            9,
            (),
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        ),
        ("", 12, (), "exit code 12"),
    ],
)
def test_gpus_as_their_driver_lists_them(
    home: Path, monkeypatch: pytest.MonkeyPatch, output: str, exit_code: int, names, complaint: str
) -> None:
    """A line that is no GPU is what the driver complains of."""
    tool = home / "bin/nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\ncat <<'X'\n{output}\nX\nexit {exit_code}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    gpu = read().gpu
    assert (gpu.tool, gpu.names, gpu.complaint) == (str(tool), names, complaint)
    assert gpu.driver == ("550.54.15" if names else "")
    assert gpu.devices == ((GpuDevice(0, "GPU-5e"),) if names else ())


LOGIND = "KillUserProcesses={}\nKillExcludeUsers=root\nKillOnlyUsers={}\nRemoveIPC={}"


@pytest.mark.parametrize(
    ("values", "kills", "removes"),
    [
        (("yes", "", "yes"), True, True),
        (("yes", "someone-else", "no"), False, False),
        (("no", "", "yes"), False, True),
    ],
)
def test_what_systemd_does_at_logout(
    home: Path, monkeypatch: pytest.MonkeyPatch, values, kills: bool, removes: bool
) -> None:
    """A list of users restricts who loses processes."""
    text = LOGIND.format(*values)
    monkeypatch.setattr(host_facts.host_service, "call", lambda *_words: text)
    monkeypatch.setattr(host_facts.os.path, "isdir", lambda _path: True)
    monkeypatch.setattr(host_facts.os, "geteuid", lambda: 1000)
    found = host_facts._logout("ada")
    assert (found["kills_processes"], found["removes_ipc"]) == (kills, removes)


def test_the_program_is_sent_to_the_hosts_python(home: Path) -> None:
    """Two commands, and the second answers with the facts."""
    steps = setup.check(REQUEST, "ada")
    next(steps)
    command = steps.send(Output("python /usr/bin/python3\n"))
    assert command.line.endswith("exec '/usr/bin/python3' '-I' '-S' '-'")
    assert b"def read_facts" in command.stdin
    with pytest.raises(StopIteration) as end:
        steps.send(Output(json.dumps(host_facts.read_facts(FOLDER))))
    assert end.value.value.home == str(home)


def test_an_answer_without_facts_is_refused() -> None:
    """Another program answered in the place of Python."""
    steps = setup.check(REQUEST, "ada")
    next(steps)
    steps.send(Output("python /usr/bin/python3\n"))
    with pytest.raises(PermanentError, match="instance gpu-0: the facts of the host are not"):
        steps.send(Output("{}"))


def test_processes_that_use_a_gpu_outside_fleetform(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are listed with their user; a process of a job is not, and one that has ended neither."""
    gpu_of = "case $1 in *compute-apps*) echo '{} , /usr/bin/python3'; echo '{}, train'; echo '99999999, gone';; *) echo '550.54, H100, 81559, 0, GPU-5e';; esac"  # fmt: skip
    job = subprocess.Popen(
        ["sleep", "60"], env={**os.environ, "FLEETFORM_RUN_UID": "a" * 32}, stdin=subprocess.DEVNULL
    )
    try:
        tool = home / "bin/nvidia-smi"
        tool.parent.mkdir()
        tool.write_text(f"#!/bin/sh\n{gpu_of.format(os.getpid(), job.pid)}\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
        (found,) = read().gpu.users
    finally:
        job.kill()
        job.wait()
    assert (found.pid, found.program) == (os.getpid(), "python3")
    assert found.user == pwd.getpwuid(os.geteuid()).pw_name
