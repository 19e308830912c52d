"""
Start-up budgets, by what is imported and not by the clock: a busy machine fails no test.

What a library costs was measured: SQLAlchemy 190 ms, pydantic with a model 110, rich 60,
asyncio 50, and each data class more than 1, as much as all its module besides. A command may
only load what it uses.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys

import pytest

import applied

CLOUD = {"boto3", "botocore", "grpc", "pulumi", "pulumi_aws", "pulumi_gcp"}

HEAVY = {
    *CLOUD,
    "asyncio",
    "fastapi",
    "pydantic",
    "rich",
    "ruamel",
    "sqlalchemy",
    "starlette",
    "uvicorn",
    "yaml",
}

PROBE = """
import dataclasses, json, sys
from fleetform.cli.main import main
code = main(sys.argv[1:])
sys.stdout.flush()
classes = {
    f"{name}.{value.__name__}"
    for name, module in sys.modules.items()
    if name.startswith("fleetform.")
    for value in vars(module).values()
    if isinstance(value, type) and dataclasses.is_dataclass(value) and value.__module__ == name
}
told = {"code": code, "modules": sorted(sys.modules), "classes": sorted(classes)}
print(json.dumps(told), file=sys.stderr)
"""


def loaded_by(*arguments, cwd, state):
    """Run a command in an interpreter of its own; returns its exit code and what it imported."""
    finished = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        cwd=cwd, env={"PATH": "/usr/bin:/bin", "FLEETFORM_STATE_HOME": str(state), "HOME": str(state)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = json.loads(finished.stderr.splitlines()[-1])
    finished.classes = told["classes"]
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


def loads(modules, *names):
    """Which of these modules, or of what lies below them, were imported."""
    return {
        module
        for module in modules
        if any(module == name or module.startswith(f"{name}.") for name in names)
    }


def test_the_version_is_known_without_asking_the_metadata(tmp_path):
    """Reading the metadata of the installed distribution takes longer than all the rest."""
    _code, modules, finished = loaded_by("version", cwd=tmp_path, state=tmp_path)
    assert loads(modules, "importlib.metadata") == set()
    assert finished.stdout.split()[1] == importlib.metadata.version("fleetform")


# What makes things happen, and no command that only looks has a use for.
ACTING = (
    "fleetform.agents.client",
    "fleetform.agents.protocol.messages",
    "fleetform.controllers",
    "fleetform.lifecycle",
    "fleetform.model.decision",
    "fleetform.providers.local",
    "fleetform.schedule",
)
# What a plan that changes runs asks to foretell which of them would start.
FORETELLING = ("fleetform.schedule", "fleetform.model.decision")
# What reads the language, and nobody needs who has nothing but the environment's uid to know.
LANGUAGE = (
    "fleetform.spec.kinds",
    "fleetform.spec.tree.read",
    "fleetform.spec.tree.load",
    "pydantic",
    "pydantic_core",
)


@pytest.fixture
def environment(tmp_path):
    """An environment as `init` makes it."""
    loaded_by("init", "lab", cwd=tmp_path, state=tmp_path / "state")
    return tmp_path / "lab"


@pytest.fixture
def finished_environment(tmp_path, monkeypatch):
    """An environment in which `train` has run to its end."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    train = 'type: task\nname: train\ncommands: ["true"]\n'
    root = applied.write_tree(tmp_path / "lab", applied.FLEET, train)
    applied.enter(root)
    applied.run_all(root, exit_codes={})
    return root


def test_a_plan_loads_no_database_and_no_screen(environment, tmp_path):
    """Planning reads files and the ledger's snapshot: no ORM, no event loop, no server."""
    code, modules, finished = loaded_by("plan", cwd=environment, state=tmp_path / "state")
    assert code == 0, finished.stderr
    assert tops(modules) & (HEAVY - {"pydantic", "yaml"}) == set()
    assert loads(modules, *ACTING) - loads(modules, *FORETELLING) == set()


def test_a_plan_that_changes_no_run_foretells_nothing(finished_environment, tmp_path):
    """The scheduler is asked only where there is something to start."""
    code, modules, finished = loaded_by("plan", cwd=finished_environment, state=tmp_path / "state")
    assert code == 0, finished.stderr
    assert loads(modules, *ACTING) == set()


@pytest.mark.parametrize("verb", ["plan", "validate"])
def test_what_is_known_from_before_needs_no_models(verb, environment, tmp_path):
    """A tree that did not change since the last command is neither parsed nor validated again."""
    for _ in range(2):
        code, modules, finished = loaded_by(verb, cwd=environment, state=tmp_path / "state")
        assert code == 0, finished.stderr
    assert tops(modules) & (HEAVY - {"yaml"}) == set()
    acting = loads(modules, *ACTING) - loads(modules, *FORETELLING)
    assert acting | loads(modules, "fleetform.spec.tree.reader") == set()


def test_one_file_that_is_known_needs_no_models(tmp_path):
    """A file outside of any environment is known from before as well."""
    (tmp_path / "one.yaml").write_text("type: task\nname: one\ncommands: [echo]\n")
    for _ in range(2):
        code, modules, finished = loaded_by(
            "validate", "one.yaml", cwd=tmp_path, state=tmp_path / "state"
        )
        assert code == 0, finished.stderr
    assert tops(modules) & (HEAVY - {"yaml"}) == set()


def test_a_plan_of_what_was_applied_loads_no_runs(finished_environment, tmp_path):
    """It knows of a run its state: no protocol of drivers, no template, no job is made."""
    code, modules, finished = loaded_by("plan", cwd=finished_environment, state=tmp_path / "state")
    assert code == 0, finished.stderr
    assert tops(modules) & (HEAVY - {"pydantic", "yaml"}) == set()
    assert loads(modules, *ACTING, "fleetform.model.ports", "fleetform.model.run") == set()


@pytest.mark.parametrize(
    "arguments", [["ps"], ["ps", "--json"], ["why", "train"], ["logs", "train"]]
)
def test_looking_at_runs_loads_neither_database_nor_language(
    arguments, finished_environment, tmp_path
):
    """Of the tree they need the environment's uid, and of the ledger rows."""
    code, modules, finished = loaded_by(
        *arguments, cwd=finished_environment, state=tmp_path / "state"
    )
    assert code == 0, finished.stderr
    assert tops(modules) & (HEAVY - {"yaml"}) == set()
    # The table of kinds is names alone: the models are in modules below it.
    assert loads(modules, *ACTING, *LANGUAGE) - {"fleetform.spec.kinds"} == set()


@pytest.mark.parametrize("listen", [[], ["--listen", "127.0.0.1:0"]], ids=["alone", "listening"])
def test_serve_loads_no_web_server(listen, tmp_path):
    """The API is answered by another process, which alone pays for what that takes."""
    root = applied.write_tree(tmp_path / "lab")
    code, modules, finished = loaded_by("serve", "--once", *listen, cwd=root, state=tmp_path)
    assert code == 0, finished.stderr
    assert tops(modules) & {"anyio", "fastapi", "starlette", "uvicorn"} == set()
    assert loads(modules, "fleetform.api.app", "fleetform.api.server") == set()


@pytest.mark.parametrize("arguments", [["apply", "-y"], ["serve", "--once"]])
def test_what_needs_no_cloud_loads_none(arguments, tmp_path):
    """The extras of clouds are not installed everywhere."""
    root = applied.write_tree(tmp_path / "lab")
    code, modules, finished = loaded_by(*arguments, cwd=root, state=tmp_path)
    assert code == 0, finished.stderr
    assert tops(modules) & CLOUD == set()
    assert loads(modules, "fleetform.providers.pulumi") == set()


def test_a_caller_of_the_engine_loads_no_pulumi():
    """Its process does not serve the engine: the runner of the stack does."""
    rooms = "engine.stack, fleetform.providers.pulumi.recovery.recover"
    probe = f"import sys, fleetform.providers.pulumi.{rooms}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert tops(done.stdout.split()) & CLOUD == set()


@pytest.mark.parametrize(
    ("arguments", "classes_max"),
    [
        (["history"], 65),
        (["logs", "train"], 80),
        (["plan"], 115),
        (["ps"], 80),
        (["status"], 95),
        (["submit", "--help"], 90),
        (["validate"], 35),
        (["why", "train"], 80),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_makes_few_data_classes(arguments, classes_max, finished_environment, tmp_path):
    """Some new ones may come; a module with ten that the command does not use may not."""
    for _ in range(2):
        code, _modules, finished = loaded_by(
            *arguments, cwd=finished_environment, state=tmp_path / "state"
        )
        assert code == 0, finished.stderr
    assert len(finished.classes) <= classes_max, finished.classes
