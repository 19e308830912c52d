from __future__ import annotations

from collections.abc import Iterable

from fleetform.model.history import Notice
from fleetform.model.plan import Action, Change, Held, HeldBy
from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Finding, Level, Place
from fleetform.views.notices import LINES_MAX, held_notices, mistake_notices


def wrong(file: str, line: int, code: str = "unknown-field") -> Finding:
    return Finding(Level.ERROR, code, "Unknown field", Place(file, line, 1), "There is no `nodez`.")


def texts(notices: Iterable[Notice]) -> list[str]:
    return [one.text for one in notices]


def test_a_checkout_at_work_is_one_sentence() -> None:
    """However many files come and go while they are read; what is really wrong stands beside it."""
    moving = [wrong(f"a/{n}.yaml", 0, "file-changed") for n in range(1500)]
    assert texts(mistake_notices([*moving, wrong("b.yaml", 3)])) == [
        "1500 files changed while the configuration was read: it is read again",
        "b.yaml:3: Unknown field: There is no `nodez`.",
    ]


def test_of_thousands_the_first_are_said_and_the_rest_counted() -> None:
    """The log of a server is not the place to list them all."""
    told = mistake_notices([wrong(f"{n}.yaml", 1) for n in range(LINES_MAX + 7)])
    assert len(told) == LINES_MAX + 1
    assert told[-1].text == "and 7 more wrong: `fleetform validate` shows all"


def test_a_mistake_of_a_whole_file_has_no_line() -> None:
    """There is no line 0 to go to."""
    assert mistake_notices([wrong("b.yaml", 0)])[0].text.startswith("b.yaml: Unknown")


def test_what_holds_a_change_is_named() -> None:
    """The detail of a freeze window is its reason, which alone says nothing of a window."""
    change = Change(ResourceKey("fleet", "local"), Action.UPDATE, (), "fleet")
    held = Held(change, HeldBy.WINDOW, "holidays, until 2027-01-02", "wait for its end")
    assert texts(held_notices([held])) == [
        "blocked: fleet/local: freeze window: holidays, until 2027-01-02; wait for its end",
    ]


def test_an_error_that_an_edit_moves_is_the_same_error() -> None:
    """Its line changes with every edit above it, and the log says it once."""
    (before,), (after,) = (
        mistake_notices([wrong("b.yaml", 3)]),
        mistake_notices([wrong("b.yaml", 9)]),
    )
    assert before.key == after.key
