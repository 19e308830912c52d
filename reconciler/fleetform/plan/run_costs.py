"""
What the runs that a plan submits cost at most: the price of the dearest hosts that they may get, for as long as all attempts may take.

An upper bound for people, and no part of what is decided. Where there is none, because a time, a number of attempts or a price has no
limit, it says so. A run may share its host, get a cheaper one and end earlier, so it costs less as a rule. Hosts of one's own cost nothing here, as in
`fleetform cost`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fleetform.model.instance import CLOUDS
from fleetform.model.offers import offer_text
from fleetform.model.verbs import Verb
from fleetform.plan.draft import LEAVING, PlanDraft
from fleetform.plan.offers import possible_offers
from fleetform.spec.checks.hosts import provider_of
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import split_element

__all__ = ["run_costs"]

_HOUR_SECONDS = 3600


class _Bound(NamedTuple):
    """
    What one run costs at most.

    `attempts` are all that it may have; 0: only `within_seconds` limits their time. `unbounded` is why there is no limit; empty: there is one.
    """

    micros: int = 0
    dearest: str = ""
    attempts: int = 0
    within_seconds: int = 0
    spot: bool = False
    unbounded: str = ""


class _Host(NamedTuple):
    """The dearest host that a fleet has or may create; `unknown` is one whose price is not known, or empty. `spot`: it may have spot instances."""

    price_micros: int
    name: str
    unknown: str = ""
    spot: bool = False


def run_costs(draft: PlanDraft) -> dict[str, dict[str, Any]]:
    """
    Return what each run, sweep or array that may start on a cloud costs at most.

    Returns:
        By name, `runs`: how many are submitted; `micros`: micro-dollars for all of them, and `elements` those of each where they
        differ. `spot`: some hosts may be spot instances, whose prices change. Where it is the same for all: `dearest`, the host that this is the price of; `attempts`, how many each may have, or
        `within_seconds`, the time in which attempts begin, if that is the limit. Without a limit, `unbounded` says why in place of all that.
    """
    hosts: dict[str, _Host] = {}
    found: dict[str, dict[str, _Bound]] = {}
    for change in draft.changes.values():
        for step in change.steps:
            if step.verb != Verb.RUN_SUBMIT or step.resource not in draft.desired.resources:
                continue
            document = draft.desired.resources[step.resource].document
            bound = _bound(draft, document, hosts)
            if bound is not None:
                parent = split_element(step.resource.name)[0]
                found.setdefault(parent, {})[step.resource.name] = bound
    return {name: _summary(found[name]) for name in sorted(found)}


def _summary(bounds: Mapping[str, _Bound]) -> dict[str, Any]:
    every = list(bounds.values())
    runs = {"runs": len(every)}
    if why := next((one.unbounded for one in every if one.unbounded), ""):
        return {**runs, "unbounded": why}
    micros = {name: one.micros for name, one in bounds.items()}
    facts: dict[str, set[Any]] = {
        "dearest": {one.dearest for one in every},
        "attempts": {one.attempts for one in every},
        "within_seconds": {one.within_seconds for one in every},
    }
    common = {
        name: value
        for name, values in facts.items()
        if len(values) == 1
        for value in values
        if value
    }
    spot = {"spot": True} if any(one.spot for one in every) else {}
    own = {"elements": micros} if len(set(micros.values())) > 1 else {}
    return {**runs, "micros": sum(micros.values()), **common, **spot, **own}


def _bound(draft: PlanDraft, document: Mapping[str, Any], hosts: dict[str, _Host]) -> _Bound | None:
    """Return what a run costs at most; None: no fleet on a cloud may run it."""
    fleets = [name for name in document.get("fleets") or _fleets(draft) if _is_bought(draft, name)]
    if not fleets:
        return None
    limit, retry = document.get("max_duration"), document.get("retry")
    if limit is None:
        return _Bound(unbounded="`max_duration` is not set")
    # Here: most plans have no runs on clouds.
    from fleetform.model.run import STOP_GRACE_SECONDS

    # What is stopped at its limit has this time to end.
    attempt = int(limit) + int(document.get("stop_duration", STOP_GRACE_SECONDS))
    attempts, window = _attempts(retry)
    # Attempts follow each other, and only the last one ends outside of the window.
    limits = [
        *(() if window is None else (window + attempt,)),
        *(() if attempts is None else (attempts * attempt,)),
    ]
    if not limits:
        return _Bound(unbounded="`retry` has neither `max_attempts` nor `duration`")
    seconds = min(limits)
    for name in fleets:
        if name not in hosts:
            hosts[name] = _dearest(draft, name)
    if unknown := next((hosts[name].unknown for name in fleets if hosts[name].unknown), ""):
        return _Bound(unbounded=unknown)
    dearest = max((hosts[name] for name in fleets), key=lambda one: one.price_micros)
    spot = any(hosts[name].spot for name in fleets)
    micros = -(-dearest.price_micros * int(document.get("nodes", 1)) * seconds // _HOUR_SECONDS)
    if attempts is not None and attempts * attempt == seconds:
        return _Bound(micros, dearest.name, attempts, spot=spot)
    return _Bound(micros, dearest.name, within_seconds=window or 0, spot=spot)


def _attempts(retry: Mapping[str, Any] | None) -> tuple[int | None, int | None]:
    """Return how many attempts a run may have, and in how many seconds they begin; None: without limit."""
    if not retry:
        return 1, None
    # A run that waits for capacity has not begun an attempt.
    if set(retry.get("on", ())) <= {"no-capacity"} and not retry.get("requeue_exit_codes"):
        return 1, None
    return retry.get("max_attempts"), retry.get("duration")


def _fleets(draft: PlanDraft) -> list[str]:
    """Name all fleets that there are once the plan is applied."""
    declared = {key for key in draft.desired.resources if key.kind == "fleet"}
    there = {key for key in draft.present if key.kind == "fleet"}
    going = {key for key, change in draft.changes.items() if change.action in LEAVING}
    return sorted(key.name for key in declared | (there - going))


def _is_bought(draft: PlanDraft, fleet: str) -> bool:
    return provider_of(_document(draft, fleet)) in CLOUDS


def _document(draft: PlanDraft, fleet: str) -> Mapping[str, Any]:
    key = ResourceKey("fleet", fleet)
    if key in draft.desired.resources:
        return draft.desired.resources[key].document
    return draft.present[key].parsed if key in draft.present else {}


def _dearest(draft: PlanDraft, fleet: str) -> _Host:
    there = [one.endpoint for one in draft.live.instances if one.fleet == fleet and one.is_created]
    terms: list[Mapping[str, Any]] = [*there, *possible_offers(draft, fleet)]
    found = _Host(0, "", f"fleet {fleet} has no offer")
    for one in terms:
        name = offer_text(one) if "instance_type" in one else f"a host of fleet {fleet}"
        price = one.get("price_micros")
        if price is None:
            return _Host(0, name, f"the price of {name} is unknown")
        if found.unknown or price > found.price_micros:
            found = _Host(int(price), name)
    return found._replace(spot=any(one.get("spot") for one in terms))
