"""Where a stack has its state and its passphrase."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from fleetform.providers.pulumi.engine.stack_settings import (
    StackSettings,
    engine_environment,
    passphrase_file,
)

SETTINGS = StackSettings("fleet-a", Path("/s/stacks/a"), "file:///s/state", Path("/c/e.passphrase"))


def test_the_passphrase_stays(tmp_path):
    """It is written once, for this user alone."""
    path = passphrase_file(tmp_path / "config", "e1")
    first = path.read_text()
    assert len(first) > 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert passphrase_file(tmp_path / "config", "e1").read_text() == first
    assert passphrase_file(tmp_path / "config", "e2").read_text() != first
    assert [one.name for one in sorted(path.parent.iterdir())] == ["e1.passphrase", "e2.passphrase"]


def test_variables_of_pulumi_do_not_reach_the_engine():
    """Those of the cloud do, and where plugins are installed."""
    given = {
        "AWS_PROFILE": "p",
        "PULUMI_HOME": "/h",
        "PULUMI_BACKEND_URL": "https://elsewhere",
        "PULUMI_CONFIG_PASSPHRASE": "other",
    }
    made = engine_environment(SETTINGS, given)
    assert made["AWS_PROFILE"] == "p"
    assert made["PULUMI_HOME"] == "/h"
    assert made["PULUMI_BACKEND_URL"] == "file:///s/state?metadata=skip"
    assert made["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == "1"
    assert "PULUMI_CONFIG_PASSPHRASE" not in made


@pytest.mark.parametrize("name", ["", "a/b", "a b", "x" * 101])
def test_a_stack_has_a_name_that_the_engine_accepts(name):
    """It becomes the name of files and of tables."""
    with pytest.raises(AssertionError):
        StackSettings(name, Path("/s"), "file:///s", Path("/c"))
