"""
What is declared rightly and cannot be carried out: it is shown, and left alone.

Either nothing acts on one of its fields yet, so that it would become something else than was
declared; or it names what no document declares. The comparison has left these out; here they
are listed, with all that stands in their way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fleetform.model.drift import GONE
from fleetform.model.instance import InstanceState
from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Change, Held, HeldBy, Reason
from fleetform.model.verbs import (
    ACTS_ON_HOSTS,
    CARRIES_DOCUMENT,
    EMPTIES_PATH,
    REFERRING,
    Verb,
    verbs_of,
)
from fleetform.model.volume import DISK, mounts
from fleetform.plan.diff import changed_fields, set_fields
from fleetform.plan.draft import PlanDraft
from fleetform.plan.kinds.fleet import nodes_wanted
from fleetform.spec.desired import Declared, Obstacle, ResourceKey, Unsupported
from fleetform.spec.kinds import RESOURCES

__all__ = [
    "held_by_obstacles",
    "hold_beyond",
    "hold_broken",
    "hold_hostless",
    "hold_on_missing_volumes",
]


_UNDECLARED = "undeclared-reference"

_DECLARE = "declare the resource that it refers to"
_WAIT = "wait for a version that supports it"


def hold_beyond(draft: PlanDraft) -> None:
    if draft.permissions.destroy:
        return
    for key, beyond in draft.desired.beyond.items():
        row = draft.present.get(key)
        if row is None or row.digest != beyond.declared.digest:
            draft.held[key] = held_by_obstacles(beyond, row)


def held_by_obstacles(beyond: Unsupported, row: LiveResource | None) -> Held:
    """Return the blocked change of a resource; `row` is what the ledger has of it."""
    change = _change(beyond.declared, row)
    missing = [_clause(one) for one in beyond.obstacles if one.code == _UNDECLARED]
    others = [one for one in beyond.obstacles if one.code != _UNDECLARED]
    if not missing:
        return Held(
            change, HeldBy.NOT_SUPPORTED, _unbuilt(others), f"{_removal(others)}, or {_WAIT}"
        )
    if not others:
        return Held(change, HeldBy.DEPENDENCY, "; ".join(missing), _DECLARE)
    # Told together: whoever only declares what is missing would have been sent on an errand.
    detail = "; ".join((*missing, _unbuilt(others)))
    return Held(change, HeldBy.DEPENDENCY, detail, f"{_DECLARE}, and {_WAIT}")


def _unbuilt(obstacles: Sequence[Obstacle]) -> str:
    """One is shown with its reason; of several, that would be a page which `validate` has."""
    if len(obstacles) == 1:
        return _clause(obstacles[0])
    return f"not supported yet: {_fields(obstacles)}"


def _removal(obstacles: Sequence[Obstacle]) -> str:
    """Name the fields; of a whole kind that is not supported, the document is what is to go."""
    fields = {one.field for one in obstacles}
    return f"remove {'the document' if fields & {'', 'type'} else _fields(obstacles)}"


def _clause(obstacle: Obstacle) -> str:
    """What stands in the way, to go on a sentence with."""
    return f"{obstacle.detail[:1].lower()}{obstacle.detail[1:].rstrip('.')}"


def _fields(obstacles: Iterable[Obstacle]) -> str:
    quoted = [f"`{name}`" for name in sorted({one.field for one in obstacles})]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _change(declared: Declared, row: LiveResource | None) -> Change:
    return Change(
        key=declared.key,
        action=Action.CREATE if row is None else Action.UPDATE,
        reasons=(Reason.ABSENT,) if row is None else (),
        type=declared.type,
        fields=set_fields(declared.key.kind, declared.document)
        if row is None
        else changed_fields(declared.key.kind, row.parsed, declared.document),
        uid="" if row is None else row.uid,
        generation=0 if row is None else row.generation,
        parent=declared.parent,
        element=declared.element,
    )


# Nothing starts on a volume whose directory was seen to be gone.
# Its job could not mount it, and each retry would fail in the same way. The recorded drift is evidence enough:
# what was seen stays in force until a look finds the directory, or a person begins with an empty one.

_VOLUME_CURE = (
    "put the data back and check it with `fleetform drift`, or start with an empty volume:"
    " `fleetform apply --refresh --replace {key}`"
)


def hold_on_missing_volumes(draft: PlanDraft) -> None:
    gone = _missing_volumes(draft)
    if not gone:
        return
    for key in sorted(draft.changes):
        declared = draft.wanted.get(key)
        if declared is None or not any(
            step.verb == Verb.RUN_SUBMIT for step in draft.changes[key].steps
        ):
            continue
        for names in mounts(declared.document):
            # Of alternatives, one that is there is enough.
            if names and gone.issuperset(names):
                volume = ResourceKey("volume", names[0])
                detail = f"it mounts {volume}, whose directory is gone"
                draft.hold(key, HeldBy.DRIFT, detail, _VOLUME_CURE.format(key=volume))
                break


def _missing_volumes(draft: PlanDraft) -> set[str]:
    """Name the volumes without a directory, less those that this plan makes again."""
    return {
        one.drift.resource.name
        for one in draft.live.recorded_drift
        if one.drift.resource.kind == "volume"
        and one.drift.field == "directory"
        and one.drift.seen == GONE
        and not _is_made_again(draft, one.drift.resource)
    }


def _is_made_again(draft: PlanDraft, key: ResourceKey) -> bool:
    change = draft.changes.get(key)
    return change is not None and (
        change.action is not Action.UPDATE or Reason.REPLACE_ASKED in change.reasons
    )


# What is done on a fleet's hosts waits until the fleet has one.

_AFTER_HOSTS = verbs_of(*REFERRING) & CARRIES_DOCUMENT & ACTS_ON_HOSTS
_GONE = frozenset({InstanceState.TERMINATING, InstanceState.TERMINATED})


def hold_hostless(draft: PlanDraft) -> None:
    """
    Hold changes of volumes on a fleet with `nodes: 0`, or of which nothing is known any more.

    Data is put somewhere by a host that is to be, and taken away by one that still is.
    """
    fleets = {
        (change.key, step.arguments["fleet"], step.verb)
        for change in draft.changes.values()
        if change.key.kind == "volume"
        for step in change.steps
        if (step.verb in _AFTER_HOSTS or step.verb in EMPTIES_PATH) and DISK not in step.arguments
    }
    empty = {name for name in {fleet for _, fleet, _ in fleets} if _wants_none(draft, name)}
    if not empty:
        return
    there = {one.fleet for one in draft.live.instances if one.state not in _GONE}
    for key, fleet, verb in sorted(fleets):
        if fleet not in empty or key not in draft.changes:
            continue
        if verb in _AFTER_HOSTS or fleet not in there:
            or_else = "" if verb in _AFTER_HOSTS else f", or list {key} under `removed:`"
            draft.hold(
                key,
                HeldBy.DEPENDENCY,
                f"the change needs a host of fleet {fleet}, which has none",
                f"declare at least one node in fleet {fleet}{or_else}",
            )


def _wants_none(draft: PlanDraft, fleet: str) -> bool:
    key = ResourceKey("fleet", fleet)
    declared = draft.wanted.get(key)
    if declared is not None:
        return nodes_wanted(declared.document) == 0
    row = draft.present.get(key)
    return row is None or nodes_wanted(row.parsed) == 0


# A document with an error holds back itself and what refers to it.
# What it would have declared is not known, so its resources are neither changed nor removed:
# the last good version stays in force. The comparison has left them out; here they are listed.
# While a file cannot be read at all, nothing goes for being absent.

_DOCUMENT_CURE = "correct the document; `fleetform validate` lists its findings"


def hold_broken(draft: PlanDraft) -> None:
    if draft.permissions.destroy:
        return
    if draft.desired.unread:
        _hold_removals(draft)
    if draft.desired.broken:
        _hold_what_is_broken(draft)


def _hold_removals(draft: PlanDraft) -> None:
    """A file that cannot be read may declare what seems to be gone."""
    file, *more = draft.desired.unread
    files = file if not more else f"{file} and {len(more)} more"
    for key in sorted(draft.changes):
        if key not in draft.wanted and key.kind != "environment":
            detail = f"{files} cannot be read and may declare it"
            draft.hold(key, HeldBy.BROKEN_DOCUMENT, detail, f"make {files} readable")


def _hold_what_is_broken(draft: PlanDraft) -> None:
    broken = draft.desired.broken
    for key in sorted(draft.changes):
        declared = draft.wanted.get(key)
        cause = None if declared is None else _broken_reference(broken, declared)
        if cause is not None:
            detail = f"{cause}, which it refers to, has an invalid document"
            draft.hold(key, HeldBy.BROKEN_DOCUMENT, detail, _DOCUMENT_CURE)
    for key in sorted(_surely_broken(draft)):
        if key.kind != "environment":
            change = _unknown_change(draft, key)
            detail = "its document is invalid"
            draft.held[key] = Held(change, HeldBy.BROKEN_DOCUMENT, detail, _DOCUMENT_CURE)


def _surely_broken(draft: PlanDraft) -> set[ResourceKey]:
    """
    What is broken, without what it only might be.

    A document of unknown kind stands for one of each kind, so that nothing is touched which it may
    declare. To people it is what there is of that name, or else a run.
    """
    broken = set(draft.desired.broken)
    kinds: dict[str, set[str]] = {}
    for key in broken:
        kinds.setdefault(key.name, set()).add(key.kind)
    for name, said in kinds.items():
        if not said >= RESOURCES.keys():
            continue
        guessed = {ResourceKey(kind, name) for kind in said}
        there = {key for key in guessed if _is_there(draft, key)}
        broken -= guessed - (there or {ResourceKey("run", name)})
    return broken


def _is_there(draft: PlanDraft, key: ResourceKey) -> bool:
    return key in draft.present or any(
        one.kind == key.kind and one.parent == key.name for one in draft.present
    )


def _broken_reference(broken: frozenset[ResourceKey], declared: Declared) -> ResourceKey | None:
    """The first broken thing that a document refers to, or None."""
    runs = (ResourceKey("run", name) for name in declared.upstream)
    for key in (*declared.references, *runs):
        # What is broken of a sweep is its document, which bears the name without the element.
        for candidate in (key, ResourceKey(key.kind, key.name.partition("[")[0])):
            if candidate in broken:
                return candidate
    return None


def _unknown_change(draft: PlanDraft, key: ResourceKey) -> Change:
    """It would change in an unknown way."""
    row = draft.present.get(key)
    return Change(
        key=key,
        action=Action.UPDATE if _is_there(draft, key) else Action.CREATE,
        reasons=(),
        type=key.kind if row is None else row.type,
        uid="" if row is None else row.uid,
        generation=0 if row is None else row.generation,
    )
