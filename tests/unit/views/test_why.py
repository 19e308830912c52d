from __future__ import annotations

from types import SimpleNamespace

import pytest

from fleetform.views.why import attempt_text


@pytest.mark.parametrize(
    ("exit_code", "message", "cause", "text"),
    [
        (3, "exit code 3", "exited", "exit code 3 after 1.3s on local-0"),
        (None, "", "stopped", "stopped after 1.3s on local-0"),
        (
            None,
            "lost: its supervisor no longer runs",
            "lost",
            "lost: its supervisor no longer runs (after 1.3s on local-0)",
        ),
    ],
)
def test_a_sentence_is_not_continued(
    exit_code: int | None, message: str, cause: str, text: str
) -> None:
    """What the time and the host belong to can be told."""
    job = SimpleNamespace(
        exit_code=exit_code, started_at_ms=1000, finished_at_ms=2300, instance="local-0"
    )
    attempt = SimpleNamespace(jobs=(job,), message=message, cause=cause, state="failed")
    assert attempt_text(attempt) == text
