"""
Reservations of one fleet: hosts that it does not have, and times at which too many want them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fleetform.spec.checks.hosts import hosts_of, nodes_max
from fleetform.spec.findings import Level, Problem
from fleetform.spec.names import counted, nearest
from fleetform.spec.references import Catalogue, Entry

_PERIODS = {"daily": 86_400, "weekly": 604_800}
# What never ends is longer than anything else.
_FOR_EVER = 1 << 62


def check_reservations(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """First what is wrong with one, then what is wrong between two."""
    fleets = catalogue.whole("fleet")
    by_fleet: dict[str, list[Entry]] = {}
    for entry in catalogue.of_kind("reservation"):
        document = entry.documents[0]
        if entry.key not in catalogue.broken and "fleet" in document:
            by_fleet.setdefault(document["fleet"], []).append(entry)
    for name, entries in by_fleet.items():
        fleet = fleets.get(name)
        if fleet is not None:
            for entry in entries:
                yield from ((entry, one) for one in _own(entry.documents[0], name, fleet))
        for one, two in itertools.combinations(entries, 2):
            if one.key != two.key and _clash(one.documents[0], two.documents[0], fleet):
                yield two, _problem(one)
                yield one, _problem(two)


def _own(document: Mapping[str, Any], name: str, fleet: Mapping[str, Any]) -> Iterator[Problem]:
    most = nodes_max(fleet)
    if most is not None and document.get("nodes", 0) > most:
        yield Problem(
            "never-placed",
            ("nodes",),
            f"`{name}` has {counted(most, 'host')} of the {document['nodes']} that are to be reserved.",
            "Reserve fewer, or remove the field to reserve all of them.",
            level=Level.WARNING,
        )
    if "ssh_config" not in fleet:
        return
    known = {host["hostname"].casefold(): host["hostname"] for host in hosts_of(fleet)}
    for host in document.get("hosts", ()):
        if host.casefold() not in known:
            close = nearest(host, known.values())
            yield Problem(
                "unknown-reference",
                ("hosts",),
                f"The fleet `{name}` has no host `{host}`.",
                f"Did you mean `{close}`?" if close else "",
                word=host,
            )


def _clash(one: Mapping[str, Any], two: Mapping[str, Any], fleet: Mapping[str, Any] | None) -> bool:
    return _share_hosts(one, two, fleet) and _share_time(one, two)


def _share_hosts(
    one: Mapping[str, Any], two: Mapping[str, Any], fleet: Mapping[str, Any] | None
) -> bool:
    if "hosts" in one and "hosts" in two:
        return bool(_folded(one["hosts"]) & _folded(two["hosts"]))
    counts = [_count(one), _count(two)]
    if None in counts:
        return True  # One of them is for the whole fleet.
    most = None if fleet is None else nodes_max(fleet)
    return most is not None and sum(count or 0 for count in counts) > most


def _folded(hosts: Sequence[str]) -> set[str]:
    return {host.casefold() for host in hosts}


def _count(document: Mapping[str, Any]) -> int | None:
    if "hosts" in document:
        return len(document["hosts"])
    count: int | None = document.get("nodes")
    return count


class _Span(NamedTuple):
    """From when to when it is first, and how long it is to the next time; None: it is once."""

    begin: int
    end: int
    period: int | None


def _span(document: Mapping[str, Any]) -> _Span:
    return _Span(
        document["begin"],
        document.get("end", _FOR_EVER),
        _PERIODS.get(document.get("repeat", "")),
    )


def _share_time(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    first, second = _span(one), _span(two)
    if first.period is None and second.period is None:
        return first.begin < second.end and second.begin < first.end
    if first.period is None:
        return _meets(second, first)
    if second.period is None:
        return _meets(first, second)
    # Both go on for ever, so that each distance between them comes that their periods can make:
    # multiples of what divides both.
    step = math.gcd(first.period, second.period)
    apart = (second.begin - first.begin) % step
    return apart < first.end - first.begin or apart + second.end - second.begin > step


def _meets(returning: _Span, once: _Span) -> bool:
    """Whether any return of the first falls into the second."""
    assert returning.period is not None, returning
    # The first return that is not over before the other begins.
    turns = max(0, (once.begin - returning.end) // returning.period + 1)
    return returning.begin + turns * returning.period < once.end


def _problem(other: Entry) -> Problem:
    return Problem(
        "reservations-overlap",
        ("begin",),
        f"The reservation `{other.key.name}` ({other.place.file}:{other.place.line}) reserves the same hosts at the same time.",
        "Move one of the two, or name different hosts in `hosts`.",
        at_key=True,
    )
