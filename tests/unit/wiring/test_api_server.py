from __future__ import annotations

import contextlib

import pytest

from fleetform.wiring.api_server import AddressUnusable, _address, _listening
from fleetform.wiring.problems import Problem


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "0:0", "[::]:0", "[0:0::0]:0"])
def test_every_address_at_once_is_refused(listen: str) -> None:
    """Whoever called it by a name of theirs would be refused: so it is not announced either."""
    host, port = _address(listen)
    with pytest.raises(Problem, match="no name") as refused:
        _listening(host, port, listen)
    assert "listen at a name or an address" in refused.value.advice


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "localhost:0"])
def test_a_name_is_listened_at(listen: str) -> None:
    """The guard answers whoever calls by it."""
    host, port = _address(listen)
    with contextlib.closing(_listening(host, port, listen)) as there:
        assert there.getsockname()[1]


@pytest.mark.parametrize(
    "listen", ["192.0.2.1:8433", "[2001:db8::1]:8433", "[::ffff:192.0.2.1]:8433"]
)
def test_an_address_that_others_reach_is_refused(listen: str) -> None:
    """The API has no log-in: the error says so, and how to reach it from elsewhere."""
    host, port = _address(listen)
    with pytest.raises(Problem, match="has no log-in") as refused:
        _listening(host, port, listen)
    assert "`ssh -L 8433:127.0.0.1:8433 " in refused.value.advice
    assert "--insecure-listen" in refused.value.advice


def test_an_address_that_others_reach_may_be_listened_at() -> None:
    """With --insecure-listen it is tried; here the machine says that it has no such address."""
    with pytest.raises(AddressUnusable, match="cannot assign requested address"):
        _listening("192.0.2.1", 0, "192.0.2.1:0", insecure=True)


def test_every_address_is_refused_however_it_is_asked_for() -> None:
    """Every address at once has no name, with or without --insecure-listen."""
    with pytest.raises(Problem, match="no name"):
        _listening("0.0.0.0", 0, "0.0.0.0:0", insecure=True)
