from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from fleetform.app import api_server
from fleetform.app.api_server import AddressUnusable, _address, _listening
from fleetform.app.problems import Problem
from fleetform.app.workspace import Workspace
from fleetform.spec.desired import Environment

if TYPE_CHECKING:
    from fleetform.model.ports import Progress


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "0:0", "[::]:0", "[0:0::0]:0"])
def test_every_address_at_once_is_refused(listen: str) -> None:
    """Whoever called it by a name of theirs would be refused: so it is not announced either."""
    host, port = _address(listen)
    with pytest.raises(Problem, match="has to have one name") as refused:
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
    with pytest.raises(Problem, match="has to have one name"):
        _listening("0.0.0.0", 0, "0.0.0.0:0", insecure=True)


class Notices:
    """Keeps what is said, and ends the task after so many."""

    def __init__(self, wanted: int) -> None:
        self.said: list[str] = []
        self._wanted = wanted

    def notice(self, text: str, **_about: object) -> None:
        self.said.append(text)
        if len(self.said) == self._wanted:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()


def test_a_process_that_cannot_live_is_started_ever_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each end is said with how long it is until the next try, which doubles up to a limit."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(api_server, "_FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(api_server, "_LONGEST_PAUSE_SECONDS", 0.004)
    notices = Notices(6)
    workspace = Workspace(tmp_path, Environment("lab", "0" * 32))

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(api_server.answer(workspace, "127.0.0.1:0", cast("Progress", notices)))
    first, *ends = notices.said
    assert first.startswith("the API answers at http://127.0.0.1:")
    assert ends == [
        f"the API is down: its process ended with exit code 1; it is started again in {pause} s"
        for pause in (0.001, 0.002, 0.004, 0.004, 0.004)
    ]
