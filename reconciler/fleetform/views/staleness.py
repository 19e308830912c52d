"""Why a plan fits no more, in sentences: what is different, since when, and by whom."""

from __future__ import annotations

from collections.abc import Iterable

from fleetform.model.history import HistoryEntry
from fleetform.model.plan import FieldChange
from fleetform.spec.desired import ResourceKey
from fleetform.views.lines import printable
from fleetform.views.moments import moment
from fleetform.views.plan.fields import field_rows

__all__ = ["applied_text", "standing_text"]

FIELDS_MAX = 3
"""Fields that one sentence has room for."""


def standing_text(
    key: ResourceKey | None,
    detail: str,
    fields: Iterable[FieldChange] = (),
    touch: HistoryEntry | None = None,
) -> str:
    """
    Write one sentence: `run/train was changed since: priority is 9, and was 5 (root, …)`.

    Args:
        key: What it is about; None for the ledger.
        detail: What is there instead.
        fields: What changed of its document since the plan was made.
        touch: The apply that touched it last, where one is known.
    """
    if key is None:
        return detail
    rows = field_rows(key.kind, fields)
    changes = [_changed(row.path, row.before, row.after) for row in rows[:FIELDS_MAX]]
    if len(rows) > FIELDS_MAX:
        changes.append(f"and {len(rows) - FIELDS_MAX} more")
    what = f": {', '.join(changes)}" if changes else ""
    by = f" ({touch.who or 'an unknown user'}, {moment(touch.at_ms)})" if touch is not None else ""
    return f"{printable(str(key))} {detail}{what}{by}"


def _changed(path: str, before: str | None, after: str | None) -> str:
    if after is None:
        return f"{path} is not set, and was {before}"
    return f"{path} is {after}, and was {'not set' if before is None else before}"


def applied_text(at_ms: int, who: str, undone: tuple[ResourceKey, ...]) -> str:
    """Say that a plan was carried out before, and what of its outcome is changed since."""
    text = f"this plan was applied already, at {moment(at_ms)} by {who or 'an unknown user'}"
    if not undone:
        return text
    first = printable(str(undone[0]))
    more = f" and {len(undone) - 1} more" if len(undone) > 1 else ""
    return f"{text}; {first}{more} {'have' if more else 'has'} changed since"
