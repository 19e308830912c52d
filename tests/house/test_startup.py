"""
Start-up budgets, by what is imported and not by the clock: a busy machine fails no test.

What a library costs was measured: SQLAlchemy 190 ms, pydantic with a model 110, Alembic
290, rich 60, asyncio 50. A command may only load what it uses.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {
    "alembic",
    "asyncio",
    "fastapi",
    "pydantic",
    "rich",
    "sqlalchemy",
    "starlette",
    "uvicorn",
    "yaml",
}

PROBE = """
import json, sys
from fleetform.cli.main import main
code = main(sys.argv[1:])
sys.stdout.flush()
print(json.dumps({"code": code, "modules": sorted(sys.modules)}), file=sys.stderr)
"""


def loaded_by(*arguments, cwd, state):
    """Run a command in an interpreter of its own; returns its exit code and what it imported."""
    finished = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        cwd=cwd, env={"PATH": "/usr/bin:/bin", "FLEETFORM_STATE_HOME": str(state), "HOME": str(state)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = json.loads(finished.stderr.splitlines()[-1])
    return told["code"], set(told["modules"]), finished


def tops(modules):
    return {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize(
    "arguments", [["version"], ["--help"], ["completion", "bash"], ["nonsense"]]
)
def test_what_answers_at_once_imports_nothing_heavy(arguments, tmp_path):
    """A shell asks for these on a key press."""
    _code, modules, _finished = loaded_by(*arguments, cwd=tmp_path, state=tmp_path)
    assert tops(modules) & HEAVY == set()


def test_help_loads_no_command(tmp_path):
    """The table has a line for each, so none needs to be imported to be listed."""
    _code, modules, _finished = loaded_by("--help", cwd=tmp_path, state=tmp_path)
    assert [name for name in modules if name.startswith("fleetform.cli.commands.")] == []


@pytest.fixture
def environment(tmp_path):
    """An environment as `init` makes it."""
    loaded_by("init", "lab", cwd=tmp_path, state=tmp_path / "state")
    return tmp_path / "lab"


def test_a_plan_loads_no_database_and_no_screen(environment, tmp_path):
    """Planning reads files and the ledger's snapshot: no ORM, no event loop, no server."""
    code, modules, finished = loaded_by("plan", cwd=environment, state=tmp_path / "state")
    assert code == 0, finished.stderr
    assert tops(modules) & (HEAVY - {"pydantic", "yaml"}) == set()


def test_ps_loads_no_database_either(environment, tmp_path):
    """Reading what is there goes through one small module."""
    code, modules, finished = loaded_by("ps", cwd=environment, state=tmp_path / "state")
    assert code in {0, 1}, finished.stderr
    assert tops(modules) & (HEAVY - {"pydantic", "yaml"}) == set()
