from __future__ import annotations

from fleetform.model.live import LedgerStatus, Live, LiveResource
from fleetform.model.override import Override, OverrideKind
from fleetform.spec.desired import Environment, ResourceKey
from fleetform.views.environments import environment_row

LAB = Environment("lab", "uid")


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
    row = environment_row(LAB, live, now_ms=1)
    assert (row.status, row.epoch, row.serial, row.notes) == ("ready", 3, 17, ("hm",))
    assert row.resources == {"fleet": 1, "run": 1}


def test_one_that_was_never_applied_is_empty():
    """No ledger is a state of its own, with the same keys."""
    row = environment_row(LAB, None, now_ms=1)
    assert (row.name, row.status, row.resources) == ("lab", "empty", {})


def test_what_is_in_force_is_said_first():
    """Whoever reads the API sees that `serve` rests, for whom and until when; not what ran out."""
    taken = Override(1, OverrideKind.TAKEOVER, "", "GPU swap", "ada", 0, 10_000)
    over = Override(2, OverrideKind.PAUSE, "", "x", "ada", 0, 1)
    live = Live(
        "uid", "ledger", 3, LedgerStatus.READY, 17, {}, notes=("hm",), overrides=(taken, over)
    )
    first, *rest = environment_row(LAB, live, now_ms=5).notes
    assert "ada" in first
    assert "GPU swap" in first
    assert rest == ["hm"]
