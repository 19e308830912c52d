"""What a plan notes about runs that it does not change: unknown ones, and ones that stay aborted."""

from __future__ import annotations

from collections.abc import Iterable

from fleetform.model.plan import Plan
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import natural_order, split_element
from fleetform.views.element_names import shorten_elements
from fleetform.views.lines import printable

__all__ = ["names_text", "progressing", "still_aborted_text", "unknown_texts"]

NAMES_MAX = 10


def progressing(plan: Plan) -> tuple[ResourceKey, ...]:
    """Name the work in progress of which something is known."""
    unknown = {one["name"] for one in plan.annex.get("unknown", ())}
    return tuple(key for key in plan.progressing if not (key.kind == "run" and key.name in unknown))


def unknown_texts(plan: Plan) -> tuple[str, ...]:
    """Write `run/train is unknown: host local-0 does not answer`, one sentence for equal hosts."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for one in plan.annex.get("unknown", ()):
        alike.setdefault(tuple(one["hosts"]), []).append(one["name"])
    return tuple(_unknown_text(hosts, names) for hosts, names in alike.items())


def _unknown_text(hosts: tuple[str, ...], names: list[str]) -> str:
    are = "is" if len(names) == 1 else "are"
    which = f"{names_text(ResourceKey('run', name) for name in names)} {are} unknown"
    if not hosts:
        return f"{which}: `fleetform why {names[0] if len(names) == 1 else 'NAME'}`"
    if len(hosts) == 1:
        return f"{which}: host {printable(hosts[0])} does not answer"
    shown = ", ".join(map(printable, hosts[:NAMES_MAX]))
    more = f" and {len(hosts) - NAMES_MAX} more" if len(hosts) > NAMES_MAX else ""
    return f"{which}: hosts {shown}{more} do not answer"


def still_aborted_text(plan: Plan) -> str:
    """Write `run/down stays aborted unless it is run again: …`; empty where no run does."""
    names = plan.annex.get("still_aborted", ())
    if not names:
        return ""
    which = names_text(ResourceKey("run", name) for name in names)
    if len(names) == 1:
        return f"{which} stays aborted unless it is run again: `fleetform rerun {names[0]}`"
    return f"{which} stay aborted unless they are run again: `fleetform rerun NAME`"


def names_text(keys: Iterable[ResourceKey]) -> str:
    """List resources, with the elements of an array in one name."""
    elements: dict[str, list[str]] = {}
    for key in keys:
        name, element = split_element(key.name)
        elements.setdefault(f"{key.kind}/{name}", []).extend([element] if element else [])
    names = [
        printable(name + (shorten_elements(inside).text if inside else ""))
        for name, inside in sorted(elements.items(), key=lambda one: natural_order(one[0]))
    ]
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return f"{', '.join(names[:NAMES_MAX])}{more}"
