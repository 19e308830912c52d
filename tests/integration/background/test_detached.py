"""A detached or interrupted apply leaves a background controller, which drives its runs."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

from integration.background.background import process_of
from integration.ledger.lab import FLEET, PATIENCE_SECONDS, Lab, task, wait_until

AFTER = "depends_on: [first]\n"


def test_a_run_and_its_dependent_end_after_the_terminal_is_closed(lab: Lab) -> None:
    """`apply --detach` in a terminal that is closed afterwards: both runs end, with output."""
    lab.declare(FLEET, task("first", "echo one"), task("second", "echo two", more=AFTER))
    terminal, shell = pty.openpty()
    typed = subprocess.Popen(
        ["setsid", "--ctty", "bash", "-c", "fleetform apply -y --detach"],
        cwd=lab.tree,
        env=lab.variables(),
        stdin=shell,
        stdout=shell,
        stderr=shell,
    )
    os.close(shell)
    shown = _read_all(terminal)
    assert typed.wait(PATIENCE_SECONDS) == 0, shown
    assert "background controller" in shown
    os.close(terminal)
    wait_until(lambda: set(lab.states().values()) == {"done"}, lambda: str(lab.states()))
    assert (lab.run("logs", "first").stdout, lab.run("logs", "second").stdout) == ("one\n", "two\n")


def test_the_configuration_is_not_read(lab: Lab) -> None:
    """Without its folder, accepted runs end all the same: ledger and state folder say everything."""
    lab.declare(
        FLEET,
        task("first", lab.says("one"), "sleep 1"),
        task("second", lab.says("two"), more=AFTER),
    )
    done = lab.run("apply", "-y", "--detach")
    assert done.returncode == 0, done.stdout + done.stderr
    lab.tree.rename(lab.folder / "gone")
    lab.wait_until_said("two")
    assert "two" in lab.said()


def test_it_has_nothing_of_the_command_that_started_it(lab: Lab) -> None:
    """Own session, no terminal, folder `/`, umask 077, few variables, no descriptor of its parent."""
    lab.declare(FLEET, task("long", "sleep 600"))
    read, write = os.pipe()
    os.set_inheritable(write, True)
    done = lab.run("apply", "-y", "--detach", pass_fds=(write,), AWS_PROFILE="prod", HISTFILE="x")
    os.close(write)
    assert done.returncode == 0, done.stdout + done.stderr
    pid = process_of(lab)
    proc = Path(f"/proc/{pid}")
    # Field 6 and 7 of stat(5): its session is its own, and no terminal controls it.
    fields = (proc / "stat").read_text().rpartition(")")[2].split()
    assert (fields[3], fields[4]) == (str(pid), "0")
    assert (proc / "cwd").readlink() == Path("/")
    assert "Umask:\t0077" in (proc / "status").read_text()
    names = {
        entry.partition(b"=")[0].decode() for entry in (proc / "environ").read_bytes().split(b"\0")
    } - {""}
    usual = {"HOME", "USER", "LANG", "TZ", "PATH"}
    assert {name for name in names - usual if not name.startswith("FLEETFORM_")} == set()
    log = lab.environment / "background.log"
    assert log.stat().st_mode & 0o777 == 0o600
    streams = [(proc / f"fd/{number}").readlink() for number in (0, 1, 2)]
    assert streams == [Path("/dev/null"), log, log]
    # The end of this pipe is there once every copy of its other side is closed.
    os.set_blocking(read, False)
    assert os.read(read, 1) == b""
    os.close(read)


NAMING = """
import os, sys
from fleetform.providers.local.hosts import LocalHosts
LocalHosts.environment_variables = ("STUB_TOKEN", "STUB_UNSET")
os.environ |= {"STUB_TOKEN": "s3cret", "OTHER": "x"}
from fleetform.cli.main import main
sys.exit(main(["apply", "-y", "--detach"]))
"""


def test_it_has_the_variables_that_a_provider_names(lab: Lab) -> None:
    """Those that are set; `controller` and `status` print their names and never a value."""
    lab.declare(FLEET, task("long", "sleep 600"))
    done = lab.run_python(NAMING)
    assert done.returncode == 0, done.stdout + done.stderr
    entries = Path(f"/proc/{process_of(lab)}/environ").read_bytes().split(b"\0")
    assert b"STUB_TOKEN=s3cret" in entries
    assert b"OTHER=x" not in entries
    for typed in (("controller",), ("controller", "show", "--json"), ("status",)):
        shown = lab.run(*typed).stdout
        assert "STUB_TOKEN" in shown
        assert "STUB_UNSET" not in shown
        assert "s3cret" not in shown


def test_submit_leaves_one_too(lab: Lab) -> None:
    """A script that was submitted with `--detach` runs to its end."""
    lab.declare(FLEET)
    assert lab.run("apply", "-y").returncode == 0
    script = lab.tree / "hello.sh"
    script.write_text(f"#!/bin/sh\n{lab.says('hello')}\n", encoding="utf-8")
    done = lab.run("submit", str(script), "--detach")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "background controller" in done.stderr
    lab.wait_until_said("hello")


def test_hints_of_a_detached_command_name_an_environment_elsewhere(lab: Lab) -> None:
    """From another folder the commands that `apply` and `submit` hint at have `-C PATH`."""
    lab.declare(FLEET, task("long", "sleep 600"))
    script = lab.folder / "hello.sh"
    script.write_text("#!/bin/sh\nsleep 600\n", encoding="utf-8")
    for typed in (("apply", "-y"), ("submit", str(script), "-n", "hello")):
        done = lab.run(*typed, "--detach", "-C", str(lab.tree), cwd=lab.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        for command in ("ps", "logs", "controller stop"):
            assert f"`fleetform {command} -C {lab.tree}" in done.stderr
    assert f"`fleetform logs -C {lab.tree} hello -f` follows it" in done.stderr


def test_a_ci_job_is_warned_of(lab: Lab) -> None:
    """Its runner ends what it leaves: said when it is left, and wherever it is shown."""
    lab.declare(FLEET, task("long", "sleep 600"))
    done = lab.run("apply", "-y", "--detach", GITHUB_ACTIONS="true")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning: this is a job of GitHub Actions" in done.stderr
    assert "a job of GitHub Actions" in lab.run("controller").stderr
    assert "a job of GitHub Actions" in lab.run("status").stdout


def _read_all(terminal: int) -> str:
    """Read what a terminal shows until nothing has it open any more."""
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            return shown.decode()
        if not piece:
            return shown.decode()
        shown += piece
