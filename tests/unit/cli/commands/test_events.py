from __future__ import annotations


def test_the_latest_events_come_last(asked, lab):
    """Limited from the end: what happened just now is what is asked for."""
    everything = asked("events", "--limit", "1000")
    numbers = [row["number"] for row in everything]
    assert numbers == sorted(numbers)
    assert asked("events", "--limit", "2") == everything[-2:]


def test_events_of_one_run_are_its_own(asked, typed, lab):
    """A run's or a sweep's; an unknown name is refused."""
    assert {row["resource"] for row in asked("events", "train")} == {"run/train"}
    assert len({row["resource"] for row in asked("events", "sweep")}) == 2
    assert typed("events", "nobody")[0] == 1


def test_what_left_the_tree_has_its_events(asked, typed, lab):
    """An archived run is asked about like any other, in every command that tells of runs."""
    assert typed("destroy", "-y", "--allow-destroy")[0] == 0
    assert {row["resource"] for row in asked("events", "train")} == {"run/train"}
    assert len({row["resource"] for row in asked("events", "sweep")}) == 2
    assert typed("why", "train")[0] == 0
    assert typed("logs", "train")[0] == 0


def test_events_are_a_table(typed, lab):
    """For people: time, what, of which resource, in a sentence."""
    _code, out, _err = typed("events")
    assert out.splitlines()[0].split() == ["TIME", "EVENT", "RESOURCE", "MESSAGE"]
