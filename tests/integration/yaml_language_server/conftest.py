"""An editor in an environment that `init` made, with the real YAML language server behind it."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fleetform.cli.main import main
from integration.yaml_language_server.editor import Editor
from integration.yaml_language_server.session import Session

HERE = Path(__file__).parent

# The server's package asks for 22; all that these tests use of it runs in 20 as well.
NODE_MIN = 20

# What the server may ask of others is switched off: no catalogue, no download of schemas.
SETTINGS = {
    "yaml": {
        "validate": True,
        "hover": True,
        "completion": True,
        "schemaStore": {"enable": False},
        "kubernetesCRDStore": {"enable": False},
    },
    "http": {"proxy": "", "proxyStrictSSL": True},
}


@pytest.fixture(scope="session")
def server(need: Callable[[str, bool, str], None]) -> list[str]:
    """What is typed to start the server, of the very version that the lock names."""
    version = json.loads((HERE / "package.json").read_text())["dependencies"][
        "yaml-language-server"
    ]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "fleetform" / "tests" / f"yaml-language-server-{version}"
    program = folder / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"
    node = shutil.which("node")
    need("yaml-language-server", program.exists(), "`sh tests/services.sh` installs it, with npm")
    need("yaml-language-server", _is_new(node), f"it runs in node {NODE_MIN} or newer")
    return [str(node), str(program), "--stdio"]


def _is_new(node: str | None) -> bool:
    if node is None:
        return False
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return int(told.strip().lstrip("v").partition(".")[0]) >= NODE_MIN


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment as `fleetform init` leaves it, schema and settings included."""
    root = tmp_path_factory.mktemp("editor") / "lab"
    assert main(["init", str(root)]) == 0
    return root


@pytest.fixture(scope="module")
def editor(server: list[str], environment: Path) -> Iterator[Editor]:
    """An editor that has opened the environment; one server serves all tests of a module."""
    said = json.loads((environment / ".vscode" / "settings.json").read_text(encoding="utf-8"))
    settings = {**SETTINGS, "yaml": {**SETTINGS["yaml"], "schemas": said["yaml.schemas"]}}
    session = Session(server, environment, settings)
    yield Editor(session, itertools.count(1))
    session.close()
