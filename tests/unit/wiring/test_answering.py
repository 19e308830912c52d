from __future__ import annotations

import contextlib

import pytest

from fleetform.wiring.answering import _address, _listening
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
