"""The sentences of reasons and holds."""

from __future__ import annotations

from fleetform.model.plan import HeldBy, Reason
from fleetform.model.run_state import RunState
from fleetform.views.reasons import HELD_BY, REASONS, blocked_text, reason_sentence
from unit.plan.trees import fleet, ledger, planned, row, task, tree


def test_every_code_has_a_sentence_of_its_own() -> None:
    """Nobody reads a code."""
    assert set(REASONS) == set(Reason)
    assert set(HELD_BY) == set(HeldBy)
    assert len({*REASONS.values()}) == len(Reason)


def test_only_the_description_is_said_only_alone() -> None:
    """Beside a graver reason, a changed description is not worth a word."""
    old = task("train")
    (alone,) = planned(tree(task("train", description="x")), ledger(row(old))).changes
    assert reason_sentence(alone) == "only its description changed"
    both = task("train", description="x", priority=1)
    (change,) = planned(tree(both), ledger(row(old))).changes
    assert reason_sentence(change) == "updated in place"


def test_a_fleet_is_not_driven() -> None:
    """Words for runs are not used of hosts."""
    (change,) = planned(tree(fleet("f", nodes=2)), ledger(row(fleet("f")))).changes
    assert reason_sentence(change) == "updated in place"


def test_what_is_replaced_is_not_updated_in_place() -> None:
    """A rerun changes `rerun` too, and the plan does not say two things about one change."""
    done = row(task("train"), RunState.DONE)
    (change,) = planned(tree(task("train", rerun=1, priority=5)), ledger(done)).changes
    assert reason_sentence(change) == "`rerun` requests another execution"


def test_what_returns_runs_nothing() -> None:
    """The sentence says what people worry about."""
    (change,) = planned(tree(task("a")), ledger(row(task("a"), archived=True))).changes
    assert reason_sentence(change).endswith("its result is restored and nothing runs")


def test_what_is_declared_and_destroyed_is_not_said_to_be_declared_no_more() -> None:
    """Somebody asks for the removal of everything, whatever the tree says."""
    train = task("train")
    plan = planned(
        tree(fleet("f"), train),
        ledger(row(fleet("f")), row(train)),
        destroy=True,
        allow_destroy=True,
    )
    assert [reason_sentence(one) for one in plan.changes] == [
        "`destroy` removes every resource",
        "`destroy` removes every resource; its result is kept",
    ]


def test_a_detail_that_says_what_is_not_supported_is_not_told_twice():
    """`not supported yet` stands once, and every other cause names itself."""
    unsupported = HELD_BY[HeldBy.NOT_SUPPORTED]
    assert blocked_text(unsupported, "not supported yet: `image`") == "not supported yet: `image`"
    assert blocked_text(HELD_BY[HeldBy.DRIFT], "it has drift") == "drift: it has drift"
