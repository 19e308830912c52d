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
import re
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fleetform.cli.main import ROWS
from integration.ledger.lab import FLEET, PATIENCE_SECONDS, Lab, task

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


# What is printed of the ledger, of other commits and of plans: a pipeline's output is a log that
# many read. Each command of the program is here or below.
SHOWING: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "validate": ((), ("--format", "json"), ("--format", "sarif"), ("--format", "junit")),
    "plan": ((), ("--json",), ("--markdown",), ("--refresh",)),
    "apply": (("-y", "--json-into", "/dev/stdout"),),
    "destroy": ((),),
    "ps": (("--all",), ("--all", "--json")),
    "why": (("train",), ("train", "--json")),
    "events": ((), ("--json",), ("train",)),
    "drift": ((), ("--json",)),
    "history": ((), ("--json",)),
    "cost": ((), ("--json",), ("train",)),
    "doctor": ((),),
    "show": (("last",), ("last", "--json"), ("last", "--markdown"), ("kept.plan", "--json")),
    "diff": (
        ("HEAD~1", "HEAD"),
        ("HEAD~1", "HEAD", "--json"),
        ("HEAD~1",),
        ("train", "other"),
        ("train", "other", "--json"),
    ),
    "blame": (("train",), ("train", "--json"), ("train", "--events")),
    "fleet": (
        ("list", "--json"),
        ("show", "local"),
        ("show", "local", "--json"),
        ("check",),
        ("check", "--json"),
    ),
    "volume": (("list",), ("list", "--json"), ("list", "--snapshots", "--json")),
    "agent": (("list", "--json"),),
    "lock": (("list", "--json"), ("show", "--json")),
    "controller": (("show", "--json"),),
    "status": ((), ("--json",)),
    "emergency": (("list", "--json"),),
    "state": (("verify",), ("verify", "--json"), ("rebuild", "--dry-run")),
}

_OWN_FILE = "shows an edit of a file of the tree to whoever makes it, in the words of that file"
_NO_VALUES = "reads no document and no ledger"

NOT_SHOWING: Mapping[str, str] = {
    **dict.fromkeys(("drain", "undrain", "scale", "submit", "keep", "stop", "rerun"), _OWN_FILE),
    **dict.fromkeys(("set", "import", "fmt", "lsp"), _OWN_FILE),
    **dict.fromkeys(("explain", "schema", "completion", "version", "init"), _NO_VALUES),
    "render": "prints the tree to be read again as the same resources",
    "convert": "writes the document that another one comes to",
    "logs": "prints what the job printed, which is the job's author's to decide",
    "exec": "prints what a command in the job prints, which its user may read there anyway",
    "attach": "prints what the job printed, as `logs` does",
    "shell": "prints what its user types and reads in a job of their own",
    "proxy": "carries the bytes of an SSH session of its user",
    "offer": "prints rows of a catalogue only; of documents it reads what narrows them",
    "ssh-config": "prints paths and host names only",
    "ssh": "becomes the user's own ssh, and prints nothing itself",
    "serve": "has a test of its own below, with its API",
}


def test_each_command_is_looked_at_or_has_a_reason() -> None:
    """A new command cannot be forgotten here."""
    assert not SHOWING.keys() & NOT_SHOWING.keys()
    assert {row.name for row in ROWS} == SHOWING.keys() | NOT_SHOWING.keys()


def _commit(lab: Lab) -> None:
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "x")):
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *arguments], cwd=lab.tree, check=True, timeout=30)


def _secret_runs(token: str, priority: int = 1) -> list[str]:
    env = f"{{HF_TOKEN: {token}, A_SECRET: 'sensitive:{token}', NOTE: {PLAIN}}}"
    more = f"env: {env}\nresources: {{cpu: 1}}\npriority: {priority}\n"
    address = f": https://bot:{token}@git.example.org/x"
    sweep = task("grid", ": $T", more=f"matrix: {{api_token: [{token}]}}\nresources: {{cpu: 1}}\n")
    return [task("train", address, more=more), task("other", f"{address}/y", more=more), sweep]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, dict[str, str]]]:
    """What each command prints where something was applied, was changed and is held."""
    lab = Lab(tmp_path_factory.mktemp("shown") / "lab")
    lab.declare(FLEET, HELD, CLONED, *_secret_runs(f"{TOKEN}-1"))
    _commit(lab)
    assert lab.run("apply", "-y").returncode == 3
    found: dict[str, str] = {}
    lab.declare(FLEET, HELD, CLONED, *_secret_runs(TOKEN, priority=2))
    _commit(lab)
    assert lab.run("plan", "--out", "kept.plan").returncode == 0
    # What changes comes last.
    order = sorted(SHOWING, key=lambda name: name in {"apply", "destroy"})
    for name in order:
        for arguments in SHOWING[name]:
            found[" ".join((name, *arguments))] = said(lab, name, *arguments)
    yield lab, found
    lab.close()


def test_nothing_that_is_shown_has_a_secret(printed: tuple[Lab, dict[str, str]]) -> None:
    """Of what is new, changed, held and done; before an apply and after it."""
    _, found = printed
    # That something was looked at: these show the variable and the version of what it holds.
    for name in ("plan --json", "blame train", "diff HEAD~1 HEAD", "show last --json"):
        assert "HF_TOKEN" in found[name], found[name]
        assert "sensitive:" in found[name]
    assert [name for name, text in found.items() if TOKEN in text or PASSWORD in text] == []


def test_nothing_that_is_shown_has_the_key(printed: tuple[Lab, dict[str, str]]) -> None:
    """With the environment's uid weak secrets could be found from their versions."""
    lab, found = printed
    assert [name for name, text in found.items() if lab.uid in text] == []


def test_what_nobody_needs_is_kept_nowhere(lab: Lab, tmp_path: Path) -> None:
    """Ledger, its journal, plans, logs, the cache of readings, and the file of a plan."""
    gate = tmp_path / "gate"
    gate.touch()
    lab.declare(FLEET, HELD, CLONED, runs(gate))
    plan = tmp_path / "kept.plan"
    assert lab.run("plan", "--out", str(plan)).returncode == 0
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
    server = lab.start("serve", "--listen", "127.0.0.1:0")
    assert server.stdout is not None
    begin = ""
    while (found := re.search(r"http://\S+/api/v1", begin)) is None:
        begin += server.stdout.readline() or pytest.fail(begin)
    root = found[0]
    plans = json.loads(_get(f"{root}/plans"))["items"]
    answers = [_get(f"{root}/{path}") for path in ("runs", "events", "resources", "runs/train")]
    answers += [_get(f"{root}/{path}") for path in ("environments", "resources/run/train")]
    answers += [_get(f"{root}/plans/{one['plan']}") for one in plans]
    server.terminate()
    _, rest = lab.finish(server)
    assert '"resource_changes"' in answers[-1]
    assert "HF_TOKEN" in answers[-1], "the variable is told, and not its value"
    for text in (*answers, begin, rest):
        assert PASSWORD not in text
        assert TOKEN not in text
        assert PLAIN not in text, "the values of env are withheld as a whole"
        assert lab.uid not in text, "it is the key of what is sealed"


def _get(url: str) -> str:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
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
        deadline = time.monotonic() + PATIENCE_SECONDS
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
