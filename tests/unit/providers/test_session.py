"""Every error of a session becomes one of the contract."""

from __future__ import annotations

import pytest

from fleetform.agents.client import errors
from fleetform.agents.protocol.frames import FrameError
from fleetform.agents.protocol.messages import Rejected, Reply
from fleetform.providers.contract.errors import (
    OwnedElsewhere,
    PermanentError,
    ProviderError,
    RefusedForNow,
    TemporaryError,
)
from fleetform.providers.session import _TABLE, translated


def refused(code: str) -> errors.RequestRefused:
    return errors.RequestRefused(Reply(1, ok=False, code=code))


@pytest.mark.parametrize(
    ("error", "becomes"),
    [
        (errors.ConnectionLost("gone"), TemporaryError),
        (errors.HelloRejected(Rejected("foreign_owner", "staging's")), OwnedElsewhere),
        (errors.HelloRejected(Rejected("foreign_ledger", "another's")), OwnedElsewhere),
        (errors.HelloRejected(Rejected("old_epoch", "newer")), OwnedElsewhere),
        (errors.HelloRejected(Rejected("old_fence", "newer")), PermanentError),
        (errors.HelloRejected(Rejected("protocol", "2")), PermanentError),
        (refused("no_space"), RefusedForNow),
        (refused("invalid"), PermanentError),
        (errors.ContentChanged("changed"), PermanentError),
        (FrameError("too long"), PermanentError),
    ],
)
def test_an_error_says_what_to_do_next(error, becomes) -> None:
    """Try again, or ask a person; the instance is named and the cause kept."""
    with (
        pytest.raises(ProviderError, match=r"^instance fleet-0: ") as caught,
        translated("fleet-0"),
    ):
        raise error
    assert type(caught.value) is becomes
    assert caught.value.__cause__ is error


def test_who_owns_the_host_is_passed_on() -> None:
    """The plan error can name the other environment."""
    answer = Rejected("foreign_owner", "", owner="staging", ledger_id="l", epoch=3)
    with pytest.raises(OwnedElsewhere) as caught, translated("fleet-0"):
        raise errors.HelloRejected(answer)
    assert (caught.value.owner, caught.value.ledger_id, caught.value.epoch) == ("staging", "l", 3)


def test_the_table_is_complete() -> None:
    """No error of a session is missing in it."""
    assert set(errors.SessionError.__subclasses__()) | {FrameError} == set(_TABLE)
