"""What a plan says of an apply that was entered before it and has not finished."""

from __future__ import annotations

from collections.abc import Iterable

from fleetform.model.figures import first_of
from fleetform.model.plan import Plan
from fleetform.views.lines import printable
from fleetform.views.moments import moment

_NAMES_MAX = 5
_WORDS = {"forget": "release"}
"""What an action is called where it is not its value."""


def unfinished_texts(plan: Plan) -> tuple[str, ...]:
    """Say who entered each, what it still changes, and whether the configuration differs by now."""
    found = []
    for one in plan.annex.get("unfinished", ()):
        changes = [
            f"{_WORDS.get(action, action)} {printable(key)}" for action, key in one["changes"]
        ]
        text = (
            f"{entered_text(one['who'], one['started_at_ms'], one['plan'])}."
            f" Still to come: {first_of(changes, _NAMES_MAX)}."
        )
        if one["differing"]:
            text += f" {differing_text(one['differing'])}"
        found.append(text)
    return tuple(found)


def entered_text(who: str, at_ms: int, digest: str) -> str:
    return f"An apply is not finished: plan {digest[:12]}, approved by {printable(who)} at {moment(at_ms)}"


def differing_text(keys: Iterable[object]) -> str:
    names = [printable(str(key)) for key in keys]
    verb = "is" if len(names) == 1 else "are"
    return (
        f"{first_of(names, _NAMES_MAX)} {verb} declared differently now:"
        " `fleetform apply` finishes that apply first, then plans what is declared."
    )
