"""
What the schemas say about a field in words: what a change does, and what is not supported yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleetform.spec import fields
from fleetform.spec.fields import OnChange, Row
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.unsupported import KINDS as UNBUILT
from fleetform.spec.kinds.unsupported import VALUES as UNBUILT_VALUES

CHANGE: Mapping[str, str] = {
    OnChange.RERUN: "must re-run; blocked while the run is running",
    OnChange.REPLACE: "must be replaced",
    OnChange.UPDATE: "updated in place",
    OnChange.RECORD: "recorded only",
    OnChange.IDENTITY: "declares another resource",
}
"""What a reader of a plan will see, for each way to carry a change out."""


def change_sentence(row: Row) -> str:
    """What a change of the field does: `A change: updated in place.`"""
    return f"A change: {CHANGE[row.on_change]}."


def unbuilt_sentence(kind: str, path: str) -> str:
    """Say what a plan does with a document that sets an unsupported field; empty for supported ones."""
    row = fields.unbuilt(kind).get(path)
    if row is None:
        values = unbuilt_values(kind, path)
        return (
            f"Not supported yet: {values}. A plan shows and blocks such documents."
            if values
            else ""
        )
    if row.essential:
        return "Not supported yet: a plan shows and blocks documents that set it."
    return "Not supported yet: it has no effect."


def unbuilt_values(kind: str, path: str) -> str:
    """The values of a supported field that are not supported yet; empty where all of them are."""
    known = KINDS.get(kind)
    return UNBUILT_VALUES.get(known.name if known else kind, {}).get(path, "")


def unbuilt_kind_sentence(kind: str) -> str:
    """The same of kinds that are not supported at all, with the reason."""
    known = KINDS.get(kind)
    why = UNBUILT.get(kind) or UNBUILT.get(known.name if known else "")
    return f"{why} A plan shows and blocks such documents." if why else ""


def default_sentence(default: object) -> str:
    """The value of an unset field; empty where there is none."""
    if default is None:
        return ""
    return f"Default: `{str(default).lower() if isinstance(default, bool) else default}`."


def examples_sentence(examples: Sequence[tuple[str, object]]) -> str:
    """Examples as they are written."""
    listed = ", ".join(f"`{written}`" for written, _ in examples)
    return f"Example: {listed}." if listed else ""


def pattern_sentence(texts: Sequence[str]) -> str:
    """The message of an editor for a text that does not match the pattern of the field."""
    return f"Does not match the format of this field. Write for example {' or '.join(f'`{text}`' for text in texts)}."
