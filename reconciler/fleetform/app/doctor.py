"""
Looks at what clouds need on this machine, and installs what is missing.

A process without it becomes no controller of hosts on clouds: no process would create or release them from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetform.app.problems import Problem
from fleetform.model.figures import first_of
from fleetform.model.instance import CLOUDS
from fleetform.model.scaling import places_with_offers
from fleetform.model.volume import DISK
from fleetform.providers.contract.errors import PermanentError, ProviderError
from fleetform.providers.contract.tools import ToolCheck, ToolChecker
from fleetform.providers.registry import provider
from fleetform.spec.checks.hosts import provider_of

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Plan
    from fleetform.model.scheduler_state import SchedulerState
    from fleetform.spec.desired import Desired

__all__ = ["check_tools", "install_tools", "places_of", "require_tools"]

_NAMED_MAX = 3
"""Fleets and volumes in a message; the others are counted."""


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


def require_tools(workspace: Workspace, plan: Plan | None = None) -> None:
    """
    Make sure that this process can control all hosts and disks: those of the ledger, and those of a plan to be entered.

    Raises:
        Problem: This machine lacks what a cloud needs; it says what to install.
    """
    book = workspace.read(lambda reader: reader.read_book([]), None)
    found = [*(() if book is None else _in_ledger(book)), *(() if plan is None else _in_plan(plan))]
    for name in sorted({cloud for cloud, _ in found} & CLOUDS):
        try:
            _checker(name, workspace.state, workspace.environment.uid).require_tools()
        except PermanentError as problem:
            what = first_of(sorted({one for cloud, one in found if cloud == name}), _NAMED_MAX)
            raise Problem(
                f"this machine cannot control {what}: {problem}",
                f"{problem.advice}, then run this command again",
            ) from problem


def _in_ledger(book: SchedulerState) -> Iterator[tuple[str, str]]:
    """Yield the provider of each fleet that has hosts or may have some, and of each disk, with its address."""
    yield from ((one.provider, f"fleet/{one.fleet}") for one in book.instances)
    yield from ((one.host.provider, f"fleet/{name}") for name, one in book.scaling.items())
    yield from ((one.request["provider"], f"volume/{name}") for name, one in book.disks.items())


def _in_plan(plan: Plan) -> Iterator[tuple[str, str]]:
    for step in plan.steps:
        places = [*places_with_offers(step.arguments), step.arguments.get(DISK) or {}]
        yield from ((one["provider"], str(step.resource)) for one in places if "provider" in one)


def _checker(name: str, state: Path, environment_uid: str) -> ToolChecker:
    found = provider(name, state=state, environment_uid=environment_uid)
    assert isinstance(found, ToolChecker), f"provider {name} says nothing of its tools"
    return found
