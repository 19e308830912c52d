"""Two whole machines, and a home folder whose OpenSSH configuration names them."""

from __future__ import annotations

import pytest

from integration.ssh.conftest import home, instance, tell
from lab import lab

__all__ = ["home", "instance", "tell"]


@pytest.fixture(scope="session")
def hosts(tmp_path_factory):
    with lab(tmp_path_factory.mktemp("lab"), hosts=0, machines=2) as running:
        yield running
