"""
Secrets that were planted, looked for in everything that the program says and keeps.

Three of them. `PASSWORD` stands in `registry_auth` and in an address, which nothing carries out yet:
nobody needs it, so it is nowhere. `TOKEN` stands in `env` under a name that says so: it is its
author's, the job is given it, and nothing that is shown has it. `PLAIN` stands in `env` under another
name, to prove that what is looked for would be found.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.ledger.lab import FLEET, Lab, task

PASSWORD = "planted-password-5f2c"
TOKEN = "planted-token-91ab"
PLAIN = "planted-plain-77de"

HELD = task(
    "private",
    "true",
    more=f"image: lab/x\nregistry_auth: {{username: bot, password: {PASSWORD}}}\n",
)
CLONED = task("cloned", "true", more=f"repos:\n  - url: https://bot:{PASSWORD}@git.example.org/x\n")


def runs(gate: Path) -> str:
    """A run that is given both variables, proves it, and waits."""
    proof = f'test "$HF_TOKEN" = {TOKEN[::-1]} || echo given-${{#HF_TOKEN}}'
    return task(
        "train",
        proof,
        f"until [ -e {gate} ]; do sleep 0.05; done",
        more=f"env:\n  HF_TOKEN: {TOKEN}\n  NOTE: {PLAIN}\nresources: {{cpu: 1}}\n",
    )


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("FLEETFORM_CACHE_HOME", str(tmp_path / "cache"))
    lab = Lab(tmp_path / "lab")
    yield lab
    lab.close()


def said(lab: Lab, *arguments: str) -> str:
    done = lab.run(*arguments)
    return done.stdout + done.stderr


def kept_in(*folders: Path) -> dict[Path, bytes]:
    """Every file below these folders: what is written is read as bytes, whatever it is."""
    return {
        file: file.read_bytes()
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.is_symlink()
    }


def holding(secret: str, files: dict[Path, bytes]) -> list[str]:
    return [str(file) for file, data in files.items() if secret.encode() in data]


# What a pipeline prints: its output is a log that many read.
SHOWING = [
    ("plan",),
    ("plan", "--json"),
    ("plan", "--markdown"),
    ("validate",),
    ("validate", "--format", "json"),
    ("validate", "--format", "sarif"),
    ("validate", "--format", "github"),
    ("validate", "--format", "junit"),
]


@pytest.mark.parametrize("arguments", SHOWING, ids=" ".join)
def test_nothing_that_is_shown_has_a_secret(lab: Lab, tmp_path: Path, arguments) -> None:
    """Before and after an apply, of what is new, changed and held."""
    lab.declare(FLEET, HELD, CLONED, runs(tmp_path / "gate"))
    printed = said(lab, *arguments)
    assert "train" in printed or arguments[0] == "validate"
    (tmp_path / "gate").touch()
    assert lab.run("apply", "-y").returncode == 3
    lab.declare(
        FLEET,
        HELD.replace(PASSWORD, f"{PASSWORD}-2"),
        CLONED,
        runs(tmp_path / "gate").replace(TOKEN, f"{TOKEN}-2"),
    )
    printed += said(lab, *arguments)
    assert PASSWORD not in printed
    assert TOKEN not in printed


def test_what_nobody_needs_is_kept_nowhere(lab: Lab, tmp_path: Path) -> None:
    """Ledger, its journal, plans, logs, the cache of readings, and the file of a plan."""
    gate = tmp_path / "gate"
    gate.touch()
    lab.declare(FLEET, HELD, CLONED, runs(gate))
    plan = tmp_path / "kept.plan"
    assert lab.run("plan", "--out", str(plan)).returncode == 3
    assert lab.run("apply", "-y", str(plan)).returncode == 3
    files = kept_in(lab.state, tmp_path / "cache") | {plan: plan.read_bytes()}
    assert holding(PASSWORD, files) == []
    # The same look finds what is there: the job's own, in the plan that carries it out.
    assert str(plan) in holding(PLAIN, files)
    assert str(plan) in holding(TOKEN, files)
    assert said(lab, "logs", "train").strip() == f"given-{len(TOKEN)}"


def test_the_api_answers_without_them(lab: Lab, tmp_path: Path) -> None:
    """Runs, plans, events, resources: whoever may read the state may not have read the tree."""
    gate = tmp_path / "gate"
    gate.touch()
    lab.declare(FLEET, HELD, CLONED, runs(gate))
    assert lab.run("apply", "-y").returncode == 3
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = lab.start("serve", "--listen", f"127.0.0.1:{port}")
    root = f"http://127.0.0.1:{port}/api/v1"
    plans = json.loads(_get(f"{root}/plans"))
    answers = [_get(f"{root}/{path}") for path in ("runs", "events", "resources", "runs/train")]
    answers += [_get(f"{root}/plans/{one['plan']}") for one in plans]
    server.terminate()
    _, log = lab.finish(server)
    assert '"resource_changes"' in answers[-1]
    assert "HF_TOKEN" in answers[-1], "the variable is told, and not its value"
    for text in (*answers, log):
        assert PASSWORD not in text
        assert TOKEN not in text
        assert PLAIN not in text, "the values of env are withheld as a whole"


def _get(url: str) -> str:
    deadline = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return str(answer.read().decode())
        except OSError:
            assert time.monotonic() < deadline, f"{url} does not answer"
            time.sleep(0.1)


def test_no_process_of_ours_is_started_with_one(lab: Lab, tmp_path: Path) -> None:
    """Arguments are everybody's to read: of every process that comes up during an apply."""
    gate = tmp_path / "gate"
    lab.declare(FLEET, HELD, CLONED, runs(gate))
    watch = _Arguments()
    with watch:
        apply = lab.start("apply", "-y")
        deadline = time.monotonic() + 60
        while not (lab.ledger.exists() and "running" in said(lab, "ps")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        gate.touch()
        code, _ = lab.finish(apply)
    assert code == 3
    seen = b"\n".join(watch.seen)
    assert str(lab.state).encode() in seen, "agents were among them"
    for secret in (PASSWORD, TOKEN, PLAIN):
        assert secret.encode() not in seen


class _Arguments:
    """Reads the arguments of all processes again and again."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.is_set():
            for process in os.listdir("/proc"):  # noqa: PTH208 -- thousands, many times
                if process.isdecimal():
                    with contextlib.suppress(OSError):
                        self.seen.add(Path("/proc", process, "cmdline").read_bytes())
            self._end.wait(0.01)
