"""What `why` says of a run whose volume cannot be mounted: only while it cannot."""

from __future__ import annotations

import pytest

from contract.ledgers import Desk, Step, carry_out, step, submit_step, written
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.app.why import why_runs
from fleetform.model.decision import Finish, Requeue
from fleetform.model.run import RunState
from fleetform.spec.desired import ResourceKey

_LACKS = "could not be prepared: volume data has no directory /data on this host"
_VOLUME = ResourceKey("volume", "data")
_REPLACE = "--replace volume/data"


_ELSEWHERE = "volume data: vol-1 is attached to i-1, which is no host that mounts it"


@pytest.fixture
def lacking(desk: Desk, request: pytest.FixtureRequest) -> Desk:
    """A run that waits for its second try, for its host could not mount its volume."""
    message = getattr(request, "param", _LACKS)
    carry_out(desk.ledger, [_volume("volume.make")], now_ms=desk.now_ms)
    desk.submit(submit_step("a", volumes=[{"name": "data", "path": "/data"}]))
    desk.place("a")
    desk.now_ms += 1
    desk.say(
        desk.record(
            "a", JobState.FINISHED, cause=Cause.PREPARE_FAILED, exit_code=None, message=message
        )
    )
    desk.decide("a", Requeue(99_000, "prepare-failed", message, counted=False))
    desk.now_ms += 1
    return desk


def _volume(verb: str) -> Step:
    document = {"type": "volume", "fleet": "local", "path": "data"}
    return step(verb, "data", **written(document, fleet="local", path="data"))


def _advice(desk: Desk) -> str:
    (history,) = desk.ledger.read_runs(["a"])
    (found,) = why_runs(desk.ledger, [history], now_ms=desk.now_ms)
    answer = found.why
    return "\n".join((*(one.detail for one in answer.reasons), *answer.advice))


def test_a_run_that_waits_for_a_lost_directory_says_so(lacking: Desk) -> None:
    """It names the volume, and what a person does about it."""
    assert "volume data: its directory is gone" in _advice(lacking)
    assert _REPLACE in _advice(lacking)


def test_a_volume_that_was_replaced_since_is_not_blamed(lacking: Desk) -> None:
    """The apply came after the attempt: advice to replace the volume would destroy the new data."""
    carry_out(lacking.ledger, [_volume("volume.make")], now_ms=lacking.now_ms)
    assert "directory is gone" not in _advice(lacking)
    assert _REPLACE not in _advice(lacking)


def test_a_directory_that_was_seen_since_is_not_blamed(lacking: Desk) -> None:
    """A person has put the data back, and a look has found it."""
    lacking.ledger.note_observations({_VOLUME: {"directory": "there"}}, at_ms=lacking.now_ms)
    assert _REPLACE not in _advice(lacking)


def test_a_run_that_has_started_again_does_not_blame_its_volume(lacking: Desk) -> None:
    """A new attempt that runs has mounted it, whatever the attempt before lacked."""
    lacking.now_ms = 99_000
    lacking.place("a")
    lacking.say(lacking.record("a", JobState.RUNNING))
    assert _REPLACE not in _advice(lacking)


def test_a_failed_run_whose_volume_was_replaced_is_advised_to_rerun(lacking: Desk) -> None:
    """How it ended is history; what helps now is another execution."""
    lacking.decide("a", Finish(RunState.FAILED, "prepare-failed", _LACKS))
    assert _REPLACE in _advice(lacking)
    carry_out(lacking.ledger, [_volume("volume.make")], now_ms=lacking.now_ms)
    assert _REPLACE not in _advice(lacking)
    assert "fleetform rerun a" in _advice(lacking)


@pytest.mark.parametrize("lacking", [_ELSEWHERE], indirect=True)
def test_a_run_whose_disk_another_instance_has_says_so(lacking: Desk) -> None:
    """It is a reason with what a person does, until a look finds the disk free."""
    said = _advice(lacking)
    assert _ELSEWHERE in said
    assert "detach the disk from the other instance" in said
    lacking.ledger.note_observations({_VOLUME: {"attachment": "free"}}, at_ms=lacking.now_ms)
    assert _ELSEWHERE not in _advice(lacking)
