"""
The whole documents before and after one change.

Documents come sealed. What a change was planned against it carries itself; what it leads to as
well where something in it is sealed, else it is in the step that carries it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetform.model.plan import Action, Change
from fleetform.views.plan_paths import nested

__all__ = ["LEAVING", "document_after", "document_before"]

LEAVING = frozenset({Action.DELETE, Action.FORGET, Action.ARCHIVE})
"""After these there is no document."""


def document_before(change: Change) -> Mapping[str, Any] | None:
    if change.before is not None:
        return change.before
    # Rules have no document of their own: what changes is all that there is.
    known = [(one.path, one.before) for one in change.fields if one.before_set]
    return nested(known) if known else None


def document_after(change: Change) -> Mapping[str, Any] | None:
    if change.action in LEAVING:
        return None
    if change.after is not None:
        return change.after
    for step in reversed(change.steps):
        document = step.arguments.get("document")
        if document is not None:
            shown: Mapping[str, Any] = document
            return shown
    if change.before is not None:
        # A pure move changes nothing of it.
        return None if change.fields or not change.moved_from else change.before
    known = [(one.path, one.after) for one in change.fields if one.after_set]
    return nested([("type", change.type), *known]) if known else None
