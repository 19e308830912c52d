"""The commands that give a host its agent, driven with outputs from a list."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleetform.providers.contract.errors import AgentFound, PermanentError, TemporaryError
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.ssh import host_program, setup
from fleetform.providers.ssh.setup import MARKER, Bundle, Command, Installed, Output, Python

REQUEST = InstanceRequest("uid-1", "gpu-0", "gpu", {})
CONTENT = b"the agent"
BUNDLE = Bundle(CONTENT, hashlib.sha256(CONTENT).hexdigest())
PYTHON = "/usr/bin/python3"


def drive(steps, *outputs: Output | object) -> tuple[list[Command], object]:
    """Send outputs to a procedure; returns its commands and its answer."""
    commands = [next(steps)]
    try:
        for output in outputs:
            answer = output if isinstance(output, Output) else Output(json.dumps(output))
            commands.append(steps.send(answer))
    except StopIteration as end:
        return commands, end.value
    raise AssertionError("it wants more outputs")


def install(*outputs):
    return drive(setup.install(REQUEST, "e" * 32, BUNDLE), Output(f"python {PYTHON}\n"), *outputs)


def operation(command: Command) -> str:
    """Return the operation of `host_program` that a command carries out."""
    line = command.stdin.decode().strip().splitlines()[-1]
    return json.loads(json.loads(line.removeprefix("run(json.loads(").removesuffix("))")))[
        "operation"
    ]


def found(*, is_sound: bool, is_ready: bool = False) -> dict[str, object]:
    return {"root": "/root/r", "bundle": "/root/b.pyz", "any_bundle": "/root/old.pyz", "is_sound": is_sound, "earlier": "", "is_ready": is_ready, "volumes": "/v"}  # fmt: skip


def test_the_search_for_python_passes_by_what_lacks_a_part(tmp_path: Path) -> None:
    """A Python without asyncio, as in minimal installations, is not taken."""
    lacking = "import importlib.util as u; f = u.find_spec; u.find_spec = lambda n: n != 'asyncio' and f(n) or None"
    for name, before in (("python3.13", lacking), ("python3.12", "pass")):
        program = f"import sys; sys.argv[0] = '-c'; {before}; exec(sys.argv[-1])"
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {sys.executable} -c "{program}" "$@"\n')
        (tmp_path / name).chmod(0o755)
    script = next(setup.install(REQUEST, "e" * 32, BUNDLE)).stdin
    found = subprocess.run(
        ["/bin/sh", "-s"],
        input=script,
        env={"PATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert found.stdout.decode() == f"python {tmp_path}/python3.12\n"


STARTED = {"bundle": "/root/b.pyz", "failure": "", "notes": []}


def test_an_agent_that_serves_is_left_alone() -> None:
    """To find it takes two commands, and no third is sent to start it."""
    commands, installed = install(found(is_sound=True, is_ready=True))
    assert [operation(command) for command in commands[1:]] == ["claim"]
    assert installed == Installed(Python(PYTHON), "/root/b.pyz", "/root/r", "/v")


def test_a_bare_host_gets_the_bundle() -> None:
    """Find Python, claim, store, start; each command prints the marker first."""
    commands, installed = install(found(is_sound=False), {"bundle": "/root/b.pyz"}, STARTED)
    assert [operation(command) for command in commands[1:]] == ["claim", "store", "start"]
    assert all(command.line.startswith(f"echo {MARKER}; exec ") for command in commands)
    assert installed == setup.Installed(setup.Python(PYTHON), "/root/b.pyz", "/root/r", "/v")
    assert installed.connect.line == (
        f"echo {MARKER}; exec '{PYTHON}' '-I' '-S' '/root/b.pyz' 'connect' '--root' '/root/r'"
    )


def test_a_host_with_the_bundle_is_sent_none() -> None:
    """A bundle that has its digest is not sent again."""
    commands, _ = install(found(is_sound=True), STARTED)
    assert [operation(command) for command in commands[1:]] == ["claim", "start"]


def test_finding_takes_the_bundle_of_any_release() -> None:
    """To look at a host nothing is uploaded."""
    steps = setup.find(REQUEST, "e" * 32, BUNDLE)
    commands, installed = drive(steps, Output(f"python {PYTHON}\n"), found(is_sound=False))
    assert operation(commands[1]) == "find"
    assert installed.bundle == "/root/old.pyz"
    steps = setup.find(REQUEST, "e" * 32, BUNDLE)
    assert drive(steps, Output(f"python {PYTHON}\n"), {"root": ""})[1] is None


BECOMING = InstanceRequest("uid-1", "gpu-0", "gpu", {}, endpoint={"user": "lab", "become": "sudo"})


def become(sudo: str):
    """Install as an account that becomes root; `sudo` is the exit code and what sudo printed."""
    found_python = Output(f"python {PYTHON}\nsudo {sudo}\n")
    return drive(
        setup.install(BECOMING, "e" * 32, BUNDLE), found_python, found(is_sound=True), STARTED
    )


def test_an_account_becomes_root_by_sudo() -> None:
    """Each program runs by `sudo -n` with the home folder of root, and so does the connection."""
    commands, installed = become("0 ")
    assert b"sudo -n -H" in commands[0].stdin
    prefix = f"echo {MARKER}; exec sudo -n -H '{PYTHON}' '-I' '-S' "
    assert [command.line for command in commands[1:]] == [f"{prefix}'-'"] * 2
    assert installed.connect.line.startswith(f"{prefix}'/root/b.pyz' 'connect'")
    assert not any(command.has_terminal for command in (*commands, installed.connect))


def test_sudo_that_wants_a_terminal_gets_one() -> None:
    """The program is then read by its size, since the input of a terminal does not end."""
    commands, installed = become("1 sudo: sorry, you must have a tty to run sudo")
    assert [command.has_terminal for command in (*commands, installed.connect)] == [
        False, True, True, True,
    ]  # fmt: skip
    assert f"sys.stdin.buffer.read({len(commands[1].stdin)})" in commands[1].line


@pytest.mark.parametrize(
    ("sudo", "message", "advice"),
    [
        ("1 sudo: a password is required", "sudo asks lab for a password", "NOPASSWD"),
        ("127 sh: 1: sudo: not found", "its host has no sudo", "install it"),
        ("1 Sorry, user lab is not allowed to execute", "lab cannot become root by sudo", "visudo"),
    ],
)
def test_what_keeps_an_account_from_becoming_root(sudo: str, message: str, advice: str) -> None:
    """The error says what sudo lacks and how the account gets it."""
    with pytest.raises(PermanentError, match=message) as caught:
        become(sudo)
    assert advice in caught.value.advice


@pytest.mark.parametrize(
    ("output", "message", "advice"),
    [
        (Output(""), "has no Python 3.9 or newer", "apt-get install python3"),
        (Output("system Darwin\n"), "its host runs Darwin", "replace the host"),
        (
            Output("This account is currently not available.\n", exit_code=1, has_begun=False),
            "runs no commands: This account is currently not available",
            "chsh",
        ),
        (
            Output("", exit_code=254, has_begun=False),
            "printed nothing and ended with exit code 254",
            "chsh",
        ),
        (Output("python /opt/it's/python3\n"), "character that shells read differently", "home"),
    ],
)
def test_hosts_that_cannot_be_set_up(output: Output, message: str, advice: str) -> None:
    """The error says what the host lacks and how it gets it."""
    with pytest.raises(PermanentError, match=message) as caught:
        drive(setup.install(REQUEST, "e" * 32, BUNDLE), output)
    assert advice in caught.value.advice


def test_refusals_of_the_host() -> None:
    """A problem that may pass is temporary, and one that a person must solve is not."""
    refusal = {"error": "no space is left", "advice": "free space", "is_temporary": True}
    with pytest.raises(TemporaryError, match="instance gpu-0: no space is left"):
        install(refusal)
    with pytest.raises(PermanentError, match="no space is left") as caught:
        install({**refusal, "is_temporary": False})
    assert caught.value.advice == "free space"
    with pytest.raises(AgentFound) as found:
        install({**refusal, "is_temporary": False, "found_uid": "uid-2"})
    assert found.value.uid == "uid-2"
    with pytest.raises(PermanentError, match=r"cannot be set up.*MemoryError"):
        install(Output("", complaint="Traceback …\nMemoryError\n", exit_code=1))


# -- the program on the host ------------------------------------------------------------------


@pytest.fixture
def on_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run operations with a home of their own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    before = os.umask(0o022)
    facts = {"uid": "uid-1", "name": "gpu-0", "fleet": "gpu", "environment_uid": "e" * 32, "sha256": BUNDLE.sha256}  # fmt: skip

    def run(operation: str, **more: object) -> dict[str, object]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            host_program.run({"operation": operation, **facts, **more})
        return json.loads(printed.getvalue())

    yield run
    os.umask(before)


def test_a_life_on_a_host(on_host, tmp_path: Path) -> None:
    """Claimed, stored, found under another name, and removed without a trace."""
    assert on_host("find") == {"root": ""}
    assert not (tmp_path / ".local").exists()
    claimed = on_host("claim")
    assert (claimed["is_sound"], Path(claimed["root"]).stat().st_mode & 0o777) == (False, 0o700)
    assert on_host("store", content="dGhlIGFnZW50") == {"bundle": claimed["bundle"]}
    assert on_host("claim")["is_sound"] is True
    assert on_host("find", name="renamed")["root"] == claimed["root"]
    assert on_host("remove") == {}
    assert on_host("remove") == {}
    assert [*tmp_path.rglob("*")] == [tmp_path / ".local", tmp_path / ".local/state"]


@pytest.mark.parametrize("has_data", [False, True])
def test_the_folder_of_volumes_goes_when_it_is_empty(on_host, tmp_path: Path, has_data) -> None:
    """Data of a volume that was released stays."""
    on_host("claim")
    on_host("store", content="dGhlIGFnZW50")
    volumes = tmp_path / ".local/state/fleetform/volumes" / ("e" * 32)
    (volumes / "data" if has_data else volumes).mkdir(parents=True)
    on_host("remove")
    left = [
        one for one in tmp_path.rglob("*") if one.name in {"data", "volumes", "agents", "hosts"}
    ]
    assert left == ([volumes.parent, volumes / "data"] if has_data else [])


def test_the_bundle_stays_while_an_instance_needs_it(on_host, tmp_path: Path) -> None:
    """Removing one instance leaves the agent of another one."""
    on_host("claim")
    on_host("claim", uid="uid-2", name="gpu-1")
    on_host("store", content="dGhlIGFnZW50")
    on_host("remove")
    assert on_host("find", uid="uid-2", name="gpu-1")["is_sound"] is True


def test_a_damaged_upload_is_not_kept(on_host) -> None:
    """What lies under a digest has that digest."""
    refused = on_host("store", content="b3RoZXI=")
    assert refused["error"] == "the agent arrived damaged on the host"
    assert on_host("claim")["is_sound"] is False


def test_another_instance_of_the_name_is_left_alone(on_host) -> None:
    """A folder belongs to one uid."""
    on_host("claim")
    assert (
        "exists on this host, and the ledger does not know it"
        in on_host("claim", uid="uid-2")["error"]
    )
    assert on_host("remove", uid="uid-2") == {}
    assert on_host("find")["root"]


def test_a_file_in_the_way_is_told(on_host, tmp_path: Path) -> None:
    """The error names the path."""
    (tmp_path / ".local").write_text("")
    assert str(tmp_path / ".local") in on_host("claim")["error"]
