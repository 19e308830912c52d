"""
The first pass: which resources differ, and what their kinds propose for it.

Digests decide; a document is parsed only where they differ, so that a plan with nothing to do
costs one comparison a resource.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace

from fleetform.model.live import LiveResource, changed_rows, unchanged_digests
from fleetform.model.plan import Action, Change, Permissions, Reason
from fleetform.model.selection import Selection
from fleetform.model.verbs import CREATES, Verb
from fleetform.plan.diff import changed_fields
from fleetform.plan.draft import PlanDraft, Proposal, make_step
from fleetform.plan.hosts import adoption_of, may_be_there
from fleetform.plan.kinds import KINDS
from fleetform.plan.kinds.fleet import propose_exchange
from fleetform.plan.kinds.run import propose_pair
from fleetform.plan.renames import Pairing, pair_elements
from fleetform.spec.desired import Declared, ResourceKey, digests_of
from fleetform.spec.ignore_changes import overlook, overlooks


def compare_rules(draft: PlanDraft) -> None:
    """
    Propose the declared rules, where others were applied last; before the first apply, the default ones.

    A plan is judged by the rules last applied, so what a commit loosens helps the next plan and never itself.
    """
    environment, applied = draft.desired.environment, draft.rules.document()
    if draft.permissions.destroy or environment.rules == draft.rules:
        return
    key = ResourceKey("environment", environment.name)
    wanted = environment.rules.document()
    change = Change(
        key=key,
        action=Action.UPDATE,
        reasons=(Reason.CONTROL_CHANGED,),
        type="environment",
        fields=changed_fields("environment", {"rules": applied}, {"rules": wanted}),
        steps=(make_step(Verb.RULES_SET, key, {"rules": wanted}),),
    )
    draft.add(Proposal(change))


def compare_resources(draft: PlanDraft) -> None:
    """Propose a change for everything that is declared and differs, or is there and should not."""
    added: list[Declared] = []
    rows = draft.live.resources
    replaces = Selection(draft.scope.replaces)
    exchanged = _exchanged(draft, replaces)
    for key in _differing(draft, replaces, exchanged):
        declared, row = draft.wanted[key], rows.get(key)
        if row is None or (row.archived and key.kind != "run"):
            added.append(declared)
        elif replaces and replaces.selects(key, declared.parent):
            _add(draft, _proposed(KINDS[key.kind].renew, declared, row, draft.permissions))
        elif key in exchanged:
            draft.add(_exchange(declared, row, exchanged[key]))
        elif (taking := adoption_of(draft, declared, row)) is not None:
            draft.add(taking)
        elif row.digest != declared.digest or row.archived:
            _add(draft, _proposed(KINDS[key.kind].change, declared, row, draft.permissions))
    removed = [
        draft.present[key]
        for key in draft.present
        if key not in draft.wanted and not draft.is_left_alone(key, key.parent)
    ]
    if draft.desired.removed and not draft.permissions.destroy:
        removed = _propose_forgotten(draft, removed)
    _propose_new_and_gone(draft, added, removed)


def _exchanged(draft: PlanDraft, replaces: Selection) -> dict[ResourceKey, list[str]]:
    """Names of the single hosts that `--replace` asks to replace, by their fleet."""
    found: dict[ResourceKey, list[str]] = {}
    for one in draft.live.instances if replaces else ():
        key = ResourceKey("fleet", one.fleet)
        if key in draft.wanted and replaces.selects(ResourceKey("host", one.name)):
            found.setdefault(key, []).append(one.name)
    return found


def _exchange(declared: Declared, row: LiveResource, hosts: list[str]) -> Proposal:
    # With the values that stay, as for any other change in place.
    if overlooks(declared):
        declared = overlook(declared, row.document, row.digest, row.own_digest)
    return propose_exchange(declared, row, hosts)


def _add(draft: PlanDraft, proposal: Proposal | None) -> None:
    if proposal is not None:
        draft.add(proposal)


def _proposed(
    propose: Callable[[Declared, LiveResource, Permissions], Proposal | None],
    declared: Declared,
    row: LiveResource,
    permissions: Permissions,
) -> Proposal | None:
    """Ask the kind, with the values that stay in place of the declared ones."""
    if not overlooks(declared):
        return propose(declared, row, permissions)
    last = (row.document, row.digest, row.own_digest)
    proposal = propose(overlook(declared, *last), row, permissions)
    if proposal is None or not _makes(proposal.change):
        return proposal
    # It is made anew for another reason, so what counts at the beginning counts.
    return propose(overlook(declared, *last, making=True), row, permissions)


def _makes(change: Change) -> bool:
    return any(step.verb in CREATES for step in change.steps)


def _differing(
    draft: PlanDraft, replaces: Selection, exchanged: Container[ResourceKey]
) -> Iterator[ResourceKey]:
    """Declared resources, without those that are unchanged and not asked to be replaced."""
    unchanged = unchanged_digests(draft.live.resources)
    for key, digest in digests_of(draft.wanted).items():
        if unchanged.get(key) != digest or (
            replaces and (key in exchanged or replaces.selects(key, key.parent))
        ):
            yield key


def _is_gone(draft: PlanDraft, row: LiveResource) -> bool:
    """Tell of a tombstone whether nothing in the tree may still mean it."""
    return row.key not in draft.wanted and not draft.is_left_alone(row.key, row.parent)


def _propose_forgotten(draft: PlanDraft, removed: Iterable[LiveResource]) -> list[LiveResource]:
    """Propose to release what `removed:` lists; returns the others."""
    released = frozenset(draft.desired.removed)
    others: list[LiveResource] = []
    # Of a volume it only keeps the uid for another try, which is nothing to be forgotten.
    tombstones = (
        row
        for row in changed_rows(draft.live.resources).values()
        if row.archived and row.key.kind == "run"
    )
    for row in (*removed, *(one for one in tombstones if _is_gone(draft, one))):
        if row.key in released or ResourceKey(row.key.kind, row.parent) in released:
            draft.add(KINDS[row.key.kind].forget(row))
        elif not row.archived:
            others.append(row)
    return others


def _propose_new_and_gone(
    draft: PlanDraft, added: Iterable[Declared], removed: Iterable[LiveResource]
) -> None:
    if draft.desired.unread:
        # What seems to be gone may be in a file that nobody could read: it takes nobody's place.
        pairing = Pairing((), tuple(added), tuple(removed))
    else:
        pairing = pair_elements(added, removed)
    for declared, row in pairing.pairs:
        draft.add(propose_pair(declared, row))
    imports = frozenset(draft.desired.imports)
    for declared in pairing.added:
        kind = KINDS[declared.key.kind]
        found = declared.key in imports and may_be_there(draft, declared)
        draft.add(kind.adopt(declared) if found else kind.create(declared))
    for row in pairing.removed:
        proposal = KINDS[row.key.kind].remove(row)
        if draft.permissions.destroy:
            proposal = replace(proposal, change=_as_destroyed(proposal.change))
        draft.add(proposal)


def _as_destroyed(change: Change) -> Change:
    """Most of it is declared still: that is not why it goes, nor why a run is stopped."""
    steps = tuple(
        replace(step, arguments={**step.arguments, "cause": "destroyed"})
        if step.verb == Verb.RUN_STOP
        else step
        for step in change.steps
    )
    return replace(change, reasons=(Reason.DESTROY_ASKED,), steps=steps)
