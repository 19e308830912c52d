"""What a contribution adds has its row in each table, and CONTRIBUTING.md names files that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from fleetform.agents.host.runtimes import RUNTIMES
from fleetform.plan.kinds.fleet import places_of
from fleetform.providers.registry import provider_names
from fleetform.spec.fields import FLEET_PROVIDERS
from fleetform.spec.kinds.container import Runtime
from fleetform.spec.kinds.fleet import SOURCES

HOUSE = Path(__file__).parents[2]
_RECIPES = "## Add a field, a kind, a provider, a command or a runtime\n"


def test_the_files_of_the_recipes_exist():
    """A contributor finds each file that a recipe names; `<name>` is one of several."""
    text = (HOUSE / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipes = text.partition(_RECIPES)[2].partition("\n## ")[0]
    named = set(re.findall(r"`([\w./<>-]+\.(?:py|md|yaml|toml)|\.importlinter)`", recipes))
    assert len(named) > 20, "the heading or the pattern is wrong"
    roots = (HOUSE, *HOUSE.glob("*/fleetform"))
    lost = [
        path
        for path in sorted(named)
        if not any(any(root.glob(re.sub("<[a-z]+>", "*", path))) for root in roots)
    ]
    assert lost == []


def test_a_fleet_selects_each_provider_by_a_field():
    """A supported source of hosts names a provider of the registry, and each provider has a source."""
    supported = {field for field, source in SOURCES.items() if not source.unsupported}
    assert set(FLEET_PROVIDERS) == supported
    assert set(FLEET_PROVIDERS.values()) == set(provider_names())


def test_a_provider_gets_what_its_field_says(monkeypatch: pytest.MonkeyPatch):
    """Hosts of a provider elsewhere are numbered, and its field is how they are created."""
    monkeypatch.setitem(FLEET_PROVIDERS, "islands", "island")
    fleet = {"islands": {"sea": "north"}, "nodes": {"min": 2, "max": 2}}
    assert places_of("gpus", fleet) == [
        {"name": f"gpus-{number}", "number": number, "provider": "island", "endpoint": {"sea": "north"}}
        for number in range(2)
    ]  # fmt: skip


def test_a_run_selects_each_runtime_by_name():
    """The agent has each runtime of the language but containers, which are not supported yet."""
    assert set(RUNTIMES) == set(get_args(Runtime)) - {"container"}
