"""
Which provider makes a fleet's hosts, by name; loaded when it is asked for.

Ours stand in the table. Anybody else's is an entry point of the group `fleetform.providers`
whose object is called the same way; a name of ours cannot be taken over by one.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.contract.hosts import HostProvider
from fleetform.providers.contract.stacks import StackRecords

if TYPE_CHECKING:
    from datetime import datetime
    from importlib.metadata import EntryPoints

    from fleetform.providers.offers.catalogue import RegionOffers

ENTRY_POINT_GROUP = "fleetform.providers"

_OFFERS = {"aws": "fleetform.providers.pulumi.aws.account_offers:region_offers"}

_OURS = {
    "aws": "fleetform.providers.pulumi.aws.hosts:AwsHosts",
    "local": "fleetform.providers.local.hosts:LocalHosts",
    "ssh": "fleetform.providers.ssh.hosts:SshHosts",
}

_CLOUDS = frozenset(_OFFERS)
"""Their hosts are created through stacks."""

MakeProvider = Callable[[Path, str], HostProvider]
"""Called with the state folder and the environment's uid."""

MakeCloud = Callable[[Path, str, StackRecords], HostProvider]


def provider(
    name: str, *, state: Path, environment_uid: str, stacks: StackRecords | None = None
) -> HostProvider:
    """
    Make the provider `name` for one environment.

    `stacks` has the records of the stacks of clouds; None: they are files of the state folder.

    Raises:
        PermanentError: There is none of that name, or it cannot be loaded.
    """
    try:
        make = _load(name)
    except (ImportError, AttributeError) as error:
        raise PermanentError(
            f"provider {name} cannot be loaded: {error}", advice="reinstall its package"
        ) from error
    if name in _CLOUDS and stacks is not None:
        return cast("MakeCloud", make)(state, environment_uid, stacks)
    return make(state, environment_uid)


def region_offers(backend: str, region: str, now: datetime) -> RegionOffers:
    """
    Ask a cloud for what it offers in a region now.

    Raises:
        ProviderError: It does not answer, or refuses.
    """
    module, _, attribute = _OFFERS[backend].partition(":")
    ask = getattr(importlib.import_module(module), attribute)
    return cast("RegionOffers", ask(region, now))


def environment_variables(providers: Iterable[str]) -> tuple[str, ...]:
    """Name the environment variables that these providers read, sorted."""
    names: set[str] = set()
    for name in providers:
        # A package that cannot be loaded is reported where a fleet uses its provider.
        with contextlib.suppress(ImportError, AttributeError, PermanentError):
            names.update(getattr(_load(name), "environment_variables", ()))
    return tuple(sorted(names))


def provider_names() -> tuple[str, ...]:
    """List what `provider` knows, sorted."""
    return tuple(sorted({*_OURS, *(point.name for point in _entry_points())}))


def _load(name: str) -> MakeProvider:
    if name in _OURS:
        module, _, attribute = _OURS[name].partition(":")
        return cast("MakeProvider", getattr(importlib.import_module(module), attribute))
    for point in _entry_points():
        if point.name == name:
            return cast("MakeProvider", point.load())
    raise PermanentError(
        f"there is no provider {name}",
        advice=f"use one of {', '.join(provider_names())}, or install the package of that provider",
    )


def _entry_points() -> EntryPoints:
    # Reading what is installed takes 20 ms; most environments need none of it.
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINT_GROUP)
