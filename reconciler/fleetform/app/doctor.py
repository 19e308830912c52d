"""Looks at what clouds need on this machine, and installs what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetform.app.problems import Problem
from fleetform.model.instance import CLOUDS
from fleetform.providers.contract.errors import PermanentError, ProviderError
from fleetform.providers.contract.tools import ToolCheck, ToolChecker
from fleetform.providers.registry import provider
from fleetform.spec.checks.hosts import provider_of

if TYPE_CHECKING:
    from fleetform.spec.desired import Desired

__all__ = ["check_tools", "install_tools", "places_of"]


def places_of(desired: Desired) -> dict[str, list[Mapping[str, Any]]]:
    """Return the account and region of each declared fleet on a cloud, by provider."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for key, one in desired.resources.items():
        name = provider_of(one.document) if key.kind == "fleet" else ""
        if name in CLOUDS:
            for region in one.document.get("regions", ()):
                place = {"account": one.document[name]["account"], "region": region}
                found.setdefault(name, []).append(place)
    return found


def check_tools(
    state: Path, environment_uid: str, places: Mapping[str, Sequence[Mapping[str, Any]]]
) -> tuple[ToolCheck, ...]:
    """Ask the provider of each cloud, with the places of its fleets."""
    return tuple(
        check
        for name in sorted(CLOUDS)
        for check in asyncio.run(
            _checker(name, state, environment_uid).check_tools(places.get(name, ()))
        )
    )


def install_tools(state: Path, environment_uid: str, report: Callable[[str], None]) -> None:
    """
    Install what the providers of clouds can install.

    Raises:
        Problem: It says why not, and what to do instead.
    """
    for name in sorted(CLOUDS):
        try:
            asyncio.run(_checker(name, state, environment_uid).install_tools(report))
        except ProviderError as problem:
            advice = problem.advice if isinstance(problem, PermanentError) else ""
            raise Problem(str(problem), advice) from problem


def _checker(name: str, state: Path, environment_uid: str) -> ToolChecker:
    found = provider(name, state=state, environment_uid=environment_uid)
    assert isinstance(found, ToolChecker), f"provider {name} says nothing of its tools"
    return found
