"""Why a fleet or a volume is not as it should be, and what that means for runs that mount a volume."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetform.model.drift import TABLE, expected_and_seen
from fleetform.model.figures import counted
from fleetform.model.volume import volume_hosts
from fleetform.spec.desired import ResourceKey
from fleetform.views.moments import age
from fleetform.views.reasons import HELD_BY, blocked_text
from fleetform.views.runs import WaitingRow
from fleetform.views.why import SILENT, Why

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from fleetform.model.drift import RecordedDrift
    from fleetform.model.live import Live, LiveResource
    from fleetform.model.plan import Held


class VolumeTrouble(NamedTuple):
    """One reason why a volume cannot be mounted, and what to do about it."""

    reason: WaitingRow
    cure: str


def resource_why(row: LiveResource, live: Live, *, now_ms: int) -> Why:
    """Answer for a fleet or a volume: what looks have seen of it, and which hosts do not answer."""
    name = f"{row.key.kind} {row.key.name}"
    drifts = [one for one in live.recorded_drift if one.drift.resource == row.key]
    reasons = [WaitingRow("drift", _seen(one, now_ms)) for one in drifts]
    if row.key.kind == "fleet":
        reasons += _silent_hosts(live, row.key.name)
    there = volume_hosts(row.outputs)
    for host, why in sorted(there.not_on.items()) if there is not None else ():
        reasons.append(WaitingRow("host", f"host {host} does not have its directory: {why}"))
    if row.operation:
        reasons.append(WaitingRow("operation", "an apply that changes it has not finished"))
    cures = [_cure(one) for one in drifts]
    if there is not None and there.not_on:
        cures.append("`fleetform apply` creates the directory once the host answers")
    state = "archived" if row.archived else row.state
    verb = "is" if len(reasons) == 1 else "are"
    summary = (
        f"{name} is {state}; {counted(len(reasons), 'thing')} {verb} not as applied:"
        if reasons
        else f"{name} is {state}; no drift is known."
    )
    return Why(
        name=str(row.key),
        state=state,
        summary=summary,
        reasons=tuple(reasons),
        attempts=(),
        advice=tuple(dict.fromkeys(cures)),
    )


def blocked_why(held: Held) -> Why:
    """Answer for what the newest plan on record blocks and the ledger does not have."""
    change = held.change
    return Why(
        name=str(change.key),
        state="blocked",
        summary=f"{change.key.kind} {change.key.name} does not exist: its change is blocked.",
        reasons=(WaitingRow("blocked", blocked_text(HELD_BY[held.by], held.detail)),),
        attempts=(),
        advice=(held.cure,) if held.cure else (),
    )


def volume_troubles(
    names: Iterable[str],
    live: Live,
    held: Iterable[Held],
    *,
    lacked: Container[str] = (),
    now_ms: int,
) -> Iterator[VolumeTrouble]:
    """
    Say which of a run's volumes cannot be mounted, and why.

    Args:
        names: The volumes that the run mounts.
        live: The ledger.
        held: What the newest plan on record blocks.
        lacked: Volumes whose directory the host missed, and that nothing has found since.
        now_ms: To say how long ago something was seen.
    """
    blocked = {one.change.key: one for one in held}
    for name in names:
        key = ResourceKey("volume", name)
        row = live.resources.get(key)
        if row is None or row.archived or row.state != "present":
            yield _missing(key, blocked.get(key))
            continue
        drifts = [
            one
            for one in live.recorded_drift
            if one.drift.resource == key and one.drift.field in _LOST
        ]
        for one in drifts:
            yield VolumeTrouble(
                WaitingRow("volume", f"volume {name}: {_seen(one, now_ms)}"), _cure(one)
            )
        if not drifts and name in lacked:
            cure = TABLE["volume", "directory"].cure.replace("NAME", name)
            yield VolumeTrouble(WaitingRow("volume", f"volume {name}: its directory is gone"), cure)


def lacks_directory(message: str, volume: str) -> bool:
    """Tell whether an attempt ended because its host had no directory of a volume."""
    return f"volume {volume} has no directory" in message


_LOST = frozenset({"directory", "claim", "path"})


def _missing(key: ResourceKey, held: Held | None) -> VolumeTrouble:
    name = key.name
    if held is None:
        detail = f"volume {name} does not exist: no apply has created it"
        cure = f"`fleetform apply` creates volume {name} where the configuration declares it"
        return VolumeTrouble(WaitingRow("volume", detail), cure)
    because = blocked_text(HELD_BY[held.by], held.detail)
    detail = f"volume {name} does not exist; its change is blocked: {because}"
    return VolumeTrouble(WaitingRow("volume", detail), held.cure or "`fleetform plan` shows it")


def _silent_hosts(live: Live, fleet: str) -> Iterator[WaitingRow]:
    for one in live.instances:
        if one.fleet == fleet and one.state in SILENT:
            message = f": {one.message}" if one.message else ""
            yield WaitingRow("host", f"host {one.name} does not answer{message}")


def _seen(one: RecordedDrift, now_ms: int) -> str:
    drift = one.drift
    by = f", {drift.by}" if drift.by else ""
    ago = f"{age(one.seen_at_ms, now_ms)} ago"
    return f"{expected_and_seen(drift.path, drift.expected, drift.seen, ago)}{by}"


def _cure(one: RecordedDrift) -> str:
    row = TABLE[one.drift.resource.kind, one.drift.field]
    if row.cure:
        return row.cure.replace("NAME", one.drift.resource.name)
    if one.drift.remedy == "apply":
        return f"`fleetform apply --refresh`: {row.done}"
    return row.done
