"""
Drift as people and scripts read it: what, from what to what, since when, by whom, and then.

One block a field, the gravest class first within a resource's order: there are few of them, and
each is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.model.drift import TABLE, Drift, DriftClass, Remedy
from fleetform.model.figures import counted
from fleetform.model.instance import LOCAL
from fleetform.model.volume import disk_of
from fleetform.views.lines import BLANK, Line, line, printable
from fleetform.views.moments import moment
from fleetform.views.table import row_of

if TYPE_CHECKING:
    from fleetform.model.live import Live

_TONES = {DriftClass.ENFORCED: "bad", DriftClass.FLOOR: "warn", DriftClass.OBSERVED: "info"}


@dataclass(frozen=True, slots=True)
class DriftRow:
    """
    One field that has drifted, as JSON has it.

    Attributes:
        drift_class: `enforced`, `floor` or `observed`.
        expected: The value that was applied, or accepted, or seen first.
        right_at_ms: When it was last seen so, Unix milliseconds; None where nobody had looked before.
        changed_at_ms: When the world says that it changed; None where it does not say.
        by: Who, where that is known; else empty.
        remedy: `apply`, `greeting`, `decide` or `accept`.
        then: What is done about it, or what a person does.
    """

    resource: str
    path: str
    drift_class: str
    expected: str
    seen: str
    right_at_ms: int | None
    changed_at_ms: int | None
    by: str
    remedy: str
    then: str


def drift_rows(drifts: Iterable[Drift]) -> tuple[DriftRow, ...]:
    return tuple(
        row_of(DriftRow, one, resource=str(one.resource), then=_then(one)) for one in drifts
    )


def render(
    drifts: Sequence[Drift], *, observed_at_ms: int, is_complete: bool = True
) -> tuple[Line, ...]:
    """Write all of it; one line where nothing was found. `is_complete`: all clouds have listed their instances."""
    looked = f" (looked at {moment(observed_at_ms)})"
    if not drifts and not is_complete:
        said = "No drift was found, but not all clouds were asked"
        return (line((said, "warn"), (looked, "dim")),)
    if not drifts:
        return (line(("Nothing has drifted", "good"), (looked, "dim")),)
    blocks = [part for one in drifts for part in (*_block(one), BLANK)]
    return (*blocks, *_last(drifts, looked))


def _block(one: Drift) -> Iterator[Line]:
    yield line(
        ("  ! ", _TONES[one.drift_class]),
        (f"{one.resource.kind} {printable(one.resource.name)}", "bold"),
        f"  {printable(one.path)}: ",
        (printable(one.expected), "good"),
        (" (expected) → ", "dim"),
        (printable(one.seen), "bad"),
        (" (seen)", "dim"),
        (f"  {one.drift_class.value}", "dim"),
    )
    yield line("      ", ("since: ", "info"), _since(one))
    if one.by:
        yield line("      ", ("by: ", "info"), printable(one.by))
    yield line("      ", ("then: ", "info"), printable(_then(one)))


def _since(one: Drift) -> str:
    parts = []
    if one.right_at_ms is not None:
        parts.append(f"last seen as applied at {moment(one.right_at_ms)}")
    if one.changed_at_ms is not None:
        parts.append(f"last changed at {moment(one.changed_at_ms)}")
    return ", ".join(parts) or "unknown, because this is the first check"


def _then(one: Drift) -> str:
    row = TABLE[one.resource.kind, one.field]
    then = "; ".join(part for part in (one.detail or row.done, row.cure) if part)
    return then.replace("NAME", one.resource.name)


def _last(drifts: Sequence[Drift], looked: str) -> Iterator[Line]:
    yield line(
        (f"{counted(len(drifts), 'field')} {_have(drifts)} drifted", "bold"), (looked, "dim")
    )
    remedies = {one.remedy for one in drifts}
    if Remedy.APPLY in remedies:
        yield line("`fleetform apply --refresh` corrects what can be corrected without data loss.")
    if Remedy.ACCEPT in remedies:
        yield line("`fleetform apply --refresh-only` accepts what was only observed.")


def _have(drifts: Sequence[Drift]) -> str:
    return "has" if len(drifts) == 1 else "have"


def asked_text(live: Live) -> str:
    """Say what a look at the actual state asks beyond this machine; empty: nothing."""
    hosts = sum(one.provider != LOCAL for one in live.instances)
    disks = sum(
        key.kind == "volume" and disk_of(row.outputs) is not None
        for key, row in live.resources.items()
    )
    asked = [counted(count, noun) for count, noun in ((hosts, "host"), (disks, "disk")) if count]
    return f"reading the actual state of {' and '.join(asked)}" if asked else ""
