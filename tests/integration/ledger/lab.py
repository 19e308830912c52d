"""An environment of its own with a state folder of its own, driven by the real program."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from forkserver import FLEETFORM, program
from leftovers import end_agents

FLEET = "type: fleet\nname: local\nnodes: 1\nlocal: {cpu: 8, memory: 16GB}\n"

PATIENCE_SECONDS = 120.0
"""For what takes a second or two: a machine that does much else takes twenty times as long."""


def task(name: str, *commands: str, more: str = "") -> str:
    """Write a task; `more` is YAML of its top level."""
    lines = "".join(f"  - {json.dumps(command)}\n" for command in commands)
    return f"type: task\nname: {name}\ncommands:\n{lines}{more}"


def wait_until(is_so: Callable[[], bool], failure: Callable[[], str]) -> None:
    """
    Return once it is so; fails with what `failure` returns after a long while.

    A look may be a command: between two of them the processors are left to what is waited for.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        began = time.monotonic()
        if is_so():
            return
        now = time.monotonic()
        assert now < deadline, failure()
        time.sleep(min(max(0.02, 2 * (now - began)), 0.5))


class Lab:
    """
    A tree, a state folder, and every process that came of them.

    `witness` is a file that jobs write to and nobody else reads: it says what really ran.
    """

    def __init__(self, folder: Path, state: Path | None = None) -> None:
        self.folder = folder
        self.tree = folder / "tree"
        self.state = state if state is not None else folder / "state"
        self.witness = folder / "witness"
        self.uid = uuid.uuid4().hex
        self._children: list[subprocess.Popen[str]] = []
        self.tree.mkdir(parents=True)
        self.witness.touch()
        self.take_uid(self.uid)

    # -- the tree -----------------------------------------------------------------------------

    def take_uid(self, uid: str) -> None:
        self.uid = uid
        (self.tree / "environment.yaml").write_text(
            f"type: environment\nname: lab\nuid: {uid}\n", encoding="utf-8"
        )

    def declare(self, *documents: str) -> None:
        (self.tree / "tree.yaml").write_text("---\n".join(documents), encoding="utf-8")

    def says(self, word: str) -> str:
        """Return a command that writes a word to the witness."""
        return f"echo {word} >> {self.witness}"

    def said(self) -> list[str]:
        return self.witness.read_text(encoding="utf-8").split()

    # -- the program --------------------------------------------------------------------------

    def run(
        self,
        *arguments: str,
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run one command to its end, in the tree or in `cwd`."""
        return self._run(
            str(program()), *arguments, cwd=cwd, pass_fds=pass_fds, variables=variables
        )

    def run_python(self, code: str) -> subprocess.CompletedProcess[str]:
        """Run the program with something in it changed."""
        return self._run(sys.executable, "-c", code)

    def _run(
        self,
        *command: str,
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=cwd or self.tree,
            env=self.variables() | dict(variables or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
            pass_fds=pass_fds,
        )

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode in {0, 3, 4}, done.stdout + done.stderr
        return json.loads(done.stdout)

    def start(
        self, *arguments: str, output: IO[bytes] | int = subprocess.PIPE
    ) -> subprocess.Popen[str]:
        """Start one command; whatever is left of it at the end is killed."""
        child = subprocess.Popen(
            [FLEETFORM, *arguments],
            cwd=self.tree,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._children.append(child)
        return child

    def finish(self, child: subprocess.Popen[str]) -> tuple[int, str]:
        output, _ = child.communicate(timeout=PATIENCE_SECONDS)
        return child.returncode, output

    def states(self) -> dict[str, str]:
        return {run["name"]: run["state"] for run in self.json("ps", "--all")}

    def wait_until(self, is_so: Callable[[], bool], what: str = "it") -> None:
        wait_until(is_so, lambda: f"{what} never came")

    def wait_until_said(self, word: str) -> None:
        self.wait_until(lambda: word in self.said(), word)

    def wait_until_state(self, name: str, state: str) -> None:
        # Before there is a ledger nothing can be asked for.
        wait_until(
            lambda: self.ledger.exists() and self.states().get(name) == state,
            lambda: f"{name} was never {state}",
        )

    # -- the state ----------------------------------------------------------------------------

    @property
    def environment(self) -> Path:
        return self.state / "environments" / self.uid

    @property
    def ledger(self) -> Path:
        return self.environment / "ledger.db"

    def lose_ledger(self) -> None:
        for path in self.environment.glob("ledger.db*"):
            path.unlink()

    def copy_ledger(self, path: Path) -> None:
        """Copy it as a backup does: whole, whoever writes meanwhile."""
        with (
            contextlib.closing(sqlite3.connect(self.ledger)) as source,
            contextlib.closing(sqlite3.connect(path)) as copy,
        ):
            source.backup(copy)

    def restore_ledger(self, path: Path) -> None:
        self.lose_ledger()
        shutil.copy(path, self.ledger)

    def agents(self) -> list[int]:
        """Ids of the agents, as they wrote them down, of those that still live."""
        found = []
        for file in self.state.glob("hosts/*/*/agent.pid"):
            # An agent that ends removes its file.
            with contextlib.suppress(OSError):
                pid = int(file.read_text().split()[0])
                if str(self.state).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def end_agents(self) -> None:
        """Ask the agents to end, as idle ones do by themselves, and wait for that."""
        for pid in self.agents():
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.agents():
            assert time.monotonic() < deadline, "an agent does not end"
            time.sleep(0.02)

    def close(self) -> None:
        for child in self._children:
            if child.poll() is None:
                child.kill()
            child.communicate()
        # A fixture of a disk closes the lab before that of the lab does.
        self._children.clear()
        end_agents(self.state)

    def variables(self) -> dict[str, str]:
        """Return the environment variables of each command."""
        return {
            **os.environ,
            "FLEETFORM_STATE_HOME": str(self.state),
            "COLUMNS": "200",
            "PATH": f"{Path(FLEETFORM).parent}:{os.environ['PATH']}",
        }
