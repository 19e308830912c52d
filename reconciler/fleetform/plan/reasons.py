"""From changed fields to the reasons that a change gives."""

from __future__ import annotations

from collections.abc import Iterable

from fleetform.model.plan import FieldChange, Reason

# The gravest first: it is what a line in a table has room for.
_REASON_OF_CLASS = {
    "execution": Reason.EXECUTION_CHANGED,
    "control": Reason.CONTROL_CHANGED,
    "cosmetic": Reason.COSMETIC_CHANGED,
}


def reasons_of(changed: Iterable[FieldChange]) -> tuple[Reason, ...]:
    """Return one reason a class of field that changed, the gravest first."""
    classes = {one.field_class for one in changed}
    return tuple(reason for name, reason in _REASON_OF_CLASS.items() if name in classes)
