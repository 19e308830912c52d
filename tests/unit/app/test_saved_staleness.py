from __future__ import annotations

from fleetform.app.saved import applied_text, standing_text
from fleetform.model.history import HistoryEntry
from fleetform.model.plan import FieldChange
from fleetform.spec.desired import ResourceKey

KEY = ResourceKey("run", "train")


def test_a_sentence_says_what_since_when_and_by_whom():
    """With as much as is known."""
    touch = HistoryEntry("apply", "d", "done", "jo@lab", "", 1_700_000_000_000)
    fields = [FieldChange("priority", 5, 9), FieldChange("shell", None, "bash", before_set=False)]
    assert standing_text(KEY, "was changed since the plan", fields, touch) == (
        "run/train was changed since the plan: priority is 9, and was 5, shell is bash, and was not set"
        " (jo@lab, 2023-11-14T22:13:20Z)"
    )
    assert standing_text(KEY, "has started") == "run/train has started"
    assert standing_text(None, "the ledger is another one") == "the ledger is another one"


def test_many_fields_are_counted():
    """A sentence has room for three."""
    fields = [FieldChange(f"tags.t{number}", "a", "b") for number in range(5)]
    assert standing_text(KEY, "was changed since the plan", fields).endswith(
        "and was a, and 2 more"
    )


def test_what_was_applied_before_says_when_by_whom_and_what_is_otherwise():
    """So that nobody applies it in vain."""
    assert applied_text(1_700_000_000_000, "jo", ()) == (
        "this plan was applied already, at 2023-11-14T22:13:20Z by jo"
    )
    assert applied_text(1_700_000_000_000, "", (KEY,)).endswith(
        "by an unknown user; run/train has changed since"
    )
    assert applied_text(1_700_000_000_000, "", (KEY, KEY)).endswith(
        "run/train and 1 more have changed since"
    )
