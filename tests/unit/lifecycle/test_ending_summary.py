"""How a job ended, in a phrase for people."""

from __future__ import annotations

import pytest

from fleetform.agents.protocol.states import Cause
from fleetform.lifecycle import exit_summary
from unit.lifecycle.rows import ended, job, run


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (ended(Cause.EXITED, 127), "exit code 127 (command not found)"),
        (ended(Cause.SIGNAL, signal=64), "killed by signal 64"),
        (ended(Cause.OOM, memory_bytes=1 << 30), "out of memory: more than 1GB"),
        (ended(Cause.MAX_DURATION), "ran longer than its max_duration"),
        (ended(Cause.NEVER_STARTED), "never started"),
    ],
)
def test_phrases_where_something_is_not_known(end, expected):
    """A phrase says what there is and invents nothing."""
    assert exit_summary(job(**end), run().template) == expected
