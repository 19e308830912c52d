from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """Files count as settled at once, so that what is kept of them is used."""
    monkeypatch.setattr("fleetform.spec.tree.cache.SETTLED_NS", -(10**18))
