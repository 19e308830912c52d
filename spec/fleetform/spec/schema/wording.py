"""
What the schemas say about a field in words: what a change does, and what nothing carries out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleetform.spec import fields
from fleetform.spec.fields import OnChange, Row
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.unbuilt import KINDS as UNBUILT

CHANGE: Mapping[str, str] = {
    OnChange.RERUN: "runs again; held while it runs",
    OnChange.REPLACE: "made anew",
    OnChange.UPDATE: "in place",
    OnChange.RECORD: "recorded only",
    OnChange.IDENTITY: "another resource",
}
"""What a reader of a plan will see, for each way to carry a change out."""


def change_sentence(row: Row) -> str:
    """What a change of the field does: `A change: in place.`"""
    return f"A change: {CHANGE[row.on_change]}."


def unbuilt_sentence(kind: str, path: str) -> str:
    """What becomes of a document that sets a field which nothing carries out; empty for others."""
    row = fields.unbuilt(kind).get(path)
    if row is None:
        return ""
    if row.essential:
        return "Not carried out by this version of fleetform: what sets it is planned and held."
    return "Not carried out by this version of fleetform: it has no effect yet."


def unbuilt_kind_sentence(kind: str) -> str:
    """The same of documents of which nothing is carried out, with the reason."""
    known = KINDS.get(kind)
    why = UNBUILT.get(kind) or UNBUILT.get(known.name if known else "")
    return f"Not carried out by this version of fleetform, so a plan holds it. {why}" if why else ""


def default_sentence(default: object) -> str:
    """What not saying the field amounts to; empty where that is nothing."""
    if default is None:
        return ""
    return f"Default: `{str(default).lower() if isinstance(default, bool) else default}`."


def examples_sentence(examples: Sequence[tuple[str, object]]) -> str:
    """Examples as they are written."""
    listed = ", ".join(f"`{written}`" for written, _ in examples)
    return f"Example: {listed}." if listed else ""


def pattern_sentence(texts: Sequence[str]) -> str:
    """What an editor says of a text that is not in the form of the field."""
    return f"Not in the form of this field. Write for example {' or '.join(f'`{text}`' for text in texts)}."
