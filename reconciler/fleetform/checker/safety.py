"""Losses of a plan, and whether they are permitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from fleetform.checker.context import (
    PlanContext,
    at_work,
    destroys,
    ends_on,
    host_called,
    is_over,
)
from fleetform.model.live import LiveResource, changed_rows
from fleetform.model.override import Override, OverrideKind
from fleetform.model.selection import Selection
from fleetform.model.verbs import (
    ADOPTS,
    CARRIES_DOCUMENT,
    EMPTIES_PATH,
    ENDS,
    FREES_PATH,
    TAKES_PATH,
    Verb,
    verbs_of,
)
from fleetform.model.windows import loosened, spell_at
from fleetform.spec.desired import ResourceKey, Rules
from fleetform.spec.folders import folders_of
from fleetform.spec.renaming import Renames

if TYPE_CHECKING:
    from fleetform.model.plan import Change, Step

# After one of these, what the row stood for is gone, or another has its name.
_ENDS = ENDS | {Verb.RUN_SUBMIT}


def check_protected_kept(context: PlanContext) -> Iterator[str]:
    for _, step in context.steps:
        row = context.row(step.resource)
        ends = step.verb in _ENDS or destroys(context, step)
        if ends and row is not None and row.protected:
            yield f"{step.verb} is planned for {step.resource}"
        if step.resource.kind == "fleet" and ends:
            for run in _protected_on(context, step.resource):
                yield f"{step.verb} is planned for {step.resource}, which runs {run}"


def _protected_on(context: PlanContext, fleet: ResourceKey) -> Iterator[ResourceKey]:
    """Protected runs that are at work on a fleet, by the names that the ledger knows."""
    gone = {one.part for one in context.live.drift if one.field == "host"}
    for work in ends_on(context, fleet):
        key = ResourceKey("run", work.run)
        row = context.live.resources.get(key)
        # With one of its hosts it is lost already.
        if row is not None and row.protected and not gone.intersection(work.hosts):
            yield key


def check_destruction_declared(context: PlanContext) -> Iterator[str]:
    for change in _destroying(context):
        if not change.destructive:
            yield f"{change.key} would be lost, and the plan does not say so"


def check_destruction_permitted(context: PlanContext) -> Iterator[str]:
    if context.permissions.allow_destroy or context.rules.allow_destroy:
        return
    for change in _destroying(context):
        if not _restart_permitted(context, change):
            yield f"no permission to end {change.key} was given"


def check_budget_held(context: PlanContext) -> Iterator[str]:
    if context.permissions.destroy:
        return
    doomed = Counter(key.kind for key in _lost(context))
    if not doomed:
        return
    totals = Counter(key.kind for key in context.live.resources)
    totals.subtract(
        key.kind for key, row in changed_rows(context.live.resources).items() if row.archived
    )
    for kind, count in sorted(doomed.items()):
        limit = max(
            context.rules.delete_count,
            totals[kind] * context.rules.delete_percent // 100,
            context.permissions.allow_deletes or 0,
        )
        if count > limit:
            yield f"the plan deletes {count} of {totals[kind]} {kind}s, and {limit} are allowed"


def _lost(context: PlanContext) -> set[ResourceKey]:
    """All that is not there after the plan, by whatever it ends: each run and resource once."""
    destroying = _destroying(context)
    lost = {ResourceKey(one.key.kind, one.replaces or one.key.name) for one in destroying}
    fleets = [one.key for one in destroying if one.key.kind == "fleet"]
    called = {before: after for after, before in context.earlier_names.items()}
    for work in (work for fleet in fleets for work in ends_on(context, fleet)):
        run = ResourceKey("run", work.run)
        row = context.live.resources.get(run)
        # What an earlier plan has ended, or what came to its end, is not lost by this one.
        if row is None or not (row.archived or is_over(row)):
            lost.add(called.get(run, run))
    return lost


def _destroying(context: PlanContext) -> list[Change]:
    """Changes that destroy by their steps, or that say they do; each once."""
    by_steps = context.destroyed
    return [
        change for change in context.plan.changes if change.destructive or change.key in by_steps
    ]


def _restart_permitted(context: PlanContext, change: Change) -> bool:
    """Restarting a run has a permission of its own."""
    # What it is called is another matter.
    verbs = [(one.verb, one.resource) for one in change.steps if one.verb != Verb.RESOURCE_MOVE]
    if verbs != [(Verb.RUN_STOP, change.key), (Verb.RUN_SUBMIT, change.key)]:
        return False
    declared, row = context.declared(change.key), context.row(change.key)
    asked = (
        declared is not None
        and declared.document.get("on_change") == "restart"
        # What a commit loosens helps the next plan.
        and row is not None
        and row.parsed.get("on_change") == "restart"
    )
    return asked or context.permissions.allow_restart


# That data goes only where the policy that was applied last lets it, is found again where it is
# kept, and is missed where it is gone.


def check_policy_obeyed(context: PlanContext) -> Iterator[str]:
    """Data is deleted where both documents say so, and kept as a snapshot where the ledger's says so."""
    for change, step in context.steps:
        row = context.row(step.resource)
        if row is None or step.verb not in FREES_PATH | {Verb.VOLUME_WITHDRAW}:
            continue
        policy = _policy(row)
        declared = context.declared(step.resource)
        wanted = policy if declared is None else declared.document.get("deletion_policy", "retain")
        if step.verb == Verb.VOLUME_WITHDRAW:
            data = step.arguments.get("data")
            if data == "delete" and (policy, wanted) != ("delete", "delete"):
                yield f"the data of {step.resource} would be deleted on some hosts, and its policy is `{policy}`"
            if (data == "snapshot") != (policy == "snapshot"):
                yield f"{step.resource} leaves hosts with `{data}`, and its policy is `{policy}`"
            continue
        released = step.resource in context.desired.removed and not context.permissions.destroy
        if step.verb == Verb.VOLUME_REMOVE and (policy, wanted) != ("delete", "delete"):
            yield f"the data of {step.resource} would be deleted, and its policy is `{policy}`"
        if (step.verb == Verb.VOLUME_SNAPSHOT) != (policy == "snapshot" and not released):
            yield f"{step.verb} is planned for {change.key}, and its policy is `{policy}`"


def check_snapshot_adjacent(context: PlanContext) -> Iterator[str]:
    """A snapshot has a name of its own next to the volume's directory, or it could not be a rename."""
    for _, step in context.steps:
        row = context.row(step.resource)
        is_aside = step.verb == Verb.VOLUME_SNAPSHOT or "into" in step.arguments
        if not is_aside or row is None or "backend" in row.parsed:
            continue
        path, into = str(step.arguments.get("path", "")), str(step.arguments.get("into", ""))
        beside = into.rpartition("/")[0] == path.rpartition("/")[0] and into.startswith(path)
        own = row.uid[:12] in into.rpartition("/")[2]
        if path != row.parsed.get("path") or not beside or not own or into == path:
            yield f"the snapshot of {step.resource} at {path} would be {into}"


def check_loss_seen(context: PlanContext) -> Iterator[str]:
    """An empty directory in the place of one that is gone looks well and hides that its data is."""
    asked = Selection(context.scope.replaces)
    gone = {one.resource for one in context.live.drift if one.field == "directory"}
    for _, step in context.steps:
        row = context.row(step.resource)
        if step.verb != Verb.VOLUME_UPDATE or "take" not in step.arguments or row is None:
            continue
        known_as = context.earlier_names.get(step.resource, step.resource)
        if row.digest and not (known_as in gone and asked.selects(step.resource, "")):
            yield f"{step.key} would create a directory that is missing"


def _policy(row: LiveResource) -> str:
    # One that was never made in whole has no document: nothing is known to be deletable.
    document = row.parsed
    return str(document.get("deletion_policy", "retain"))


# That no volume comes where another one still is.


def check_places_free(context: PlanContext) -> Iterator[str]:
    """A directory belongs to one volume; only a released one leaves it to a volume that adopts it."""
    taking = [step for _, step in context.steps if step.verb in TAKES_PATH]
    if not taking:
        return
    there = _staying(context)
    around = {folder: key for path, key in there.items() for folder in folders_of(path)}
    for step in taking:
        path = str(step.arguments.get("path", ""))
        has_it = there.get(path)
        if has_it is not None and step.verb == Verb.VOLUME_ADOPT and _is_released(context, has_it):
            has_it = None
        near = [has_it, around.get(path), *(there.get(folder) for folder in folders_of(path))]
        for other in near:
            if other is not None and other != step.resource:
                yield f"{step.resource} would be at {path}, where {other} is"


def _staying(context: PlanContext) -> dict[str, ResourceKey]:
    """By their directories, volumes whose data is there after the plan; no two have one place."""
    found: dict[str, ResourceKey] = {}
    # What is as declared is in nobody's way: the language lets no two come to one place.
    for key, row in changed_rows(context.rows).items():
        if key.kind != "volume" or row.archived:
            continue
        path = row.parsed.get("path")
        emptied = any(f"{verb}:{key}" in context.steps_by_key for verb in EMPTIES_PATH)
        if path is not None and not emptied:
            found[path] = key
    return found


def _is_released(context: PlanContext, key: ResourceKey) -> bool:
    return f"volume.forget:{key}" in context.steps_by_key


# That what is let go stays as it is, and that only what was meant is taken in as it is found.


def check_released_kept(context: PlanContext) -> Iterator[str]:
    """Nothing of it is ended, and only what `removed:` names is forgotten by a verb of its own."""
    if context.permissions.destroy:
        return
    released = frozenset(context.desired.removed)
    for change in context.plan.changes:
        is_released = bool(released) and not released.isdisjoint(
            (change.key, ResourceKey(change.key.kind, change.parent))
        )
        for step in change.steps:
            if step.verb in {Verb.FLEET_FORGET, Verb.RUN_FORGET} and not is_released:
                yield f"`removed:` does not list {change.key}, which would be released"
            if is_released and destroys(context, step):
                yield f"{step.key} is planned for a released resource"
        row = context.row(change.key)
        if is_released and row is not None and at_work(row):
            yield f"{change.key} is running and would be released"


def check_returns_own(context: PlanContext) -> Iterator[str]:
    """Returning data is what the ledger released, under that name and in that place, and pinned."""
    left = {(one.volume, one.uid, one.path) for one in context.live.left}
    called = context.earlier_names
    for _, step in context.steps:
        uid = step.arguments.get("returns")
        if uid is None:
            continue
        known_as = called.get(step.resource, step.resource).name
        place = str(step.arguments.get("path", ""))
        if step.verb == Verb.VOLUME_MAKE and (uid, place) == _released_before(context, step):
            continue
        if step.verb != Verb.VOLUME_MAKE or (known_as, uid, place) not in left:
            yield f"{step.resource} would get the data in {place}"
        elif context.claims.get(("left", step.resource)) != uid:
            yield f"no predicate names the data in {place} for {step.resource}"


def _released_before(context: PlanContext, step: Step) -> tuple[str, str]:
    """Uid and place of what the same plan releases under this name first; empty where nothing."""
    row = context.row(step.resource)
    first = context.steps_by_key.get(f"volume.forget:{step.resource}")
    if row is None or first is None or first.key not in step.needs:
        return ("", "")
    return (row.uid, str(first.arguments.get("path", "")))


def check_found_asked_for(context: PlanContext) -> Iterator[str]:
    for _, step in context.steps:
        if step.verb in ADOPTS and step.resource not in context.desired.imports:
            yield f"{step.resource} would be adopted"


# That a plan keeps to what stands above it: overrides, freeze windows, and other people's property.
# Both overrides and windows hold at times. A plan says when it was made; one of a file is asked for
# the present time by whoever enters it, and not here.


def check_overrides_listed(context: PlanContext) -> Iterator[str]:
    """A plan lists every override that is in force, and no other."""
    if context.plan.kept is not None:
        return
    listed, here = context.plan.overrides, tuple(_in_force(context))
    # One that is about what is renamed may be told of by either name.
    called = [_called_now(one, context) for one in here]
    for one, now in zip(here, called, strict=True):
        if one not in listed and now not in listed:
            yield f"the plan does not list the {one.title}"
    for one in listed:
        if one not in here and one not in called:
            yield f"the plan lists the {one.title}, which is not in force"


def check_overrides_kept(context: PlanContext) -> Iterator[str]:
    """Nothing is changed under a freeze, and nothing begins that a stop keeps from it."""
    if context.plan.kept is not None:
        return
    # It goes with what it is about: who renames a stopped run does not let it begin.
    here = tuple(_called_now(one, context) for one in _in_force(context))
    frozen = next((one for one in here if one.kind is OverrideKind.FREEZE), None)
    stops = [one for one in here if one.kind is OverrideKind.STOP]
    if frozen is not None:
        for change in context.plan.changes:
            yield f"{change.key} would change during the {frozen.title}"
    for change, step in context.steps if stops else ():
        stop = next((one for one in stops if one.stops(step.resource.name, change.parent)), None)
        if step.verb == Verb.RUN_SUBMIT and stop is not None:
            yield f"{step.resource} would start during the {stop.title}"


def _in_force(context: PlanContext) -> Iterator[Override]:
    at_ms = int(context.plan.annex["planned_at_ms"])
    return (one for one in context.live.overrides if one.holds_at(at_ms))


def _called_now(override: Override, context: PlanContext) -> Override:
    """The same override, about what is declared under another name by now."""
    kind, slash, name = override.target.partition("/")
    if not slash or not context.desired.moved:
        return override
    if kind == "host":
        return _host_called_now(override, name, context)
    after = Renames(dict(context.desired.moved)).of(ResourceKey(kind, name))
    there = context.live.resources.get(after)
    if there is not None and not there.archived:
        return override  # Nothing is renamed to what something else is called.
    return replace(override, target=str(after))


def _host_called_now(override: Override, name: str, context: PlanContext) -> Override:
    for before, after in context.desired.moved:
        now = host_called(name, before.name, after.name) if before.kind == "fleet" else name
        if now != name:
            return replace(override, target=f"host/{now}")
    return override


def check_windows_kept(context: PlanContext) -> Iterator[str]:
    """Nothing is changed that an open window of the rules last applied holds."""
    windows = context.rules.freeze
    if not windows or context.plan.kept is not None:
        return
    if any(one.kind is OverrideKind.THAW for one in _in_force(context)):
        return
    at_ms = int(context.plan.annex["planned_at_ms"])
    for window in windows:
        if spell_at(window, at_ms) is None:
            continue
        for change in context.plan.changes:
            kept = window.only == "all" or change.destructive
            if _loosens(context, change) or (kept and change.key.kind != "environment"):
                yield f"{change.key} would change in the freeze window ({window.reason})"


def _loosens(context: PlanContext, change: Change) -> bool:
    return any(
        step.verb == Verb.RULES_SET
        and bool(loosened(context.rules, Rules.of(step.arguments["rules"])))
        for step in change.steps
    )


def check_owners_kept(context: PlanContext) -> Iterator[str]:
    """A path with another owner's marker is neither created nor written over; a missing one, not found."""
    for key, claim in context.live.claims.items() if context.live.claims else ():
        makes = {Verb.VOLUME_ADOPT} if claim.missing else verbs_of("volume") & CARRIES_DOCUMENT
        for change, step in context.steps:
            if change.key == key and step.verb in makes:
                yield f"{step.key} is planned, and {claim.sentence}"
