"""
Compares one reading of the actual state with the ledger.

The comparison is with what the ledger says was created, never with the configuration: a difference from the
configuration is a change of the plan. A resource that is being changed, or a host that leaves, is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fleetform.agents.protocol.naming import short_uid
from fleetform.model.drift import (
    ATTACHED_TO_TEXT,
    ATTACHMENT,
    CREATION,
    GONE,
    OTHER_DATA,
    TABLE,
    Drift,
    Noted,
    Observed,
    RecordedDrift,
    Remedy,
    expected_and_seen,
)
from fleetform.model.existence import ended_text, is_known, place_of, settled_text, unknown_text
from fleetform.model.figures import cores, size
from fleetform.model.instance import LOCAL, Instance, InstanceState
from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Change, FieldChange, Held, HeldBy, Reason, Step
from fleetform.model.selection import Selection
from fleetform.model.verbs import ACTS_ON_HOSTS, UPDATES, VERBS
from fleetform.model.volume import attached_to, disk_of
from fleetform.plan.draft import PlanDraft, Proposal, make_step
from fleetform.plan.ended_instances import ended_since_a_look
from fleetform.plan.kinds import KINDS
from fleetform.spec.desired import Declared, ResourceKey
from fleetform.spec.ignore_changes import overlook, overlooks
from fleetform.spec.names import natural_order

if TYPE_CHECKING:
    from fleetform.model.live import Live, LiveResource
    from fleetform.providers.contract.observed import HostSeen, InstanceSeen, PlaceSeen
__all__ = ["Comparison", "accept", "compare", "correct_drift"]


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
    Say what differs from what was created.

    Args:
        live: The ledger, read after the actual state.
        observed: The actual state.
    """
    log = _DriftLog(observed)
    _compare_hosts(log, live)
    for row in live.resources.values():
        if _is_settled_volume(row) and row.uid not in observed.moving:
            _compare_volume(log, row)
            _compare_disk(log, row, live)
    drifts = sorted(log.drifts, key=lambda one: (one.resource, one.path))
    return Comparison(tuple(drifts), log.right, tuple(_recorded(log, live, drifts)))


def _recorded(log: _DriftLog, live: Live, drifts: Sequence[Drift]) -> list[RecordedDrift]:
    """Return what is recorded after this look: what it found, and earlier drift that it could not judge."""
    now_ms = log.observed.at_ms
    before = {one.place: one for one in log.observed.recorded}
    found = {}
    for one in (drift for drift in drifts if drift.field != CREATION):
        place = (one.resource, one.path)
        known = before.get(place)
        is_same = known is not None and known.drift.seen == one.seen
        since_ms = known.found_at_ms if known is not None and is_same else now_ms
        found[place] = RecordedDrift(one, since_ms, now_ms)
    for place, earlier in before.items():
        if place not in found and not _is_healed(log, live, earlier.drift):
            found[place] = earlier
    return sorted(found.values(), key=lambda one: one.place)


def _is_healed(log: _DriftLog, live: Live, one: Drift) -> bool:
    """
    Tell whether this look has seen that an earlier drift, which it has not found, is over.

    A host that does not answer, or what is being changed just now, proves nothing.
    """
    if one.path in log.right.get(one.resource, {}):
        return True
    if one.field == "unknown":
        return not _is_under_change(live, one.resource.name)
    hosts = {instance.name: instance.uid for instance in live.instances}
    if one.field == "record":
        uid = hosts.get(one.part.partition("/")[0])
        return uid is None or uid in log.observed.hosts
    # A host that left with its place needs nothing any more.
    return bool(one.part) and one.part not in hosts


def accept(drifts: tuple[Drift, ...]) -> dict[ResourceKey, dict[str, str]]:
    """Return what is to be noted so that drift which was only observed is no longer reported."""
    noted: dict[ResourceKey, dict[str, str]] = {}
    for one in drifts:
        if one.remedy is Remedy.ACCEPT:
            noted.setdefault(one.resource, {})[one.path] = one.seen
    return noted


@dataclass(slots=True)
class _DriftLog:
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
        # Of what was never seen right, an apply made it as likely as anything else did. No apply makes
        # a host silent: the last one says nothing of that.
        if (
            not by
            and name != "connection"
            and changed is not None
            and right_at_ms is not None
            and changed.at_ms >= right_at_ms
        ):
            by = f"perhaps the apply of {changed.value}"
        self.drifts.append(replace(one, right_at_ms=right_at_ms, by=by))

    def noted(self, key: ResourceKey, path: str) -> Noted | None:
        return self.observed.noted.get(key, {}).get(path)


# -- hosts --------------------------------------------------------------------------------------


def _compare_hosts(log: _DriftLog, live: Live) -> None:
    rows = {one.uid: one for one in live.instances}
    _find_unknown_instances(log, live, rows)
    _find_cut_off(log, live)
    there = {one.uid: one for one in log.observed.instances}
    for instance in live.instances:
        fleet = live.resources.get(ResourceKey("fleet", instance.fleet))
        if instance.uid in log.observed.moving or fleet is None or fleet.operation:
            continue
        if instance.uid in log.observed.images:
            _compare_image(log, instance)
        if _is_settled(instance):
            _compare_host(log, live, instance, there.get(instance.uid))
    for seen in log.observed.instances:
        if seen.uid not in {
            *rows,
            *log.observed.moving,
            *live.released_hosts,
        } and not _is_under_change(live, seen.fleet):
            key = ResourceKey("fleet", seen.fleet)
            log.tell(key, "unknown", "in the ledger", "not in the ledger", part=seen.name)


def _compare_image(log: _DriftLog, instance: Instance) -> None:
    key = ResourceKey("fleet", instance.fleet)
    newest, before = log.observed.images[instance.uid], log.noted(key, "image")
    is_accepted = before is not None and before.value == newest
    own = str(instance.endpoint["image"])
    log.check(key, "image", newest if is_accepted else own, newest)


def _find_unknown_instances(log: _DriftLog, live: Live, rows: Mapping[str, Instance]) -> None:
    """Find instances of clouds with the uid of the environment that the ledger does not have."""
    for seen in (one for listed in log.observed.clouds.values() for one in listed):
        is_moving = seen.uid in log.observed.moving or _is_under_change(live, seen.fleet)
        is_there = seen.alive and not seen.is_ending
        if is_there and not is_moving and not is_known(seen, rows):
            key = ResourceKey("fleet", seen.fleet)
            log.tell(
                key, "unknown", "in the ledger", "not in the ledger", part=seen.endpoint["id"],
                detail=f"{seen.name} is not changed, and costs money",
            )  # fmt: skip


def _find_cut_off(log: _DriftLog, live: Live) -> None:
    """Find hosts whose creation was cut off, and say whether their clouds list an instance."""
    clouds, cut_off = log.observed.clouds, log.observed.cut_off
    there = [one for listed in clouds.values() for one in listed if one.alive and not one.is_ending]
    ids = {one.uid: str(one.endpoint["id"]) for one in there}
    for one in live.instances:
        if one.uid not in cut_off or one.uid in log.observed.moving:
            continue
        detail = unknown_text(cut_off[one.uid], log.observed.at_ms)
        if one.uid in ids:
            seen, detail = f"cut off, and {ids[one.uid]} exists", "the instance costs money"
        elif place_of(one.provider, one.endpoint) in clouds:
            seen = "cut off, and no instance is listed"
            detail += ", because clouds list new instances late"
        else:
            seen = "cut off"
        is_leaving = one.state is InstanceState.TERMINATING
        then = settled_text(is_leaving=is_leaving, exists=one.uid in ids)
        key = ResourceKey("fleet", one.fleet)
        log.tell(key, CREATION, "finished", seen, part=one.name, detail=f"{detail}; {then}")


def _is_settled(instance: Instance) -> bool:
    # Before its first hello nothing is known of it, and a host that leaves is about to go. An instance of a cloud is listed
    # as soon as it is created.
    is_there = bool(instance.install_id) or (instance.is_bought and instance.is_created)
    return is_there and instance.state is not InstanceState.TERMINATING


def _is_under_change(live: Live, fleet: str) -> bool:
    row = live.resources.get(ResourceKey("fleet", fleet))
    return row is not None and bool(row.operation)


def _compare_host(
    log: _DriftLog, live: Live, instance: Instance, there: InstanceSeen | None
) -> None:
    key, part = ResourceKey("fleet", instance.fleet), instance.name
    if instance.provider != LOCAL:
        _compare_remote_host(log, live, key, instance)
        return
    if there is None:
        log.tell(key, "host", "there", GONE, part=part)
        return
    log.note(key, "host", "there", part=part)
    if not _follows_ledger(log, live, key, part, there):
        return
    seen = log.observed.hosts.get(instance.uid)
    if seen is None:
        if not there.resting:
            log.tell(key, "agent", "answers", "does not answer", part=part)
        return
    log.note(key, "agent", "answers", part=part)
    _compare_answer(log, live, instance, seen)


def _compare_remote_host(log: _DriftLog, live: Live, key: ResourceKey, instance: Instance) -> None:
    """Compare a host of another machine: only its answer counts, unless its cloud says that it has ended."""
    if instance.is_bought and (why := _ended(log.observed, instance)):
        log.tell(key, "host", str(instance.endpoint["id"]), GONE, part=instance.name, by=why)
        return
    if not instance.install_id:
        return
    seen = log.observed.hosts.get(instance.uid)
    if seen is None:
        log.tell(key, "connection", "answers", "does not answer", part=instance.name)
        return
    log.note(key, "host", str(instance.endpoint.get("id", "there")), part=instance.name)
    log.note(key, "connection", "answers", part=instance.name)
    if _follows_ledger(log, live, key, instance.name, seen):
        _compare_answer(log, live, instance, seen)


def _ended(observed: Observed, instance: Instance) -> str:
    listed = observed.clouds.get(place_of(instance.provider, instance.endpoint))
    return "" if listed is None else ended_text(instance, listed, now_ms=observed.at_ms)


def _follows_ledger(
    log: _DriftLog, live: Live, key: ResourceKey, part: str, seen: InstanceSeen | HostSeen
) -> bool:
    ours = f"{live.ledger_id} of epoch {live.epoch}"
    if seen.ledger_id and (
        (seen.ledger_id != live.ledger_id and seen.epoch >= live.epoch)
        or (seen.ledger_id == live.ledger_id and seen.epoch > live.epoch)
    ):
        theirs = f"{seen.ledger_id} of epoch {seen.epoch}"
        log.tell(key, "ledger", ours, theirs, part=part)
        return False
    log.note(key, "ledger", ours, part=part)
    return True


def _compare_answer(log: _DriftLog, live: Live, instance: Instance, seen: HostSeen) -> None:
    key = ResourceKey("fleet", instance.fleet)
    _compare_greeting(log, key, instance, seen)
    _compare_capacity(log, key, instance, seen)
    _find_strangers(log, live, instance, seen)


def _compare_greeting(log: _DriftLog, key: ResourceKey, instance: Instance, seen: HostSeen) -> None:
    if instance.install_id != seen.install_id:
        before, now = instance.install_id[:12], seen.install_id[:12]
        by = "its folder or the machine was created again"
        log.tell(key, "install", before, now, part=instance.name, by=by)
        return
    log.check(
        key, "boot", instance.boot_id[:12], seen.boot_id[:12], part=instance.name, by="a reboot"
    )


def _compare_capacity(log: _DriftLog, key: ResourceKey, instance: Instance, seen: HostSeen) -> None:
    """Compare what was found on the machine; declared capacity is not compared."""
    report, part = seen.report, instance.name
    for name, expected, found, shown in (
        ("cpu", instance.cpu_millicores, report.cpu_millicores, cores),
        ("memory", instance.memory_bytes, report.memory_bytes, size),
    ):
        if name not in instance.declared and found < expected:
            log.tell(key, name, shown(expected), shown(found), part=part)
        else:
            log.note(key, name, shown(expected), part=part)
    have = {gpu.uuid for gpu in report.gpus}
    missing = [gpu.uuid for gpu in instance.gpus if gpu.uuid not in have]
    wanted = f"{len(instance.gpus)} GPUs"
    if missing and "gpu" not in instance.declared:
        log.tell(key, "gpus", wanted, f"without {', '.join(missing)}", part=part)
    else:
        log.note(key, "gpus", wanted, part=part)


def _find_strangers(log: _DriftLog, live: Live, instance: Instance, seen: HostSeen) -> None:
    """Find jobs that the host remembers from this ledger and this ledger does not know."""
    if seen.ledger_id != live.ledger_id:
        return
    for record in seen.records or ():
        if record.key.run_uid not in log.observed.known_runs:
            name = record.run_name or f"recovered-{record.key.run_uid[:12]}"
            part = (
                f"{instance.name}/{record.key.run_uid[:12]}.{record.key.attempt}.{record.key.rank}"
            )
            log.tell(
                ResourceKey("run", name), "record", "in the ledger", record.state.value, part=part
            )


# -- volumes ------------------------------------------------------------------------------------

_IDENTITY = "identity"
"""Noted and never reported: it says whether a directory is the one that was there before."""


def _is_settled_volume(row: LiveResource) -> bool:
    made = row.key.kind == "volume" and row.state == "present"
    return made and not row.archived and not row.operation


def _compare_volume(log: _DriftLog, row: LiveResource) -> None:
    key = row.key
    place = log.observed.places.get(key.name)
    if place is None:
        return
    marked_as_ours = place.volume_uid == row.uid
    if not marked_as_ours and (moved := _found_elsewhere(log.observed, row.uid, place.path)):
        log.tell(key, "path", place.path, moved, changed_at_ms=place.changed_at_ms)
        return
    if place.volume_uid and not marked_as_ours:
        _tell_claim(log, row, place)
        return
    noted = log.noted(key, _IDENTITY)
    another = noted is not None and noted.value != place.identity
    if not place.exists:
        seen, lost = GONE, True
    elif not marked_as_ours and (another or place.is_empty):
        seen, lost = ("another directory, empty" if place.is_empty else OTHER_DATA), True
    else:
        seen, lost = "there", False
    if lost:
        log.tell(
            key, "directory", f"there, at {_path_of(row)}", seen,
            changed_at_ms=place.changed_at_ms,
            by=f"it belongs to {place.owner}" if place.owner else "",
        )  # fmt: skip
        return
    log.note(key, "directory", "there")
    log.note(key, _IDENTITY, place.identity)
    log.note(key, "claim", "ours")
    log.note(key, "path", place.path)
    if marked_as_ours:
        log.note(key, "mark", "ours")
    else:
        log.tell(key, "mark", "ours", "none", changed_at_ms=place.changed_at_ms)
    _compare_permissions(log, key, place)


def _compare_disk(log: _DriftLog, row: LiveResource, live: Live) -> None:
    disk = disk_of(row.outputs)
    if disk is None or row.key.name not in log.observed.disks:
        return
    seen = log.observed.disks[row.key.name]
    if seen is None:
        log.tell(
            row.key,
            "disk",
            f"there, as {disk.id} in {disk.zone or row.parsed.get('region', '')}",
            GONE,
        )
        return
    log.note(row.key, "disk", disk.id)
    at = attached_to(row.outputs)
    ours = {one.endpoint.get("id") for one in live.instances if one.uid == at}
    if seen.instance and seen.instance not in ours:
        log.tell(row.key, ATTACHMENT, "free", f"{ATTACHED_TO_TEXT}{seen.instance}")
    else:
        log.note(row.key, ATTACHMENT, "free")


def _tell_claim(log: _DriftLog, row: LiveResource, place: PlaceSeen) -> None:
    log.tell(
        row.key, "claim", "ours", f"volume {place.volume_name or place.volume_uid}",
        by=f"environment {short_uid(place.environment_uid)}",
        changed_at_ms=place.changed_at_ms,
    )  # fmt: skip


def _compare_permissions(log: _DriftLog, key: ResourceKey, place: PlaceSeen) -> None:
    for name, value in (("owner", place.owner), ("mode", place.mode)):
        before = log.noted(key, name)
        log.check(
            key, name, before.value if before is not None else value, value,
            changed_at_ms=place.changed_at_ms,
        )  # fmt: skip


def _found_elsewhere(observed: Observed, uid: str, path: str) -> str:
    return next((one.path for one in observed.volumes if one.uid == uid and one.path != path), "")


def _path_of(row: LiveResource) -> str:
    return str(row.parsed.get("path", ""))


# What a plan with a refresh does about drift.
# Drift is corrected only if nothing is lost. Drift that needs a decision is blocked, so that it is not overlooked, and a
# resource that the configuration changes anyway needs no correction.

_VERBS = {VERBS[verb].kind: verb for verb in UPDATES & ACTS_ON_HOSTS}
"""The verb that makes a resource as its last applied document says; twice is the same as once."""


_NAMED_MAX = 10


def correct_drift(draft: PlanDraft) -> None:
    """Propose what sets right what has drifted, or hold what a person must decide."""
    replaces = Selection(draft.scope.replaces)
    for key, drifts in _by_resource(draft).items():
        row, declared = draft.present.get(key), draft.wanted.get(key)
        if row is not None and declared is not None and _is_recreated(replaces, key, drifts):
            # Nothing is left to lose, so no other rule about replacements applies.
            draft.changes.pop(key, None)
            draft.held.pop(key, None)
            change = _change(_as_it_stays(declared, row), row, drifts, take="any", lost=True)
            change = replace(
                change,
                action=Action.REPLACE,
                reasons=(Reason.REPLACE_ASKED, Reason.DATA_LOST),
                at_stake=_users_text(draft, key),
            )
            draft.add(Proposal(change))
            continue
        # A resource that is removed needs no correction.
        if row is None or declared is None or key in draft.held:
            continue
        undecided = [one for one in drifts if one.remedy is Remedy.DECIDE]
        if key in draft.changes:
            # A change of the resource creates it again anyway; but a change in place needs the data.
            if undecided and _stays_in_place(draft.changes[key]):
                draft.hold(key, HeldBy.DRIFT, *_detail_and_cure(undecided))
            continue
        curable = [one for one in drifts if one.remedy is Remedy.APPLY]
        if undecided and key.kind in _VERBS:
            draft.held[key] = _held(_as_it_stays(declared, row), row, undecided)
        elif curable and key.kind in _VERBS:
            draft.add(Proposal(_change(_as_it_stays(declared, row), row, curable)))


def _is_recreated(replaces: Selection, key: ResourceKey, drifts: Sequence[Drift]) -> bool:
    """Tell whether `--replace` asks for an empty volume in place of one whose data is gone."""
    gone = key.kind == "volume" and any(one.field == "directory" for one in drifts)
    return gone and replaces.selects(key, "")


def _users_text(draft: PlanDraft, volume: ResourceKey) -> str:
    """Name the runs of the configuration that mount a volume whose data is lost."""
    names = sorted(
        {
            one.parent or key.name
            for key, one in draft.wanted.items()
            if key.kind == "run" and volume in one.references
        },
        key=natural_order,
    )
    if not names:
        return "its data is lost already, and no run mounts it"
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return f"its data is lost already; runs that mount it: {', '.join(names[:_NAMED_MAX])}{more}"


def _stays_in_place(change: Change) -> bool:
    return change.key.kind == "volume" and change.action is Action.UPDATE


def _as_it_stays(declared: Declared, row: LiveResource) -> Declared:
    """Return the document with the values that `ignore:` keeps: they are not corrected."""
    if not overlooks(declared):
        return declared
    return overlook(declared, row.document, row.digest, row.own_digest)


def _by_resource(draft: PlanDraft) -> dict[ResourceKey, list[Drift]]:
    found: dict[ResourceKey, list[Drift]] = {}
    if not draft.permissions.destroy:
        for one in (*draft.live.drift, *ended_since_a_look(draft.live)):
            found.setdefault(one.resource, []).append(one)
    return found


def _held(declared: Declared, row: LiveResource, drifts: Sequence[Drift]) -> Held:
    return Held(_change(declared, row, drifts), HeldBy.DRIFT, *_detail_and_cure(drifts))


def _detail_and_cure(drifts: Sequence[Drift]) -> tuple[str, str]:
    """What a person is to decide, and what releases it."""
    first = drifts[0]
    what = "; ".join(expected_and_seen(one.path, one.expected, one.seen) for one in drifts)
    return what, TABLE[first.resource.kind, first.field].cure.replace("NAME", first.resource.name)


def _change(declared: Declared, row: LiveResource, drifts: Sequence[Drift], **more: Any) -> Change:
    return Change(
        key=declared.key,
        action=Action.UPDATE,
        reasons=(Reason.DRIFTED,),
        type=declared.type,
        fields=tuple(
            FieldChange(one.path, one.seen, _corrected(one), field_class="control")
            for one in drifts
        ),
        steps=(_step(declared, more),),
        uid=row.uid,
        generation=row.generation,
        parent=row.parent,
        element=row.element,
    )


def _corrected(one: Drift) -> str:
    """Return what is seen after the correction: an instance of a cloud never returns, and has a successor."""
    return "another instance" if one.field == "host" and one.expected != "there" else one.expected


def _step(declared: Declared, more: Mapping[str, Any]) -> Step:
    """The same as creates it, for hosts keep what exists already."""
    made = KINDS[declared.key.kind].create(declared).change.steps[0]
    return make_step(_VERBS[declared.key.kind], declared.key, {**made.arguments, **more})
