"""That pages install fleetform as it can be installed: from its repository, with extras that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from fleetform.app import api_server
from fleetform.spec.extras import install_extra

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MODULES = [
    file
    for folder in ("spec", "reconciler", "providers", "agents")
    for file in sorted((ROOT / folder).rglob("*.py"))
]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# A package index has no release of fleetform: a bare name would install nothing, or another's package.
_BARE = re.compile(r"pip install [\"']?fleetform(?! @)")
_FROM_HERE = re.compile(r"pip install [\"']?\.(?:\[(?P<extra>[a-z]+)\])?")
_EXTRA = re.compile(r"install_extra\([\"'](\w+)[\"']\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_installs_from_the_repository(page: Path) -> None:
    """No page installs a release, and each extra that a page names exists."""
    text = page.read_text(encoding="utf-8")
    assert not _BARE.findall(text)
    named = {found["extra"] for found in _FROM_HERE.finditer(text)} - {None}
    assert named <= EXTRAS.keys()


def test_messages_install_from_the_repository() -> None:
    """No message installs a release, and each extra that one names exists."""
    texts = {module: module.read_text(encoding="utf-8") for module in MODULES}
    assert not [module for module, text in texts.items() if _BARE.search(text)]
    named = {found[1] for text in texts.values() for found in _EXTRA.finditer(text)}
    assert {"aws", "lsp"} <= named <= EXTRAS.keys()


def test_the_advice_names_the_extra() -> None:
    """It can be copied into a shell."""
    assert install_extra("aws") == "in the clone of fleetform, run `pip install '.[aws]'`"


def test_the_tutorial_installs_the_api() -> None:
    """The tutorial calls `serve --listen`, so its first lines install the packages of the API."""
    found = _FROM_HERE.search((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8"))
    assert found is not None
    packages = {re.split(r"[^a-z]", wanted)[0] for wanted in EXTRAS[found["extra"]]}
    assert packages >= set(api_server._PACKAGES)
