from __future__ import annotations

from fleetform.model.instance import Instance, InstanceState
from fleetform.model.leadership import Holder
from fleetform.model.ledger import LedgerStatus
from fleetform.model.live import Live, LiveResource
from fleetform.model.override import Override, OverrideKind
from fleetform.spec.desired import Environment, ResourceKey
from fleetform.views.environments import RunningController, environment_row

LAB = Environment("lab", "uid")
HOLDER = Holder(17, "serve", "serve", 1, "node1")


def resource(kind, name, *, archived=False):
    return LiveResource(
        ResourceKey(kind, name), name, 1, "d", "d", "d", "{}", kind, archived=archived
    )


def test_an_environment_counts_what_is_present():
    """What is archived has left the tree and is not counted."""
    rows = [resource("fleet", "local"), resource("run", "a"), resource("run", "b", archived=True)]
    live = Live(
        "uid", "ledger", 3, LedgerStatus.READY, 17, {row.key: row for row in rows}, notes=("hm",)
    )
    row = environment_row(LAB, live, controller=HOLDER, now_ms=1)
    assert (row.status, row.epoch, row.serial, row.notes) == ("ready", 3, 17, ("hm",))
    assert row.resources == {"fleet": 1, "run": 1}


def test_one_that_was_never_applied_is_empty():
    """No ledger is a state of its own, with the same keys."""
    row = environment_row(LAB, None, controller=HOLDER, now_ms=1)
    assert (row.name, row.status, row.resources) == ("lab", "empty", {})


def test_what_is_in_force_is_said_first():
    """Whoever reads the API sees that `serve` rests, for whom and until when; not what ran out."""
    taken = Override(1, OverrideKind.TAKEOVER, "", "GPU swap", "ada", 0, 10_000)
    over = Override(2, OverrideKind.PAUSE, "", "x", "ada", 0, 1)
    live = Live(
        "uid", "ledger", 3, LedgerStatus.READY, 17, {}, notes=("hm",), overrides=(taken, over)
    )
    first, *rest = environment_row(LAB, live, controller=HOLDER, now_ms=5).notes
    assert "ada" in first
    assert "GPU swap" in first
    assert rest == ["hm"]


def test_no_controller_is_said():
    """What is told of runs is old where nothing drives them: the row says so, and how old."""
    hosts = tuple(
        Instance(name, name, "local", 0, InstanceState.READY, seen_at_ms=seen)
        for name, seen in (("a", 90_000), ("b", None), ("c", 95_000))
    )
    live = Live("uid", "ledger", 3, LedgerStatus.READY, 17, {}, instances=hosts)
    row = environment_row(LAB, live, controller=None, now_ms=100_000)
    assert row.controller is None
    (note,) = row.notes
    assert note.startswith("no controller is running: the states of hosts and runs may be outdated")
    assert note.endswith(", last observed 10s ago")
    running = environment_row(LAB, live, controller=HOLDER, now_ms=100_000)
    assert running.controller == RunningController("serve", "serve", 17, "node1", 1)
    assert running.notes == ()
