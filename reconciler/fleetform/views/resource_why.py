"""Why a fleet or a volume is not as it should be, and what that means for runs that mount a volume."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from fleetform.model.drift import ATTACHED_TO_TEXT, ATTACHMENT, TABLE, expected_and_seen
from fleetform.model.figures import counted, first_of
from fleetform.model.instance import LOCAL, InstanceState
from fleetform.model.offers import REFUSED_SINCE
from fleetform.model.rollout import EXCHANGED_TEXTS
from fleetform.model.volume import attached_to, volume_hosts
from fleetform.spec.desired import ResourceKey
from fleetform.views.moments import age
from fleetform.views.reasons import HELD_BY, blocked_text
from fleetform.views.rollouts import rollout_text
from fleetform.views.runs import WaitingRow
from fleetform.views.why import SILENT, Why

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fleetform.model.drift import RecordedDrift
    from fleetform.model.history import LoggedEvent
    from fleetform.model.instance import Instance
    from fleetform.model.live import Live, LiveResource
    from fleetform.model.plan import Held


class VolumeTrouble(NamedTuple):
    """One reason why a volume cannot be mounted, and what to do about it."""

    reason: WaitingRow
    cure: str


def resource_why(
    row: LiveResource, live: Live, *, events: Sequence[LoggedEvent] = (), now_ms: int
) -> Why:
    """
    Answer for a fleet or a volume: how its last change failed, what it waits for, and what has drifted.

    `events` are those of the resource, oldest first.
    """
    name = f"{row.key.kind} {row.key.name}"
    drifts = [one for one in live.recorded_drift if one.drift.resource == row.key]
    hosts = [one for one in live.instances if ResourceKey("fleet", one.fleet) == row.key]
    reasons, cures = _failure(events, hosts, now_ms)
    reasons += [WaitingRow("drift", _seen(one, now_ms)) for one in drifts]
    if row.key.kind == "fleet":
        rollout = live.exchanging.get(row.key.name)
        if rollout is not None:
            reasons.append(WaitingRow("rollout", rollout_text(row.key.name, rollout)))
            cures.append(_ROLLOUT.replace("FLEET", row.key.name))
        waiting = [*_waiting_hosts(hosts, now_ms), *_silent_hosts(hosts), *_stuck_hosts(hosts)]
        reasons += [reason for reason, _ in waiting]
        cures += [cure for _, cure in waiting if cure]
    there = volume_hosts(row.outputs)
    for host, why in sorted(there.not_on.items()) if there is not None else ():
        reasons.append(WaitingRow("host", f"host {host} does not have its directory: {why}"))
    if row.operation:
        reasons.append(WaitingRow("operation", "an apply that changes it has not finished"))
    cures += [_cure(one) for one in drifts]
    if there is not None and there.not_on:
        cures.append("`fleetform apply` creates the directory once the host answers")
    # Of a volume that could not be created only its uid is kept.
    state = "not created" if row.archived else row.state
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
    lacked: Mapping[str, str] = MappingProxyType({}),
    now_ms: int,
) -> Iterator[VolumeTrouble]:
    """
    Say which of a run's volumes cannot be mounted, and why.

    Args:
        names: The volumes that the run mounts.
        live: The ledger.
        held: What the newest plan on record blocks.
        lacked: Why the last attempt could not mount volumes, by name, as `refused_mount` says it, where nothing is known to differ since.
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
            if one.drift.resource == key
            and (
                one.drift.field in _LOST
                or (one.drift.field == ATTACHMENT and not attached_to(row.outputs))
            )
        ]
        for one in drifts:
            yield VolumeTrouble(
                WaitingRow("volume", f"volume {name}: {_seen(one, now_ms)}"), _cure(one)
            )
        if not drifts and name in lacked:
            field = "directory" if lacked[name] == _NO_DIRECTORY else ATTACHMENT
            cure = TABLE["volume", field].cure.replace("NAME", name)
            yield VolumeTrouble(WaitingRow("volume", f"volume {name}: {lacked[name]}"), cure)


def refused_mount(message: str, volume: str) -> str:
    """Say why an attempt ended without a volume, where its host had no directory of it or another instance has its disk; or empty."""
    if f"volume {volume} has no directory" in message:
        return _NO_DIRECTORY
    _, _, said = message.partition(f"volume {volume}: ")
    return said if f" is {ATTACHED_TO_TEXT}" in said else ""


_NO_DIRECTORY = "its directory is gone"

_LOST = frozenset({"directory", "claim", "path", "disk"})


def _missing(key: ResourceKey, held: Held | None) -> VolumeTrouble:
    name = key.name
    if held is None:
        detail = f"volume {name} does not exist: no apply has created it"
        cure = f"`fleetform apply` creates volume {name} where the configuration declares it"
        return VolumeTrouble(WaitingRow("volume", detail), cure)
    because = blocked_text(HELD_BY[held.by], held.detail)
    detail = f"volume {name} does not exist; its change is blocked: {because}"
    return VolumeTrouble(WaitingRow("volume", detail), held.cure or "`fleetform plan` shows it")


def _failure(
    events: Sequence[LoggedEvent], hosts: Sequence[Instance], now_ms: int
) -> tuple[list[WaitingRow], list[str]]:
    """Say how the last change failed, and what to do, unless a change has succeeded since, or a host that waits says the same."""
    told = [one.message for one in hosts if one.waits_for_capacity and one.message]
    for one in reversed(events):
        if one.kind == "step.failed":
            ago = f"{age(one.at_ms, now_ms)} ago"
            _, _, problem = one.message.partition(" failed: ")
            if any(message in problem for message in told):
                break
            reason = WaitingRow("failed", f"its last change failed {ago}: {problem or one.message}")
            return [reason], ["correct what the message names, then `fleetform apply` tries again"]
        if one.kind.startswith(("fleet.", "volume.")) and one.kind != "fleet.scaled":
            break
    return [], []


def _waiting_hosts(hosts: Iterable[Instance], now_ms: int) -> Iterator[tuple[WaitingRow, str]]:
    """Say what hosts wait for that are not ready yet, one sentence for all that wait for the same."""
    alike: dict[tuple[str, str], list[Instance]] = {}
    for one in hosts:
        if one.state is InstanceState.PROVISIONING:
            code = "capacity" if one.waits_for_capacity else "provisioning"
            alike.setdefault((code, one.message), []).append(one)
    for (code, message), members in alike.items():
        names = first_of([one.name for one in members], _HOSTS_SHOWN)
        which = f"host {names} is" if len(members) == 1 else f"hosts {names} are"
        state = "not created" if code == "capacity" else "not ready yet"
        since = [one.endpoint[REFUSED_SINCE] for one in members if one.waits_for_capacity]
        how_long = f", for {age(min(since), now_ms)} now" if since else ""
        why = f": {message}" if message else ""
        is_given_up = any(one.is_refused for one in members)
        yield (
            WaitingRow(code, f"{which} {state}{how_long}{why}"),
            _MORE_OFFERS[is_given_up].replace("FLEET", members[0].fleet)
            if code == "capacity"
            else "",
        )


_HOSTS_SHOWN = 3

_ROLLOUT = (
    "a controller replaces the others as `update` says, by default each once its jobs have ended;"
    " `fleetform fleet show FLEET` lists the hosts"
)

_MORE_OFFERS = {
    False: "a controller asks again by itself, and at once after `fleetform fleet retry FLEET`; more `instance_types`,"
    " `regions` or `availability_zones`, or `spot_policy: auto`, give it more offers",
    True: "`fleetform apply` asks again 10 minutes after the refusal, or sooner after `fleetform fleet retry FLEET`;"
    " `retry: {on: [no-capacity]}` of the fleet lets the controller do so, and more `instance_types`, `regions` or `availability_zones` give it more offers",
}
"""What to do about hosts without capacity; the key tells whether their fleet has given up."""


def _silent_hosts(hosts: Iterable[Instance]) -> Iterator[tuple[WaitingRow, str]]:
    for one in hosts:
        if one.state in SILENT:
            message = f": {one.message}" if one.message else ""
            cure = (
                "`fleetform drift` asks the cloud whether the instance exists"
                if one.is_bought
                else ""
            )
            yield WaitingRow("host", f"host {one.name} does not answer{message}"), cure


def _stuck_hosts(hosts: Iterable[Instance]) -> Iterator[tuple[WaitingRow, str]]:
    """Say why hosts of other machines that leave are still there; a controller tries again by itself."""
    for one in hosts:
        is_leaving = one.state is InstanceState.TERMINATING and one.provider != LOCAL
        if is_leaving and one.message and one.message not in EXCHANGED_TEXTS:
            yield WaitingRow("host", f"host {one.name} is not released: {one.message}"), ""


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
