"""What a plan may touch at all, and that it leaves nothing out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import pairwise
from json.encoder import encode_basestring
from operator import attrgetter
from typing import Any

from fleetform.checker.context import PlanContext, at_work, host_called
from fleetform.model.ledger import LedgerStatus
from fleetform.model.live import LiveResource, changed_rows, unchanged_digests
from fleetform.model.plan import Change, FieldChange, Plan
from fleetform.model.redaction import fingerprint
from fleetform.model.selection import Selection
from fleetform.model.verbs import KINDS, ON_HOSTS, REFERRED, Verb
from fleetform.spec.canonical import plain_json
from fleetform.spec.desired import Declared, ResourceKey, Rules, digests_of


def check_place_right(context: PlanContext) -> Iterator[str]:
    plan, live = context.plan, context.live
    pairs = (
        ("environment", plan.environment_fingerprint, fingerprint(context.desired.environment.uid)),
        ("ledger", plan.ledger_id, live.ledger_id),
        ("epoch", plan.epoch, live.epoch),
    )
    for what, planned, actual in pairs:
        if planned != actual:
            yield f"the plan is for {what} {planned}, and this is {what} {actual}"


def check_recovering_unchanged(context: PlanContext) -> Iterator[str]:
    if context.live.status is LedgerStatus.RECOVERING and context.plan.changes:
        count = len(context.plan.changes)
        yield f"{count} changes are planned"


def check_recovering_stated(context: PlanContext) -> Iterator[str]:
    """Also where nothing differs: who reads the exit code must not take it for an answer."""
    is_so = context.live.status is LedgerStatus.RECOVERING
    # One of a file says how it was when it was made.
    if context.plan.kept is None and context.plan.recovering is not is_so:
        said = "recovering" if context.plan.recovering else "in use"
        yield f"the plan says that the ledger is {said}"


def check_changes_single(context: PlanContext) -> Iterator[str]:
    keys = [change.key for change in context.plan.changes]
    for before, after in pairwise(keys):
        if not before < after:
            yield f"{after} follows {before}"


def check_held_not_done(context: PlanContext) -> Iterator[str]:
    done = {change.key for change in context.plan.changes}
    for held in context.plan.held:
        if held.change.key in done:
            yield f"{held.change.key} is changed and blocked"


def check_nothing_forgotten(context: PlanContext) -> Iterator[str]:
    handled: set[ResourceKey] = set()
    for change in (
        *context.plan.changes,
        *(held.change for held in context.plan.held),
        *(deferred.change for deferred in context.plan.deferred),
    ):
        handled.add(change.key)
        if change.replaces:
            handled.add(ResourceKey(change.key.kind, change.replaces))
    wanted = {} if context.permissions.destroy else context.desired.resources
    unchanged = unchanged_digests(context.rows)
    for key, digest in digests_of(wanted).items():
        if unchanged.get(key) == digest or key in handled or context.is_left_alone(key, key.parent):
            continue
        if _differs(context.declared(key) or wanted[key], context.row(key)):
            yield f"{key} differs from the configuration and is not in the plan"
    for key in context.rows:
        if key in wanted or key in handled or key.kind not in KINDS:
            continue
        if context.is_called_otherwise(key, key.parent):
            continue
        if not (context.is_left_alone(key, key.parent) or context.rows[key].archived):
            yield f"{key} was removed from the configuration and is not in the plan"


def _differs(declared: Declared, row: LiveResource | None) -> bool:
    if row is None or row.archived:
        return True
    if row.digest == declared.digest:
        return False
    if not row.digest:
        return True  # An apply has left it half done: its document says nothing of what is there.
    return bool(row.parsed != json.loads(json.dumps(declared.document)))


def check_left_apart(context: PlanContext) -> Iterator[str]:
    """A difference is a change, held, or left out, and never two of them."""
    if not context.plan.deferred:
        return
    done = {change.key for change in context.plan.changes}
    held = {one.change.key for one in context.plan.held}
    for deferred in context.plan.deferred:
        key = deferred.change.key
        if key in done or key in held:
            verb = "changed" if key in done else "blocked"
            yield f"{key} is both deferred and {verb}"


def check_only_scope(context: PlanContext) -> Iterator[str]:
    """With targets, each change is one that they mean, or that one of those needs."""
    targets = Selection(context.scope.targets)
    if not targets:
        return
    changes = {change.key: change for change in context.plan.changes}
    replaced = {
        ResourceKey(one.key.kind, one.replaces): one.key for one in changes.values() if one.replaces
    }
    excludes = Selection(context.scope.excludes)
    asked = {
        key
        for key in targets.chosen(context.desired.resources)
        if not excludes.selects(key, key.parent)
    }
    # What is asked for and held brings along what it waits for, or it would be held for ever; and
    # what it waits for may be held in its turn.
    held = {one.change.key: one.change for one in context.plan.held}
    known = {**held, **changes}
    waiting = [*asked, *(one.key for one in known.values() if _means(targets, one))]
    reached = set(waiting)
    fleets = _fleets_to_choose_from(context)
    while waiting:
        for needed in _needed(context, waiting.pop(), known, fleets):
            one = replaced.get(needed, needed)
            if one not in reached:
                reached.add(one)
                waiting.append(one)
    for key in changes.keys() - reached:
        yield f"{key} is changed, and no target needs it"


def _fleets_to_choose_from(context: PlanContext) -> list[ResourceKey]:
    """Those declared, while none is there; one of which no more than a digest is known is there."""
    rows = changed_rows(context.rows).items()
    is_one_there = any(key.kind == "fleet" for key in unchanged_digests(context.rows)) or any(
        key.kind == "fleet" and not row.archived for key, row in rows
    )
    return [] if is_one_there else [one for one in context.desired.resources if one.kind == "fleet"]


def _needed(
    context: PlanContext,
    key: ResourceKey,
    changes: Mapping[ResourceKey, Change],
    fleets: Iterable[ResourceKey],
) -> Iterator[ResourceKey]:
    """What must be there for this, or end before this goes."""
    declared = context.declared(key)
    if declared is not None:
        yield from declared.references
        yield from (ResourceKey("run", name) for name in declared.upstream)
        queues = (context.declared(one) for one in declared.references if one.kind == "queue")
        places = {one.kind for queue in queues if queue is not None for one in queue.references}
        places.update(one.kind for one in declared.references)
        if key.kind == "run" and places.isdisjoint(ON_HOSTS):
            yield from fleets
        return
    if key.kind not in REFERRED:
        return
    for other in changes:
        row = context.row(other)
        if row is not None and context.declared(other) is None and key in row.references:
            yield other


def check_scope_kept(context: PlanContext) -> Iterator[str]:
    """
    What is excluded is not done, and nothing is left out that was asked for.

    What a target brings along is for the planner; that it needs it shows in `references`.
    """
    excludes, targets = Selection(context.scope.excludes), Selection(context.scope.targets)
    for change in context.plan.changes if excludes else ():
        if _means(excludes, change):
            yield f"{change.key} is changed and was excluded"
    for deferred in context.plan.deferred:
        change = deferred.change
        asked = _means(targets, change) or not targets
        if asked and not _means(excludes, change):
            yield f"{change.key} is deferred and was selected"


def _means(selection: Selection, change: Change) -> bool:
    """By each name that it has or had; the sweep that it was of means it too."""
    kind, parents = change.key.kind, {change.parent}
    names = {change.key.name, change.replaces, change.moved_from} - {""}
    if "[" in change.moved_from:
        parents.add(change.moved_from.partition("[")[0])
    return any(
        selection.selects(ResourceKey(kind, name), parent) for name in names for parent in parents
    )


def check_exchanges_asked(context: PlanContext) -> Iterator[str]:
    """Each host that gives way to another is one that was asked for, and of that fleet."""
    asked = Selection(context.scope.replaces)
    hosts = {one.name: one.fleet for one in context.live.instances}
    for _, step in context.steps:
        before = context.earlier_names.get(step.resource, step.resource)
        for name in step.arguments.get("exchange", ()):
            called = {name, host_called(name, step.resource.name, before.name)}
            is_there = any(hosts.get(one) == before.name for one in called)
            if not is_there or not asked.selects(ResourceKey("host", name)):
                yield f"{step.key} would replace host {name}"


def check_broken_untouched(context: PlanContext) -> Iterator[str]:
    if not context.left_alone and not context.desired.broken:
        return
    for change in context.plan.changes:
        names = {change.key.name, change.replaces} - {""}
        for name in sorted(names):
            if context.is_left_alone(ResourceKey(change.key.kind, name), change.parent):
                yield f"{change.key} is changed"
        declared = context.declared(change.key)
        for key in () if declared is None else declared.references:
            # What is declared beyond what can be carried out stays as it is, and can be used.
            if key in context.desired.broken:
                yield f"{change.key} is changed and refers to {key}"


def check_unread_kept(context: PlanContext) -> Iterator[str]:
    if not context.desired.unread or context.permissions.destroy:
        return
    for change in context.plan.changes:
        for step in change.steps:
            if step.resource.kind in KINDS and context.declared(step.resource) is None:
                yield f"{step.resource} would be removed, and {context.desired.unread[0]} may declare it"


# That a plan tells what people and machines rely on: the rules that judged it, what is at stake, and
# a digest that is its own.


def check_rules_applied_last(context: PlanContext) -> Iterator[str]:
    """The rules that it says it was judged by are those last applied, not those it brings."""
    # One of a file says by a predicate which rules it needs, where it needs any.
    if context.plan.kept is None and context.plan.rules != context.rules:
        yield f"the plan was judged by {context.plan.rules}, and {context.rules} were applied last"


def check_impact_stated(context: PlanContext) -> Iterator[str]:
    """What destroys says in words what is lost, and names the runs whose work it ends."""
    for change in context.plan.changes:
        if change.destructive and not change.at_stake:
            yield f"{change.key} has no impact"
    for change, step in context.steps:
        row = context.row(step.resource)
        if step.verb != Verb.RUN_STOP or row is None or not at_work(row):
            continue
        named = change.stake.runs if change.stake is not None else ()
        if step.resource.name not in named:
            yield f"{change.key} would end {step.resource} and does not name it in its impact"


def check_digest_right(context: PlanContext) -> Iterator[str]:
    """An approved digest is this plan's: it is computed again from what the plan says."""
    plan = context.plan
    read = hashlib.sha256()
    for part in text_of(plan):
        read.update(part.encode("utf-8", "surrogatepass"))
    found = read.hexdigest()
    if found != plan.digest:
        yield f"the plan has the digest {plan.digest[:12]}, and its content has {found[:12]}"


# The text that a plan's digest is of, written by code of its own.
# Nothing of it comes from `plan`: the form of each kind of value is made of the fields that it has, so
# that a field which the planner's own text leaves out makes another digest. Documents are written by
# the standard library.

_UNSEALED = frozenset({"annex", "digest"})


_Form = tuple[str, Callable[[Any], tuple[Any, ...]]]


def text_of(plan: Plan) -> Iterator[str]:
    """The text in parts, none of which is longer than one change."""
    said = {one.name: getattr(plan, one.name) for one in fields(plan) if one.name not in _UNSEALED}
    said["format"] = "fleetform-plan"
    before = "{"
    for name in sorted(said):
        yield f'{before}"{name}":'
        before = ","
        if isinstance(said[name], tuple):
            yield "["
            for number, one in enumerate(said[name]):
                yield f",{_text(one)}" if number else _text(one)
            yield "]"
        else:
            yield _text(said[name])
    yield "}"


def _text(value: Any) -> str:
    return _WRITERS[type(value)](value)


class _Writers(dict[type, Callable[[Any], str]]):
    """How values of a type are written, found out when the first of them is met."""

    def __missing__(self, kind: type) -> Callable[[Any], str]:
        if issubclass(kind, str):
            write: Callable[[Any], str] = encode_basestring  # Actions and reasons are texts.
        elif is_dataclass(kind):
            write = _written_by(_form(kind))
        else:
            # Documents, and whatever else JSON has: what it has not is refused there.
            write = plain_json
        self[kind] = write
        return write


def _form(kind: type, without: str = "") -> _Form:
    """A text with a place for each field, by name, and what reads the fields in that order."""
    names = sorted(one.name for one in fields(kind) if one.name != without)
    places = ",".join([f'"{name}":%s' for name in names])
    read = attrgetter(*names)
    return f"{{{places}}}", read if len(names) > 1 else lambda value: (read(value),)


def _written_by(form: _Form) -> Callable[[Any], str]:
    text, read = form
    return lambda value: text % tuple([_WRITERS[type(one)](one) for one in read(value)])


_FIXED_COST = _written_by(_form(Change, without="cost_max"))
_RANGE_OF_COST = _written_by(_form(Change))


def _change(one: Change) -> str:
    # Few changes have a highest cost, and it came later than the digests that others keep.
    return _FIXED_COST(one) if one.cost_max is None else _RANGE_OF_COST(one)


def _field(one: FieldChange) -> str:
    sides = [one.after] if one.after_set else []
    if one.before_set:
        sides.append(one.before)
    return _field_form(*_REST(one)) % tuple([_WRITERS[type(side)](side) for side in sides])


_REST = attrgetter(
    "after_set", "before_set", "field_class", "forces", "path", "sensitive", "unknown"
)


@lru_cache(maxsize=1024)
def _field_form(
    after_set: bool,
    before_set: bool,
    field_class: str,
    forces: bool,
    path: str,
    sensitive: bool,
    unknown: bool,
) -> str:
    """
    All but the values of a field: what a hundred thousand changes share.

    A side that is not set is not said, and what nearly no field is, neither.
    """
    sides = {"after": after_set, "before": before_set}
    said = {"class": field_class, "forces": forces, "path": path}
    rare = {"sensitive": sensitive, "unknown": unknown}
    rest = said | {name: True for name, is_said in rare.items() if is_said}
    places = [f'"{name}":%s' for name, is_set in sides.items() if is_set]
    return f"{{{','.join([*places, plain_json(rest)[1:-1].replace('%', '%%')])}}}"


def _key(key: ResourceKey) -> str:
    return f"[{encode_basestring(key.kind)},{encode_basestring(key.name)}]"


def _listed(values: tuple[Any, ...]) -> str:
    if not values:
        return "[]"
    return f"[{','.join([_WRITERS[type(one)](one) for one in values])}]"


# Looked up by the interpreter itself: most fields of a change are one of these.
_CONSTANTS = {None: "null", True: "true", False: "false"}


_KNOWN: dict[type, Callable[[Any], str]] = {
    bool: _CONSTANTS.__getitem__,
    type(None): _CONSTANTS.__getitem__,
    Change: _change,
    FieldChange: _field,
    ResourceKey: _key,
    Rules: lambda rules: plain_json(rules.document()),
    str: encode_basestring,
    tuple: _listed,
}


_WRITERS = _Writers(_KNOWN)
