"""Providers by name."""

from __future__ import annotations

import pytest

from fleetform.providers import registry
from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.local.hosts import LocalHosts
from fleetform.providers.pulumi.engine.file_records import FileRecords


def test_our_own_are_found_by_name(tmp_path) -> None:
    """Each name of the table can be loaded."""
    assert "local" in registry.provider_names()
    for name in registry._OURS:
        for stacks in (None, FileRecords(tmp_path)):
            registry.provider(name, state=tmp_path, environment_uid="e", stacks=stacks)
    made = registry.provider("local", state=tmp_path, environment_uid="e")
    assert isinstance(made, LocalHosts)


def test_an_unknown_name_is_answered_with_those_known(tmp_path) -> None:
    """The advice lists what there is."""
    with pytest.raises(PermanentError, match="no provider lunar") as caught:
        registry.provider("lunar", state=tmp_path, environment_uid="e")
    assert "local" in caught.value.advice


def test_another_packages_provider_is_an_entry_point(tmp_path, monkeypatch) -> None:
    """What is installed beside us is called the same way, and cannot take over our names."""
    package = tmp_path / "lunar"
    package.mkdir()
    (package / "lunar_hosts.py").write_text("def make(state, uid):\n    return (state, uid)\n")
    metadata = package / "lunar-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lunar\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[fleetform.providers]\nlunar = lunar_hosts:make\nlocal = lunar_hosts:make\n"
        "broken = lunar_hosts:nothing\n"
    )
    monkeypatch.syspath_prepend(package)
    assert {"local", "lunar"} <= set(registry.provider_names())
    made = registry.provider("lunar", state=tmp_path, environment_uid="e")
    assert made == (tmp_path, "e")
    ours = registry.provider("local", state=tmp_path, environment_uid="e")
    assert isinstance(ours, LocalHosts)
    with pytest.raises(PermanentError, match="broken cannot be loaded"):
        registry.provider("broken", state=tmp_path, environment_uid="e")


def test_volumes_lie_where_they_are_declared(tmp_path) -> None:
    """Absolute as it is; relative in the environment's own folder, and never outside it."""
    hosts = LocalHosts(tmp_path, "e")
    assert hosts.volume_path("e", "/data/sets") == "/data/sets"
    assert hosts.volume_path("e", "sets/a") == f"{tmp_path}/volumes/e/sets/a"
    assert hosts.volume_path("e", "../../../etc") == f"{tmp_path}/volumes/e/etc"
