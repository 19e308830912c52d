"""
The last pass over what a plan shows: whole documents are put next to the changes, and nothing
sensitive is left in sight.

Steps keep the documents that they carry out, for a job is given its variables as they were written;
those of a change that waits are sealed too. Everything that people are shown of a change comes
through here: its fields, what it was, what it will be. The key is in no plan, so whoever shows one
cannot seal any more: a change whose document has something to seal carries it sealed as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING, Any

from fleetform.model.live import Live, changed_rows
from fleetform.model.plan import Action, Change, FieldChange, Step, row_key_of
from fleetform.model.redaction import Seal
from fleetform.spec.desired import Desired, ResourceKey
from fleetform.spec.names import element_name, parse_address
from fleetform.spec.secrecy import names_secret, sealed_for_name

if TYPE_CHECKING:
    from fleetform.plan.draft import PlanDraft

__all__ = ["seal_changes", "sealed_field"]


def seal_changes(draft: PlanDraft) -> None:
    """Give each change its documents, and seal them and its fields."""
    seal = Seal(draft.desired.environment.uid)
    for key, change in draft.changes.items():
        draft.changes[key] = _sealed(draft, seal, change)
    for key, held in draft.held.items():
        draft.held[key] = replace(held, change=_shut(seal, _sealed(draft, seal, held.change)))
    for key, deferred in draft.deferred.items():
        change = _shut(seal, _sealed(draft, seal, deferred.change))
        draft.deferred[key] = replace(deferred, change=change)


def sealed_field(left: Seal, right: Seal, kind: str, one: FieldChange) -> FieldChange:
    """Seal each side of a field, under the key of the environment that it comes from."""
    before = left.value(kind, one.path, one.before) if one.before_set else None
    after = right.value(kind, one.path, one.after) if one.after_set else None
    if before is one.before and after is one.after:
        return one
    return replace(one, before=before, after=after, sensitive=True)


def _sealed(draft: PlanDraft, seal: Seal, change: Change) -> Change:
    kind = change.key.kind
    fields = tuple([sealed_field(seal, seal, kind, one) for one in change.fields])
    before, after = _before(draft, change), _after(draft, change)
    unchanged = all(map(is_, fields, change.fields))
    if after is not None:
        after = seal.value(kind, "", after)
    elif not unchanged or change.action is not Action.CREATE:
        # The fields of a creation are all that its document has.
        after = _sealed_outcome(seal, change)
    if unchanged and before is None and after is None:
        return change
    return replace(
        change,
        fields=change.fields if unchanged else fields,
        before=None if before is None else seal.value(kind, "", before),
        after=after,
    )


def _sealed_outcome(seal: Seal, change: Change) -> Mapping[str, Any] | None:
    """The document that its last step leads to, where that has something to seal."""
    for step in reversed(change.steps):
        document = step.arguments.get("document")
        if document is not None:
            shown: Mapping[str, Any] = seal.value(change.key.kind, "", document)
            return None if shown is document else shown
    return None


def _shut(seal: Seal, change: Change) -> Change:
    """Steps of blocked changes are not executed, so they need no value either."""
    steps = tuple([_shut_step(seal, step) for step in change.steps])
    if all(map(is_, steps, change.steps)):
        return change
    return replace(change, steps=steps)


def _shut_step(seal: Seal, step: Step) -> Step:
    document = step.arguments.get("document")
    shown = seal.value(step.resource.kind, "", document)
    if shown is document:
        return step
    return replace(step, arguments={**step.arguments, "document": shown})


def _before(draft: PlanDraft, change: Change) -> Mapping[str, Any] | None:
    if not change.uid:
        return None
    row = draft.live.resources.get(row_key_of(change))
    return None if row is None else row.parsed


def _after(draft: PlanDraft, change: Change) -> Mapping[str, Any] | None:
    """What it will be, unless a step says so already or the fields of a creation do."""
    if not change.uid or any("document" in step.arguments for step in change.steps):
        return None
    beyond = draft.desired.beyond.get(change.key)
    return None if beyond is None else beyond.declared.document


# Elements whose names have a secret in clear, as an earlier release gave them, and their names now.
# An upgrade must run nothing again: each such element is renamed, as `moved:` in `environment.yaml` would.


# Elements whose names have a secret in clear, as an earlier release gave them, and their names now.
# An upgrade must run nothing again: each such element is renamed, as `moved:` in `environment.yaml` would.


def with_sealed_names(desired: Desired, live: Live) -> Desired:
    """Return what is declared, with a rename for each element that has its secret in clear."""
    renames = tuple(_renames(desired, live))
    return replace(desired, moved=(*desired.moved, *renames)) if renames else desired


def _renames(desired: Desired, live: Live) -> Iterator[tuple[ResourceKey, ResourceKey]]:
    for key, row in sorted(changed_rows(live.resources).items()):
        # Of a sweep, which is told by its parameters: most rows are none.
        if key.kind != "run" or "=" not in row.element or key in desired.resources:
            continue
        parameters = dict(parse_address(key.name).params)
        sealed = {
            name: sealed_for_name(desired.environment.uid, text) if names_secret(name) else text
            for name, text in parameters.items()
        }
        after = ResourceKey("run", element_name(row.parent, sealed))
        if after != key and after in desired.resources:
            yield key, after
