"""
Warn of names of regions and instance types of AWS that this release of fleetform does not know.

These are warnings and not errors: AWS adds names at any time, and `fleetform offer --refresh` asks it for those of an
account. Which type a region has is not compared, because that is only known of regions that were asked.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

from fleetform.spec.clouds.names import REGIONS, instance_types
from fleetform.spec.findings import Level, Problem
from fleetform.spec.kinds.base import contradiction
from fleetform.spec.names import EXPRESSION_MARK, nearest, region_of
from fleetform.spec.quantities.ranges import shown

_CLOUD = "aws"
_REGIONS = frozenset(REGIONS[_CLOUD])


def unknown_regions(field: str, regions: Iterable[str]) -> Iterator[Problem]:
    """One warning for each name in `field` that is not known as a region; `regions` choose among offers, `region` does not."""
    for name in _unknown(regions, _REGIONS):
        asked = [name] if field == "regions" else []
        yield _problem("unknown-region", field, name, _REGIONS, asked)


def unknown_types(types: Iterable[str], regions: Sequence[str]) -> Iterator[Problem]:
    """One warning for each name in `instance_types` that is not known; `regions` are those to ask for it."""
    known = instance_types(_CLOUD) if types else frozenset()
    for name in _unknown(types, known):
        yield _problem("unknown-instance-type", "instance_types", name, known, regions)


def not_a_zone(field: str, name: str) -> Problem:
    """An error for a name that begins as one of a zone does."""
    region = region_of(name)
    what = "a region, not a zone" if name == region else "not the name of a zone"
    return contradiction(
        field, f"{shown(name)} is {what}.", f"Write a zone of the region, such as `{region}a`."
    )


def _unknown(names: Iterable[str], known: frozenset[str]) -> list[str]:
    return [one for one in names if one not in known and EXPRESSION_MARK not in one]


def _problem(
    code: str, field: str, name: str, known: frozenset[str], regions: Sequence[str]
) -> Problem:
    what = "a region" if code == "unknown-region" else "an instance type"
    close = _close(name, known)
    meant = f"Did you mean `{close}`?" if close else "Correct the name."
    options = "".join(f" --region {one}" for one in regions)
    asks = f" If AWS has `{name}`, run `fleetform offer --refresh{options}`." if regions else ""
    return Problem(
        code,
        (field,),
        f"`{name}` is not {what} of AWS that this release of fleetform knows.",
        f"{meant}{asks}",
        level=Level.WARNING,
        word=name,
    )


@functools.cache
def _close(name: str, known: frozenset[str]) -> str | None:
    # A comparison with all types takes milliseconds, and many documents may have one name.
    return nearest(name, known)
