"""What is lost by a plan, and whether somebody has allowed it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from fleetform.checker.context import (
    Invariant,
    Reading,
    Violation,
    at_work,
    destroys,
    ends_on,
    host_called,
    is_over,
)
from fleetform.model.live import LiveResource
from fleetform.model.override import Override, OverrideKind
from fleetform.model.plan import Change, Step
from fleetform.model.rows import restless_rows
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

# After one of these, what the row stood for is gone, or another has its name.
_ENDS = ENDS | {Verb.RUN_SUBMIT}


def check_protected_kept(reading: Reading) -> Iterator[Violation]:
    for _, step in reading.steps:
        row = reading.row(step.resource)
        ends = step.verb in _ENDS or destroys(reading, step)
        if ends and row is not None and row.protected:
            yield Violation(
                Invariant.PROTECTED_STAYS, f"{step.verb} is planned for {step.resource}"
            )
        if step.resource.kind == "fleet" and ends:
            for run in _protected_on(reading, step.resource):
                yield Violation(
                    Invariant.PROTECTED_STAYS,
                    f"{step.verb} is planned for {step.resource}, which runs {run}",
                )


def _protected_on(reading: Reading, fleet: ResourceKey) -> Iterator[ResourceKey]:
    """Protected runs that are at work on a fleet, by the names that the ledger knows."""
    gone = {one.part for one in reading.live.drift if one.field == "host"}
    for work in ends_on(reading, fleet):
        key = ResourceKey("run", work.run)
        row = reading.live.resources.get(key)
        # With one of its hosts it is lost already.
        if row is not None and row.protected and not gone.intersection(work.hosts):
            yield key


def check_destruction_declared(reading: Reading) -> Iterator[Violation]:
    for change in _destroying(reading):
        if not change.destructive:
            yield Violation(
                Invariant.DESTRUCTION_DECLARED,
                f"{change.key} would be lost, and the plan does not say so",
            )


def check_destruction_permitted(reading: Reading) -> Iterator[Violation]:
    if reading.permissions.allow_destroy or reading.rules.allow_destroy:
        return
    for change in _destroying(reading):
        if not _restart_permitted(reading, change):
            yield Violation(
                Invariant.DESTRUCTION_PERMITTED, f"no permission to end {change.key} was given"
            )


def check_budget_held(reading: Reading) -> Iterator[Violation]:
    if reading.permissions.destroy:
        return
    doomed = Counter(key.kind for key in _lost(reading))
    if not doomed:
        return
    totals = Counter(key.kind for key in reading.live.resources)
    totals.subtract(
        key.kind for key, row in restless_rows(reading.live.resources).items() if row.archived
    )
    for kind, count in sorted(doomed.items()):
        limit = max(
            reading.rules.delete_count,
            totals[kind] * reading.rules.delete_percent // 100,
            reading.permissions.allow_deletes or 0,
        )
        if count > limit:
            yield Violation(
                Invariant.WITHIN_BUDGET,
                f"the plan deletes {count} of {totals[kind]} {kind}s, and {limit} are allowed",
            )


def _lost(reading: Reading) -> set[ResourceKey]:
    """All that is not there after the plan, by whatever it ends: each run and resource once."""
    destroying = _destroying(reading)
    lost = {ResourceKey(one.key.kind, one.replaces or one.key.name) for one in destroying}
    fleets = [one.key for one in destroying if one.key.kind == "fleet"]
    called = {before: after for after, before in reading.earlier_names.items()}
    for work in (work for fleet in fleets for work in ends_on(reading, fleet)):
        run = ResourceKey("run", work.run)
        row = reading.live.resources.get(run)
        # What an earlier plan has ended, or what came to its end, is not lost by this one.
        if row is None or not (row.archived or is_over(row)):
            lost.add(called.get(run, run))
    return lost


def _destroying(reading: Reading) -> list[Change]:
    """Changes that destroy by their steps, or that say they do; each once."""
    by_steps = reading.destroyed
    return [
        change for change in reading.plan.changes if change.destructive or change.key in by_steps
    ]


def _restart_permitted(reading: Reading, change: Change) -> bool:
    """Ending a run in order to start it anew can be allowed by itself."""
    # What it is called is another matter.
    verbs = [(one.verb, one.resource) for one in change.steps if one.verb != Verb.RESOURCE_MOVE]
    if verbs != [(Verb.RUN_STOP, change.key), (Verb.RUN_SUBMIT, change.key)]:
        return False
    declared, row = reading.declared(change.key), reading.row(change.key)
    asked = (
        declared is not None
        and declared.document.get("on_change") == "restart"
        # What a commit loosens helps the next plan.
        and row is not None
        and json.loads(row.document).get("on_change") == "restart"
    )
    return asked or reading.permissions.allow_restart


# That data goes only where the policy that was applied last lets it, is found again where it is
# kept, and is missed where it is gone.


def check_policy_obeyed(reading: Reading) -> Iterator[Violation]:
    """Deleted is what both documents want deleted, and put aside what the ledger's says so of."""
    for change, step in reading.steps:
        row = reading.row(step.resource)
        if step.verb not in FREES_PATH or row is None:
            continue
        policy = _policy(row)
        declared = reading.declared(step.resource)
        wanted = policy if declared is None else declared.document.get("deletion_policy", "retain")
        let_go = step.resource in reading.desired.removed and not reading.permissions.destroy
        if step.verb == Verb.VOLUME_REMOVE and (policy, wanted) != ("delete", "delete"):
            yield Violation(
                Invariant.POLICY_OBEYED,
                f"the data of {step.resource} would be deleted, and its policy is `{policy}`",
            )
        if (step.verb == Verb.VOLUME_SNAPSHOT) != (policy == "snapshot" and not let_go):
            yield Violation(
                Invariant.POLICY_OBEYED,
                f"{step.verb} is planned for {change.key}, and its policy is `{policy}`",
            )


def check_snapshot_beside(reading: Reading) -> Iterator[Violation]:
    """What is put aside gets a name of its own beside where it lay, or it could not be a rename."""
    for _, step in reading.steps:
        row = reading.row(step.resource)
        if step.verb != Verb.VOLUME_SNAPSHOT or row is None:
            continue
        path, into = str(step.arguments.get("path", "")), str(step.arguments.get("into", ""))
        beside = into.rpartition("/")[0] == path.rpartition("/")[0] and into.startswith(path)
        own = row.uid[:12] in into.rpartition("/")[2]
        if path != json.loads(row.document).get("path") or not beside or not own or into == path:
            yield Violation(
                Invariant.SNAPSHOT_BESIDE,
                f"the snapshot of {step.resource} at {path} would be {into}",
            )


def check_loss_seen(reading: Reading) -> Iterator[Violation]:
    """An empty directory in the place of one that is gone looks well and hides that its data is."""
    asked = Selection(reading.scope.replaces)
    gone = {one.resource for one in reading.live.drift if one.field == "directory"}
    for _, step in reading.steps:
        row = reading.row(step.resource)
        if step.verb != Verb.VOLUME_UPDATE or "take" not in step.arguments or row is None:
            continue
        known_as = reading.earlier_names.get(step.resource, step.resource)
        if row.digest and not (known_as in gone and asked.selects(step.resource, "")):
            yield Violation(
                Invariant.LOSS_SEEN, f"{step.key} would create a directory that is missing"
            )


def _policy(row: LiveResource) -> str:
    # One that was never made in whole has no document: nothing is known to be deletable.
    document = json.loads(row.document) if row.document else {}
    return str(document.get("deletion_policy", "retain"))


# That no volume comes where another one still is.


def check_places_free(reading: Reading) -> Iterator[Violation]:
    """A directory is one volume's; only what is let go leaves it to whoever takes it in as it is."""
    taking = [step for _, step in reading.steps if step.verb in TAKES_PATH]
    if not taking:
        return
    there = _staying(reading)
    around = {folder: key for path, key in there.items() for folder in folders_of(path)}
    for step in taking:
        path = str(step.arguments.get("path", ""))
        has_it = there.get(path)
        if has_it is not None and step.verb == Verb.VOLUME_ADOPT and _is_let_go(reading, has_it):
            has_it = None
        near = [has_it, around.get(path), *(there.get(folder) for folder in folders_of(path))]
        for other in near:
            if other is not None and other != step.resource:
                yield Violation(
                    Invariant.PLACE_IS_FREE, f"{step.resource} would be at {path}, where {other} is"
                )


def _staying(reading: Reading) -> dict[str, ResourceKey]:
    """By their directories, volumes whose data is there after the plan; no two have one place."""
    found: dict[str, ResourceKey] = {}
    # What is as declared is in nobody's way: the language lets no two come to one place.
    for key, row in restless_rows(reading.rows).items():
        if key.kind != "volume" or row.archived:
            continue
        path = json.loads(row.document).get("path")
        emptied = any(f"{verb}:{key}" in reading.steps_by_key for verb in EMPTIES_PATH)
        if path is not None and not emptied:
            found[path] = key
    return found


def _is_let_go(reading: Reading, key: ResourceKey) -> bool:
    return f"volume.forget:{key}" in reading.steps_by_key


# That what is let go stays as it is, and that only what was meant is taken in as it is found.


def check_let_go_kept(reading: Reading) -> Iterator[Violation]:
    """Nothing of it is ended, and only what `removed:` names is forgotten by a verb of its own."""
    if reading.permissions.destroy:
        return
    let_go = frozenset(reading.desired.removed)
    for change in reading.plan.changes:
        is_let_go = bool(let_go) and not let_go.isdisjoint(
            (change.key, ResourceKey(change.key.kind, change.parent))
        )
        for step in change.steps:
            if step.verb in {Verb.FLEET_FORGET, Verb.RUN_FORGET} and not is_let_go:
                yield Violation(
                    Invariant.LET_GO_IS_KEPT,
                    f"`removed:` does not list {change.key}, which would be released",
                )
            if is_let_go and destroys(reading, step):
                yield Violation(
                    Invariant.LET_GO_IS_KEPT, f"{step.key} is planned for a released resource"
                )
        row = reading.row(change.key)
        if is_let_go and row is not None and at_work(row):
            yield Violation(
                Invariant.LET_GO_IS_KEPT, f"{change.key} is running and would be released"
            )


def check_returns_own(reading: Reading) -> Iterator[Violation]:
    """What comes back is what the ledger let go, under that name and in that place, and pinned."""
    left = {(one.volume, one.uid, one.path) for one in reading.live.left}
    called = reading.earlier_names
    for _, step in reading.steps:
        uid = step.arguments.get("returns")
        if uid is None:
            continue
        known_as = called.get(step.resource, step.resource).name
        place = str(step.arguments.get("path", ""))
        if step.verb == Verb.VOLUME_MAKE and (uid, place) == _let_go_before(reading, step):
            continue
        if step.verb != Verb.VOLUME_MAKE or (known_as, uid, place) not in left:
            yield Violation(
                Invariant.RETURNS_ITS_OWN, f"{step.resource} would get the data in {place}"
            )
        elif reading.claims.get(("left", step.resource)) != uid:
            yield Violation(
                Invariant.RETURNS_ITS_OWN,
                f"no predicate names the data in {place} for {step.resource}",
            )


def _let_go_before(reading: Reading, step: Step) -> tuple[str, str]:
    """Uid and place of what the same plan lets go of under this name first; empty where nothing."""
    row = reading.row(step.resource)
    first = reading.steps_by_key.get(f"volume.forget:{step.resource}")
    if row is None or first is None or first.key not in step.needs:
        return ("", "")
    return (row.uid, str(first.arguments.get("path", "")))


def check_found_asked_for(reading: Reading) -> Iterator[Violation]:
    for _, step in reading.steps:
        if step.verb in ADOPTS and step.resource not in reading.desired.imports:
            yield Violation(Invariant.FOUND_IS_ASKED_FOR, f"{step.resource} would be adopted")


# That a plan keeps to what stands above it: overrides, freeze windows, and other people's property.
# Both overrides and windows hold at times. A plan says when it was made; one of a file is asked for
# the present time by whoever enters it, and not here.


def check_overrides_told(reading: Reading) -> Iterator[Violation]:
    """A plan lists every override that is in force, and no other."""
    if reading.plan.kept is not None:
        return
    listed, here = reading.plan.overrides, tuple(_in_force(reading))
    # One that is about what is renamed may be told of by either name.
    called = [_called_now(one, reading) for one in here]
    for one, now in zip(here, called, strict=True):
        if one not in listed and now not in listed:
            yield Violation(Invariant.OVERRIDES_TOLD, f"the plan does not list the {one.title}")
    for one in listed:
        if one not in here and one not in called:
            yield Violation(
                Invariant.OVERRIDES_TOLD, f"the plan lists the {one.title}, which is not in force"
            )


def check_overrides_kept(reading: Reading) -> Iterator[Violation]:
    """Nothing is changed under a freeze, and nothing begins that a stop keeps from it."""
    if reading.plan.kept is not None:
        return
    # It goes with what it is about: who renames a stopped run does not let it begin.
    here = tuple(_called_now(one, reading) for one in _in_force(reading))
    frozen = next((one for one in here if one.kind is OverrideKind.FREEZE), None)
    stops = [one for one in here if one.kind is OverrideKind.STOP]
    if frozen is not None:
        for change in reading.plan.changes:
            yield Violation(
                Invariant.OVERRIDES_KEPT, f"{change.key} would change during the {frozen.title}"
            )
    for change, step in reading.steps if stops else ():
        stop = next((one for one in stops if one.stops(step.resource.name, change.parent)), None)
        if step.verb == Verb.RUN_SUBMIT and stop is not None:
            yield Violation(
                Invariant.OVERRIDES_KEPT, f"{step.resource} would start during the {stop.title}"
            )


def _in_force(reading: Reading) -> Iterator[Override]:
    at_ms = int(reading.plan.annex["planned_at_ms"])
    return (one for one in reading.live.overrides if one.holds_at(at_ms))


def _called_now(override: Override, reading: Reading) -> Override:
    """The same override, about what is declared under another name by now."""
    kind, slash, name = override.target.partition("/")
    if not slash or not reading.desired.moved:
        return override
    if kind == "host":
        return _host_called_now(override, name, reading)
    after = Renames(dict(reading.desired.moved)).of(ResourceKey(kind, name))
    there = reading.live.resources.get(after)
    if there is not None and not there.archived:
        return override  # Nothing is renamed to what something else is called.
    return replace(override, target=str(after))


def _host_called_now(override: Override, name: str, reading: Reading) -> Override:
    for before, after in reading.desired.moved:
        now = host_called(name, before.name, after.name) if before.kind == "fleet" else name
        if now != name:
            return replace(override, target=f"host/{now}")
    return override


def check_windows_kept(reading: Reading) -> Iterator[Violation]:
    """Nothing is changed that an open window of the rules last applied holds."""
    windows = reading.rules.freeze
    if not windows or reading.plan.kept is not None:
        return
    if any(one.kind is OverrideKind.THAW for one in _in_force(reading)):
        return
    at_ms = int(reading.plan.annex["planned_at_ms"])
    for window in windows:
        if spell_at(window, at_ms) is None:
            continue
        for change in reading.plan.changes:
            kept = window.only == "all" or change.destructive
            if _loosens(reading, change) or (kept and change.key.kind != "environment"):
                yield Violation(
                    Invariant.WINDOWS_KEPT,
                    f"{change.key} would change in the freeze window ({window.reason})",
                )


def _loosens(reading: Reading, change: Change) -> bool:
    return any(
        step.verb == Verb.RULES_SET
        and bool(loosened(reading.rules, Rules.of(step.arguments["rules"])))
        for step in change.steps
    )


def check_owners_kept(reading: Reading) -> Iterator[Violation]:
    """What bears another owner's mark is neither made nor written over; what is not there, not found."""
    for key, claim in reading.live.claims.items() if reading.live.claims else ():
        makes = {Verb.VOLUME_ADOPT} if claim.missing else verbs_of("volume") & CARRIES_DOCUMENT
        for change, step in reading.steps:
            if change.key == key and step.verb in makes:
                yield Violation(
                    Invariant.OWNERS_KEPT, f"{step.key} is planned, and {claim.sentence}"
                )
