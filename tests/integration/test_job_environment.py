"""A job's environment, from the shell that types `apply` to what `env` prints in the job."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from forkserver import program
from leftovers import end_agents

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "runs.md"
PATIENCE_SECONDS = 60.0

DOCUMENTS = """\
type: environment
name: lab
uid: c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1
---
type: fleet
name: local
local: {cpu: 1, memory: 1GB}
---
type: task
name: show
# Not `env`: the shell adds variables of its own to what it passes on.
commands: ["tr '\\\\0' '\\\\n' < /proc/$$/environ; echo file > made; stat -c %a made"]
"""

WEIRD = {
    "PATH": "/weird",
    "LD_LIBRARY_PATH": "/weird/lib",
    "PYTHONPATH": "/weird/site",
    "PYTHONSTARTUP": "/weird/start.py",
    "LANG": "de_DE.ISO-8859-1",
    "LC_ALL": "de_DE",
    "VIRTUAL_ENV": "/weird/venv",
    "CONDA_PREFIX": "/weird/conda",
    "SHELL": "/weird/fish",
    "USER": "weird",
    "CUDA_VISIBLE_DEVICES": "7",
    "SECRET_OF_THE_SHELL": "1",
    "FLEETFORM_AGENT_BOOT_ID": "weird",
}


class Lab:
    """An environment with one run that prints its variables, applied from a shell of the test's."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.tree = folder / "lab"
        self.tree.mkdir()
        environment, *documents = DOCUMENTS.split("---\n")
        (self.tree / "environment.yaml").write_text(environment)
        (self.tree / "rest.yaml").write_text("---\n".join(documents))

    def run(self, *arguments: str, shell: dict[str, str]) -> subprocess.CompletedProcess[str]:
        places = {name: str(self.state) for name in ("FLEETFORM_STATE_HOME", "HOME")}
        return subprocess.run(
            [program(), *arguments],
            cwd=self.tree,
            env={**shell, **places, "FLEETFORM_CACHE_HOME": ""},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def variables(self, shell: dict[str, str]) -> tuple[dict[str, str], str]:
        """Apply from a shell with these variables; returns what the job had, and its file's mode."""
        applied = self.run("apply", "-y", shell=shell)
        assert applied.returncode == 0, applied.stdout + applied.stderr
        *lines, mode = self.run("logs", "show", shell=shell).stdout.splitlines()
        return dict(line.split("=", 1) for line in lines if line), mode


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    end_agents(lab.state)


def documented() -> set[str]:
    """Names in the guide's table, without those that only elements, volumes and nodes have."""
    rows = re.findall(r"^\| (`[A-Z].*?) \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    names = set(re.findall(r"`([A-Z_]+)`", " ".join(rows)))
    nodes = {"FLEETFORM_MASTER_PORT", "FLEETFORM_HOSTFILE", "DSTACK_MPI_HOSTFILE", "FLEETFORM_RSH"}
    return names - nodes - {"FLEETFORM_ARRAY_INDEX"}


def test_the_shell_that_starts_an_agent_leaves_nothing_in_its_jobs(lab: Lab) -> None:
    """A job has exactly the documented variables, whatever the shell of the first `apply` has."""
    found, mode = lab.variables(WEIRD)
    assert found.keys() == documented()
    account = pwd.getpwuid(os.geteuid())
    expected = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": account.pw_dir,
        "USER": account.pw_name,
        "LOGNAME": account.pw_name,
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    assert {name: found[name] for name in expected} == expected
    assert Path(found["SHELL"]).name == "sh"
    assert found["TMPDIR"].startswith(str(lab.state))
    assert mode == "644"


def test_agents_and_their_spawners_have_a_clean_environment(lab: Lab) -> None:
    """Nothing of the caller's shell is in the processes that outlive the command."""
    lab.variables(WEIRD)
    own = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            environment = (process / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(lab.state) in command:
            own += 1
            assert environment == (
                b"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\0LANG=C.UTF-8\0"
            )
    assert own >= 2, "neither an agent nor its spawner was found"


def test_a_document_overrides_the_defaults(lab: Lab) -> None:
    """What `env:` says of a default wins, and an empty shell is as good as any."""
    with (lab.tree / "rest.yaml").open("a") as file:
        file.write("env: {PATH: '/opt/none:/usr/bin:/bin', PYTHONUNBUFFERED: '', HOME: /nowhere}\n")
    found, _ = lab.variables({})
    assert found["PATH"] == "/opt/none:/usr/bin:/bin"
    assert found["PYTHONUNBUFFERED"] == ""
    assert found["HOME"] == "/nowhere"
