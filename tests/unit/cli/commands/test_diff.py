from __future__ import annotations

import shutil

import pytest


def test_two_environments_need_no_third(typed, root, tmp_path, monkeypatch):
    """They are compared from anywhere, by their folders alone."""
    other = shutil.copytree(root, tmp_path / "other")
    text = (other / "environment.yaml").read_text()
    (other / "environment.yaml").write_text(text + "rules: {delete_count: 3}\n")
    monkeypatch.chdir(tmp_path)
    code, out, err = typed("diff", root.name, other.name)
    assert (code, err) == (0, "")
    assert "delete_count" in out
    assert typed("diff", root.name, "nowhere")[0] == 1


@pytest.mark.parametrize("command", ["history", "events"])
def test_no_limit_is_too_large(typed, lab, command):
    """More than a database can count is all that there is."""
    code, _out, err = typed(command, "--limit", "9" * 30)
    assert (code, err) == (0, "")
