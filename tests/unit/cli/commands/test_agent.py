from __future__ import annotations


def test_no_agent_is_said_in_a_sentence(typed, asked, root):
    """Nothing was applied, so nothing bears the uid; that is an answer and no error."""
    assert typed("agent", "list", "-C", str(root))[0] == 0
    assert asked("agent", "list", "-C", str(root)) == []


def test_a_probe_shows_this_machine(asked, typed):
    """What an agent would report, measured here."""
    report = asked("agent", "probe")
    assert report["cpu_millicores"] > 0
    assert report["memory_bytes"] > 0
    assert "CPU" in typed("agent", "probe")[1]
