"""
From one look at the world to what has drifted.

Compared is what the ledger says was made, never the tree: what the tree wants otherwise is a
change of the plan. What is being changed just now, or leaves, is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fleetform.model.drift import GONE, OTHER_DATA, Drift, Noted, Observed, RecordedDrift, Remedy
from fleetform.model.drift_table import TABLE
from fleetform.model.figures import cores, size
from fleetform.model.fingerprint import short_uid
from fleetform.model.instance import Instance, InstanceState
from fleetform.spec.desired import ResourceKey

if TYPE_CHECKING:
    from fleetform.model.live import Live, LiveResource
    from fleetform.providers.contract.observed import HostSeen, InstanceSeen, PlaceSeen

__all__ = ["Comparison", "accept", "compare"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    What one look came to.

    `drifts` come by resource and path. `recorded` are these and those of earlier looks that this one
    has not seen healed. `right` is what was found as it should be, by resource and
    path: it is noted, so that the next drift can be told since when. Internal fields that no row
    of the table names are among them.
    """

    drifts: tuple[Drift, ...]
    right: Mapping[ResourceKey, Mapping[str, str]]
    recorded: tuple[RecordedDrift, ...] = ()


def compare(live: Live, observed: Observed) -> Comparison:
    """
    Say what is not as it was made.

    Args:
        live: The ledger, read after the world was looked at.
        observed: The world.
    """
    book = _Book(observed)
    _compare_hosts(book, live)
    for row in live.resources.values():
        if _is_settled_volume(row) and row.uid not in observed.moving:
            _compare_volume(book, row)
    drifts = sorted(book.drifts, key=lambda one: (one.resource, one.path))
    return Comparison(tuple(drifts), book.right, tuple(_recorded(book, live, drifts)))


def _recorded(book: _Book, live: Live, drifts: Sequence[Drift]) -> list[RecordedDrift]:
    """What is to be remembered after this look: what it found, and what it could not judge."""
    now_ms = book.observed.at_ms
    before = {one.place: one for one in book.observed.recorded}
    found = {}
    for one in drifts:
        place = (one.resource, one.path)
        known = before.get(place)
        is_same = known is not None and known.drift.seen == one.seen
        since_ms = known.found_at_ms if known is not None and is_same else now_ms
        found[place] = RecordedDrift(one, since_ms, now_ms)
    for place, earlier in before.items():
        if place not in found and not _is_healed(book, live, earlier.drift):
            found[place] = earlier
    return sorted(found.values(), key=lambda one: one.place)


def _is_healed(book: _Book, live: Live, one: Drift) -> bool:
    """
    Tell whether this look has seen that an earlier drift, which it has not found, is over.

    A host that does not answer, or what is being changed just now, proves nothing.
    """
    if one.path in book.right.get(one.resource, {}):
        return True
    if one.field == "unknown":
        return not _is_under_change(live, one.resource.name)
    hosts = {instance.name: instance.uid for instance in live.instances}
    if one.field == "record":
        uid = hosts.get(one.part.partition("/")[0])
        return uid is None or uid in book.observed.hosts
    # A host that left with its place needs nothing any more.
    return bool(one.part) and one.part not in hosts


def accept(drifts: tuple[Drift, ...]) -> dict[ResourceKey, dict[str, str]]:
    """Return what is to be noted so that what only was observed is told no more."""
    noted: dict[ResourceKey, dict[str, str]] = {}
    for one in drifts:
        if one.remedy is Remedy.ACCEPT:
            noted.setdefault(one.resource, {})[one.path] = one.seen
    return noted


@dataclass(slots=True)
class _Book:
    """Collects what is found, and fills in since when and by whom."""

    observed: Observed
    drifts: list[Drift] = field(default_factory=list)
    right: dict[ResourceKey, dict[str, str]] = field(default_factory=dict)

    def check(
        self, key: ResourceKey, name: str, expected: str, seen: str, *, part: str = "", **more: Any
    ) -> None:
        """Compare one field that has an expected value."""
        if expected == seen:
            self.note(key, name, seen, part=part)
        else:
            self.tell(key, name, expected, seen, part=part, **more)

    def note(self, key: ResourceKey, name: str, value: str, *, part: str = "") -> None:
        path = f"hosts[{part}].{name}" if part else name
        self.right.setdefault(key, {})[path] = value

    def tell(
        self, key: ResourceKey, name: str, expected: str, seen: str, *, part: str = "", **more: Any
    ) -> None:
        row = TABLE[key.kind, name]
        one = Drift(key, name, row.drift_class, row.remedy, expected, seen, part, **more)
        noted = self.noted(key, one.path)
        right_at_ms = noted.at_ms if noted is not None else None
        changed = self.observed.changed.get(key)
        by = one.by
        # Of what was never seen right, an apply made it as likely as anything else did.
        if (
            not by
            and changed is not None
            and right_at_ms is not None
            and changed.at_ms >= right_at_ms
        ):
            by = f"perhaps the apply of {changed.value}"
        self.drifts.append(replace(one, right_at_ms=right_at_ms, by=by))

    def noted(self, key: ResourceKey, path: str) -> Noted | None:
        return self.observed.noted.get(key, {}).get(path)


# -- hosts --------------------------------------------------------------------------------------


def _compare_hosts(book: _Book, live: Live) -> None:
    rows = {one.uid: one for one in live.instances}
    there = {one.uid: one for one in book.observed.instances}
    for instance in live.instances:
        fleet = live.resources.get(ResourceKey("fleet", instance.fleet))
        if instance.uid in book.observed.moving or fleet is None or fleet.operation:
            continue
        if _is_settled(instance):
            _compare_host(book, live, instance, there.get(instance.uid))
    for seen in book.observed.instances:
        if seen.uid not in {*rows, *book.observed.moving, *live.let_go} and not _is_under_change(
            live, seen.fleet
        ):
            key = ResourceKey("fleet", seen.fleet)
            book.tell(key, "unknown", "in the ledger", "not in the ledger", part=seen.name)


def _is_settled(instance: Instance) -> bool:
    # Before its first hello nothing was promised of it, and who leaves is about to go.
    return bool(instance.install_id) and instance.state is not InstanceState.TERMINATING


def _is_under_change(live: Live, fleet: str) -> bool:
    row = live.resources.get(ResourceKey("fleet", fleet))
    return row is not None and bool(row.operation)


def _compare_host(book: _Book, live: Live, instance: Instance, there: InstanceSeen | None) -> None:
    key, part = ResourceKey("fleet", instance.fleet), instance.name
    if there is None:
        book.tell(key, "host", "there", GONE, part=part)
        return
    book.note(key, "host", "there", part=part)
    ours = f"{live.ledger_id} of epoch {live.epoch}"
    if there.ledger_id and (
        (there.ledger_id != live.ledger_id and there.epoch >= live.epoch)
        or (there.ledger_id == live.ledger_id and there.epoch > live.epoch)
    ):
        theirs = f"{there.ledger_id} of epoch {there.epoch}"
        book.tell(key, "ledger", ours, theirs, part=part)
        return
    book.note(key, "ledger", ours, part=part)
    seen = book.observed.hosts.get(instance.uid)
    if seen is None:
        if not there.resting:
            book.tell(key, "agent", "answers", "does not answer", part=part)
        return
    book.note(key, "agent", "answers", part=part)
    _compare_greeting(book, key, instance, seen)
    _compare_capacity(book, key, instance, seen)
    _find_strangers(book, live, instance, seen)


def _compare_greeting(book: _Book, key: ResourceKey, instance: Instance, seen: HostSeen) -> None:
    if instance.install_id != seen.install_id:
        by = "its folder or the machine was created again"
        book.tell(
            key,
            "install",
            instance.install_id[:12],
            seen.install_id[:12],
            part=instance.name,
            by=by,
        )
        return
    book.check(
        key, "boot", instance.boot_id[:12], seen.boot_id[:12], part=instance.name, by="a reboot"
    )


def _compare_capacity(book: _Book, key: ResourceKey, instance: Instance, seen: HostSeen) -> None:
    """Compare what was found on the machine; what is declared instead is the tree's word."""
    report, part = seen.report, instance.name
    if "cpu" not in instance.declared and report.cpu_millicores < instance.cpu_millicores:
        book.tell(
            key, "cpu", cores(instance.cpu_millicores), cores(report.cpu_millicores), part=part
        )
    else:
        book.note(key, "cpu", cores(instance.cpu_millicores), part=part)
    if "memory" not in instance.declared and report.memory_bytes < instance.memory_bytes:
        book.tell(key, "memory", size(instance.memory_bytes), size(report.memory_bytes), part=part)
    else:
        book.note(key, "memory", size(instance.memory_bytes), part=part)
    have = {gpu.uuid for gpu in report.gpus}
    missing = [gpu.uuid for gpu in instance.gpus if gpu.uuid not in have]
    wanted = f"{len(instance.gpus)} GPUs"
    if missing and "gpu" not in instance.declared:
        book.tell(key, "gpus", wanted, f"without {', '.join(missing)}", part=part)
    else:
        book.note(key, "gpus", wanted, part=part)


def _find_strangers(book: _Book, live: Live, instance: Instance, seen: HostSeen) -> None:
    """Find jobs that the host remembers from this ledger and this ledger does not know."""
    if seen.ledger_id != live.ledger_id:
        return
    for record in seen.records or ():
        if record.key.run_uid not in book.observed.known_runs:
            name = record.run_name or f"recovered-{record.key.run_uid[:12]}"
            part = (
                f"{instance.name}/{record.key.run_uid[:12]}.{record.key.attempt}.{record.key.rank}"
            )
            book.tell(
                ResourceKey("run", name), "record", "in the ledger", record.state.value, part=part
            )


# -- volumes ------------------------------------------------------------------------------------

_IDENTITY = "identity"
"""Noted and never told: it says whether a directory is the one that was there before."""


def _is_settled_volume(row: LiveResource) -> bool:
    made = row.key.kind == "volume" and row.state == "present"
    return made and not row.archived and not row.operation


def _compare_volume(book: _Book, row: LiveResource) -> None:
    key = row.key
    place = book.observed.places.get(key.name)
    if place is None:
        return
    marked_as_ours = place.volume_uid == row.uid
    if not marked_as_ours and (moved := _found_elsewhere(book.observed, row.uid, place.path)):
        book.tell(key, "path", place.path, moved, changed_at_ms=place.changed_at_ms)
        return
    if place.volume_uid and not marked_as_ours:
        _tell_claim(book, row, place)
        return
    noted = book.noted(key, _IDENTITY)
    another = noted is not None and noted.value != place.identity
    if not place.exists:
        seen, lost = GONE, True
    elif not marked_as_ours and (another or place.is_empty):
        seen, lost = ("another directory, empty" if place.is_empty else OTHER_DATA), True
    else:
        seen, lost = "there", False
    if lost:
        book.tell(
            key, "directory", f"there, at {_path_of(row)}", seen,
            changed_at_ms=place.changed_at_ms,
            by=f"it belongs to {place.owner}" if place.owner else "",
        )  # fmt: skip
        return
    book.note(key, "directory", "there")
    book.note(key, _IDENTITY, place.identity)
    book.note(key, "claim", "ours")
    book.note(key, "path", place.path)
    if marked_as_ours:
        book.note(key, "mark", "ours")
    else:
        book.tell(key, "mark", "ours", "none", changed_at_ms=place.changed_at_ms)
    _compare_permissions(book, key, place)


def _tell_claim(book: _Book, row: LiveResource, place: PlaceSeen) -> None:
    book.tell(
        row.key, "claim", "ours", f"volume {place.volume_name or place.volume_uid}",
        by=f"environment {short_uid(place.environment_uid)}",
        changed_at_ms=place.changed_at_ms,
    )  # fmt: skip


def _compare_permissions(book: _Book, key: ResourceKey, place: PlaceSeen) -> None:
    for name, value in (("owner", place.owner), ("mode", place.mode)):
        before = book.noted(key, name)
        book.check(
            key, name, before.value if before is not None else value, value,
            changed_at_ms=place.changed_at_ms,
        )  # fmt: skip


def _found_elsewhere(observed: Observed, uid: str, path: str) -> str:
    return next((one.path for one in observed.volumes if one.uid == uid and one.path != path), "")


def _path_of(row: LiveResource) -> str:
    document: dict[str, Any] = json.loads(row.document)
    return str(document.get("path", ""))
