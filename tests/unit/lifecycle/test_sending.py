"""Which message is due, for each row against each record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.agents.protocol.states import JobState
from fleetform.lifecycle import Due, due
from unit.lifecycle.rows import OK, job, record

S = JobState

TABLE = [
    # row, record, due
    (S.RESERVED, None, Due.PREPARE),
    (S.RESERVED, S.PREPARING, None),
    (S.RESERVED, S.PREPARED, None),
    (S.PREPARING, None, Due.PREPARE),
    (S.PREPARING, S.PREPARED, None),
    (S.PREPARED, None, Due.PREPARE),
    (S.PREPARED, S.PREPARED, None),
    (S.STARTING, None, Due.PREPARE),
    (S.STARTING, S.PREPARING, None),
    (S.STARTING, S.PREPARED, Due.START),
    (S.STARTING, S.STARTING, None),
    (S.STARTING, S.RUNNING, None),
    (S.STARTING, S.FINISHED, None),
    (S.RUNNING, None, None),
    (S.RUNNING, S.RUNNING, None),
    (S.RUNNING, S.FINISHED, None),
    (S.CLEANING, None, None),
    (S.FINISHED, None, Due.FORGET),
    (S.FINISHED, S.FINISHED, Due.FORGET),
]


@pytest.mark.parametrize(("row", "reported", "expected"), TABLE)
def test_rows_against_records(row: JobState, reported: JobState | None, expected: Due | None):
    """What brings a host to where its row is."""
    seen = None if reported is None else record(reported)
    assert due(job(state=row), seen) is expected


@pytest.mark.parametrize("row", [S.RESERVED, S.PREPARED, S.STARTING, S.RUNNING, S.CLEANING])
@pytest.mark.parametrize("reported", [None, *S])
@pytest.mark.parametrize("known_gen", [2, 3])
def test_a_stop_is_sent_until_the_host_has_seen_it(row, reported, known_gen):
    """Whatever the host knows, unless it is over or has this generation already."""
    seen = None if reported is None else record(reported, gen=known_gen)
    expected = (
        Due.STOP if seen is None or (known_gen < 3 and reported is not JobState.FINISHED) else None
    )
    assert due(job(state=row, stop_wanted=True), seen) is expected


def test_a_job_that_is_over_here_and_alive_there_is_stopped():
    """A row that ended on proof must not be followed by a process."""
    for state in (S.PREPARING, S.PREPARED, S.STARTING, S.RUNNING, S.CLEANING):
        assert due(job(**OK), record(state)) is Due.STOP


def test_forget_waits_for_the_output():
    """A host keeps what has not been taken in yet."""
    assert due(job(**OK), record(S.FINISHED), output_complete=False) is None


@pytest.mark.parametrize("more", [{"instance_uid": ""}, {"forgotten": True}])
def test_nothing_is_due_where_no_host_is_concerned(more):
    """Not placed yet, or forgotten already."""
    assert due(job(state=S.FINISHED, **more), None) is None


def test_a_node_that_starts_after_others_is_prepared_and_not_started():
    """Nothing else is kept from it: it is prepared, stopped and forgotten as any other."""
    for row, reported, expected in TABLE:
        seen = None if reported is None else record(reported)
        kept = None if expected is Due.START else expected
        assert due(job(state=row), seen, waits=True) is kept
    assert due(job(state=S.STARTING, stop_wanted=True), None, waits=True) is Due.STOP


@given(
    st.sampled_from(list(S)),
    st.one_of(st.none(), st.sampled_from(list(S))),
    st.integers(1, 4),
    st.booleans(),
)
def test_nothing_can_start_what_has_started_or_is_to_stop(row, reported, gen, stop):
    """Prepare and start are due only before there was a process, and never after a stop."""
    seen = None if reported is None else record(reported, gen=gen)
    what = due(job(state=row, stop_wanted=stop), seen)
    if what in {Due.PREPARE, Due.START}:
        assert not stop
        assert row in {S.RESERVED, S.PREPARING, S.PREPARED, S.STARTING}
        assert reported in {None, S.WAITING, S.RESERVED, S.PREPARED}
