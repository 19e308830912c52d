"""Whose processes are an agent's, told by what they were started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetform.agents.host.orphans import Misplaced, find, is_agent_of

AGENT = ["/usr/bin/python3", "-I", "-S", "/state/agent/fleetform-agent-1.pyz", "daemon"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([*AGENT, "--root", "ROOT", "--idle-exit", "600"], True),
        ([*AGENT, "--root=ROOT"], True),
        ([*AGENT, "--root", "LINK"], True),
        ([*AGENT, "--root", "ROOT/jobs"], False),
        ([*AGENT, "--root", "ROOT-2"], False),
        ([*AGENT, "--root", "../lab"], False),
        ([*AGENT, "--root"], False),
        (AGENT, False),
        (["fleetform-agent", "connect", "--root", "ROOT"], False),
        (["another", "daemon", "--root", "ROOT"], False),
        ([], False),
    ],
)
def test_agents_of_a_root(tmp_path: Path, arguments: list[str], expected: bool) -> None:
    """One of another root, and whoever is no agent, is left alone; a root may go by two names."""
    root, link = tmp_path / "lab", tmp_path / "link"
    root.mkdir()
    link.symlink_to(root)
    said = [one.replace("ROOT", str(root)).replace("LINK", str(link)) for one in arguments]
    assert is_agent_of([one.encode() for one in said], str(root)) is expected


def test_a_new_root_has_none(tmp_path: Path) -> None:
    assert find(str(tmp_path / "new")) == Misplaced((), ())
