"""
How much one plan may destroy.

Counted a kind, over what is really lost: runs that are over and runs that never began go
without being counted. A run at work counts once, whatever ends it: a change of its own, or
that of the fleet whose hosts it is on. Up to the limit the first go, in the order in which things
are removed, so that repeated plans get there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from fleetform.model.figures import counted
from fleetform.model.live import Work
from fleetform.model.plan import Change, HeldBy
from fleetform.model.verbs import REFERRED
from fleetform.plan.draft import PlanDraft
from fleetform.plan.impact import ends_with
from fleetform.plan.phase import Phase, phase
from fleetform.spec.desired import ResourceKey

__all__ = ["hold_beyond_budget"]

# Runs before the fleets that they are on: a fleet that took the whole budget would leave nothing
# for a run that has to go first, and neither would ever go.
_ORDER = {kind: number for number, kind in enumerate(REFERRED, 1)}

_VERBS = {"run": "end"}


def hold_beyond_budget(draft: PlanDraft) -> None:
    # Somebody who asks for the removal of everything has said how much.
    if draft.permissions.destroy:
        return
    rows = {
        key: draft.row_key(change) for key, change in draft.changes.items() if change.destructive
    }
    if not rows:
        return
    at_work = _at_work(draft)
    lost = {key: {own} | _ended(draft, draft.changes[key], at_work) for key, own in rows.items()}
    totals = Counter(key.kind for key in draft.present)
    doomed = _by_kind(set().union(*lost.values()))
    limits = {kind: _limit(draft, totals[kind]) for kind in doomed}
    # One number releases all: the flag is asked for once, not once a kind.
    needed = max((n for kind, n in doomed.items() if n > limits[kind]), default=0)
    if not needed:
        return
    # With others: what ends although no change of its own says so.
    with_others = doomed["run"] - sum(key.kind == "run" for key in lost)
    sentences = {
        kind: _sentence(kind, doomed[kind], totals[kind], limits[kind], with_others)
        for kind in doomed
    }
    going: set[ResourceKey] = set()
    gone: Counter[str] = Counter()
    for key in sorted(lost, key=lambda one: (_ORDER.get(one.kind, 0), one)):
        more = lost[key] - going
        counts = _by_kind(more)
        over = [kind for kind in sorted(counts) if gone[kind] + counts[kind] > limits[kind]]
        if not over:
            going |= more
            gone += counts
            continue
        draft.hold(
            key,
            HeldBy.BUDGET,
            "the plan would " + "; it would ".join(sentences[kind] for kind in over),
            f"--allow-deletes {needed}",
        )


def _ended(
    draft: PlanDraft, change: Change, at_work: Mapping[str, Sequence[Work]]
) -> set[ResourceKey]:
    """Who is at work on the hosts of a fleet that go."""
    if change.key.kind != "fleet":
        return set()
    there = at_work.get(change.key.name, ())
    return {ResourceKey("run", one.run) for one in there if ends_with(draft, change, one)}


def _at_work(draft: PlanDraft) -> dict[str, list[Work]]:
    """By fleet: what would end with it, and was not ended by an earlier plan already."""
    found: dict[str, list[Work]] = {}
    for work in draft.live.work:
        row = draft.live.resources.get(ResourceKey("run", work.run))
        if row is None or not (row.archived or phase(row) is Phase.FINISHED):
            found.setdefault(work.fleet, []).append(work)
    return found


def _by_kind(keys: Iterable[ResourceKey]) -> Counter[str]:
    return Counter(key.kind for key in keys)


def _sentence(kind: str, count: int, total: int, limit: int, with_others: int) -> str:
    among = f", {with_others} of them with their fleet" if kind == "run" and with_others else ""
    return (
        f"{_VERBS.get(kind, 'destroy')} {count} of {counted(total, kind)}{among},"
        f" and at most {limit} {'is' if limit == 1 else 'are'} allowed"
    )


def _limit(draft: PlanDraft, total: int) -> int:
    rules = draft.rules
    allowed = draft.permissions.allow_deletes
    by_rule = max(total * rules.delete_percent // 100, rules.delete_count)
    return by_rule if allowed is None else max(by_rule, allowed)
