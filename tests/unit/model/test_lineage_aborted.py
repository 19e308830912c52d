"""Why a run was aborted, as it reads later."""

from __future__ import annotations

import pytest

from fleetform.model.lineage import ALL_OF, abort_reason, since_met


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        (
            "requires up to succeed, and it is failed",
            "required up to succeed, and it had failed",
        ),
        (
            "requires all of arr to succeed, and arr[4] is failed",
            "required all of arr to succeed, and arr[4] had failed",
        ),
        (
            (
                "no dependency can be met: requires a to fail, and it is done;"
                " requires b to start, and it is unschedulable"
            ),
            (
                "no dependency could be met: required a to fail, and it had succeeded;"
                " required b to start, and it was unschedulable"
            ),
        ),
        ("required up to succeed, and it had failed", "required up to succeed, and it had failed"),
    ],
)
def test_a_reason_that_an_older_version_recorded_is_shown_in_the_past_tense(
    recorded: str, shown: str
) -> None:
    """A ledger keeps the sentence of the version that aborted the run."""
    assert abort_reason(recorded) == shown


def test_what_a_run_waited_for_is_named_once_it_is_fine() -> None:
    """With the command that runs it; nothing is added while the run would be aborted again."""
    assert since_met([], "down") == ""
    assert since_met([("up", "succeeded")], "down") == (
        "; up has succeeded since: `fleetform rerun down` runs it"
    )
    assert since_met([(f"{ALL_OF}arr", "finished"), ("up", "failed")], "down") == (
        "; all of arr have finished and up has failed since: `fleetform rerun down` runs it"
    )
    many = [(f"r{number}", "succeeded") for number in range(4)]
    assert since_met(many, "down") == (
        "; all 4 of its dependencies are met since: `fleetform rerun down` runs it"
    )
