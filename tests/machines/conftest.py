"""Two whole machines, and a home folder whose OpenSSH configuration names them."""

from __future__ import annotations

import pytest

from integration.ledger import lab as ledger_lab
from integration.ssh import conftest
from integration.ssh.conftest import environment, home, instance, tell
from lab import MACHINES_SECONDS, lab

__all__ = ["environment", "home", "instance", "tell"]


@pytest.fixture(scope="session")
def hosts(tmp_path_factory):
    with lab(tmp_path_factory.mktemp("lab"), hosts=0, machines=2) as running:
        yield running


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel in user mode starts a program ten times slower than its machine, and boots in between."""
    monkeypatch.setattr(conftest, "STORY_SECONDS", MACHINES_SECONDS)
    monkeypatch.setattr(ledger_lab, "PATIENCE_SECONDS", MACHINES_SECONDS)
