"""What people have put above the tree: runs wait for it, and go on by themselves."""

from __future__ import annotations

from fleetform.model.decision import Decisions
from fleetform.model.override import Override, OverrideKind
from fleetform.schedule import Policies, Queue, schedule
from unit.schedule.cases import NOW, codes, decide, details, instance, run, started

HOUR = 3_600_000


def override(
    kind: OverrideKind, target: str = "", *, until_ms: int | None = NOW + HOUR
) -> Override:
    return Override(7, kind, target, "smoke", "ada@node1", NOW - 1, until_ms)


def test_a_pause_keeps_everything_from_starting() -> None:
    """Every run waits for it, says by whom and why, and the round is due again at its end."""
    pause = override(OverrideKind.PAUSE)
    decisions = decide([run("a"), run("b")], [instance("h")], overrides=[pause])
    assert started(decisions) == []
    assert codes(decisions, "a") == codes(decisions, "b") == ["override"]
    assert details(decisions, "a") == ["emergency pause by ada@node1: smoke"]
    assert decisions.next_at_ms == NOW + HOUR


def test_without_runs_no_host_is_looked_at() -> None:
    """Most rounds place nothing; they are due again when the override ends all the same."""
    queue = Queue((), overrides=[override(OverrideKind.PAUSE)])
    hosts = iter([instance("h")])
    assert schedule(queue, hosts, Policies(), now_ms=NOW) == Decisions(next_at_ms=NOW + HOUR)
    assert next(hosts).name == "h"


def test_what_is_out_of_date_keeps_nothing() -> None:
    """At the moment it ends, an override is over."""
    over = [override(kind, "run/*", until_ms=NOW) for kind in OverrideKind]
    assert started(decide([run("a")], [instance("h")], overrides=over)) == ["a"]


def test_a_stop_is_for_those_it_names() -> None:
    """A sweep's name stands for its elements, and a run of another name starts."""
    runs = [run("s[lr=1]", parent="s", element="lr=1"), run("sx", number=2)]
    decisions = decide(runs, [instance("h")], overrides=[override(OverrideKind.STOP, "run/s")])
    assert started(decisions) == ["sx"]
    assert codes(decisions, "s[lr=1]") == ["override"]


def test_a_drained_host_is_passed_over() -> None:
    """Runs go to the others; where there are none, the reason names who drained it and why."""
    drain = override(OverrideKind.DRAIN, "host/h0")
    hosts = [instance("h0"), instance("h1", number=1)]
    decisions = decide([run("a")], hosts, overrides=[drain])
    assert [share.instance_uid for one in decisions.starts for share in one.shares] == ["uid-h1"]
    decisions = decide([run("a")], hosts[:1], overrides=[drain])
    assert codes(decisions, "a") == ["fleet-not-ready"]
    assert details(decisions, "a") == [
        (
            "needs 1 instance of fleet local; 0 of 1 that could take it are ready"
            " (1 drained: emergency drain of host/h0 by ada@node1: smoke)"
        )
    ]


def test_a_quarantined_host_is_passed_over() -> None:
    """The reason says that it is quarantined, why, and which command ends that."""
    why = override(OverrideKind.QUARANTINE, "host/h0", until_ms=None)
    hosts = [instance("h0"), instance("h1", number=1)]
    decisions = decide([run("a")], hosts, overrides=[why])
    assert [share.instance_uid for one in decisions.starts for share in one.shares] == ["uid-h1"]
    decisions = decide([run("a")], hosts[:1], overrides=[why])
    assert details(decisions, "a") == [
        (
            "needs 1 instance of fleet local; 0 of 1 that could take it are ready"
            " (1 quarantined: smoke; `fleetform emergency lift 7` ends it)"
        )
    ]


def test_a_drained_fleet_makes_no_run_impossible() -> None:
    """What can never be placed is judged by declared capacity, and a drain passes."""
    drain = override(OverrideKind.DRAIN, "fleet/local")
    decisions = decide([run("a")], [instance("h")], overrides=[drain])
    assert decisions.impossible == ()
    assert decisions.next_at_ms == NOW + HOUR


def test_a_freeze_and_a_thaw_are_nothing_to_what_was_accepted() -> None:
    """They are about plans: accepted runs start as ever."""
    above = [override(kind) for kind in (OverrideKind.FREEZE, OverrideKind.THAW)]
    decisions = decide([run("a")], [instance("h")], overrides=above)
    assert started(decisions) == ["a"]
    assert decisions.next_at_ms is None
