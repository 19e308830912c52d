"""What was planned and applied is kept, and found again."""

from __future__ import annotations

from contract.ledgers import absent, carry_out, enter, plan_of, step, submit_step
from fleetform.model.apply import StepOutcome
from fleetform.spec.desired import ResourceKey
from fleetform.store.history import keep_plan
from fleetform.store.ledger import StoredLedger


def keep(ledger: StoredLedger, digest: str, now_ms: int = 5, body: bytes = b"{}") -> None:
    with ledger._database.write() as transaction:
        keep_plan(
            transaction,
            digest,
            body,
            who="ada",
            commit="c1",
            summary="Plan: 1 to create.",
            now_ms=now_ms,
        )


def test_a_plan_is_kept_once(ledger: StoredLedger) -> None:
    """The same plan made again is one entry, at the time when it was made last."""
    keep(ledger, "a" * 64, now_ms=5)
    keep(ledger, "a" * 64, now_ms=9)
    (entry,) = ledger.read_history()
    assert (entry.kind, entry.at_ms, entry.who, entry.summary) == (
        "plan", 9, "ada", "Plan: 1 to create.",
    )  # fmt: skip
    assert ledger.read_plan("a" * 64) == b"{}"


def test_a_plan_is_kept_as_it_was_approved(ledger: StoredLedger) -> None:
    """What a preview said first is replaced when the plan is applied, and then stays."""
    plan = plan_of(ledger, [submit_step("a")])
    keep(ledger, plan.digest, now_ms=5, body=b"preview failed")
    ledger.accept(plan, b"previewed", who="ada", now_ms=7)
    keep(ledger, plan.digest, now_ms=9, body=b"preview failed")
    assert ledger.read_plan(plan.digest) == b"previewed"


def test_a_large_plan_comes_back_as_it_was(ledger: StoredLedger) -> None:
    """Packed on the way in, unpacked on the way out."""
    body = b'{"a":"' + b"train " * 10_000 + b'"}'
    keep(ledger, "b" * 64, body=body)
    assert ledger.read_plan("b" * 64) == body


def test_plans_that_nobody_applied_go_after_ninety_days(ledger: StoredLedger) -> None:
    """What was applied stays for ever."""
    carry_out(ledger, [submit_step("a")])
    keep(ledger, "c" * 64, now_ms=10)
    keep(ledger, "d" * 64, now_ms=91 * 24 * 3600 * 1000)
    kinds = [(entry.kind, entry.digest[:1]) for entry in ledger.read_history()]
    assert ("plan", "c") not in kinds
    assert ("plan", "d") in kinds
    assert any(kind == "apply" for kind, _ in kinds)


def test_digests_are_found_by_their_beginning(ledger: StoredLedger) -> None:
    """Two are named where one beginning fits several, the latest first."""
    for digest, now_ms in (("abcd" + "0" * 60, 1), ("abce" + "0" * 60, 2), ("abf0" + "0" * 60, 3)):
        keep(ledger, digest, now_ms=now_ms)
    assert ledger.find_digests("abcd") == ("abcd" + "0" * 60,)
    assert [one[:4] for one in ledger.find_digests("abc")] == ["abce", "abcd"]
    assert ledger.find_digests("ff") == ()


def test_an_apply_says_what_came_of_each_step(ledger: StoredLedger) -> None:
    """A step that failed has its error, and both have the time of their end."""
    steps = [submit_step("a"), step("fleet.make", "f", document={}, instances=[])]
    plan = plan_of(ledger, steps, absent("run", "a"))
    accepted = enter(ledger, plan)
    ledger.finish_steps(accepted.apply_uid, steps[:1], [StepOutcome(steps[0].key)], now_ms=7)
    ledger.finish_steps(
        accepted.apply_uid, steps[1:], [StepOutcome(steps[1].key, "no room")], now_ms=8
    )
    ledger.finish_apply(accepted.apply_uid, state="failed", summary="1 of 2", now_ms=9)
    found = {one.key: (one.state, one.error, one.finished_at_ms) for one in
             ledger.read_operations(accepted.apply_uid)}  # fmt: skip
    assert found == {
        steps[0].key: ("done", "", 7),
        steps[1].key: ("failed", "no room", 8),
    }
    (entry,) = ledger.read_history(applies_only=True)
    assert (entry.state, entry.finished_at_ms, entry.summary) == ("failed", 9, "1 of 2")


def test_a_resource_knows_the_applies_that_touched_it(ledger: StoredLedger) -> None:
    """Newest first, and none that touched others only."""
    carry_out(ledger, [submit_step("a")])
    carry_out(ledger, [submit_step("b")])
    carry_out(ledger, [step("run.archive", "b")])
    touched = ledger.read_touches(ResourceKey("run", "b"))
    assert len(touched) == 2
    assert touched[0].entry.at_ms >= touched[1].entry.at_ms
    assert len(ledger.read_touches(ResourceKey("run", "a"))) == 1
    assert ledger.read_touches(ResourceKey("run", "none")) == ()


def test_events_of_one_resource(ledger: StoredLedger) -> None:
    """A sweep's name stands for its elements; another run's events are not among them."""
    carry_out(ledger, [submit_step("s[1]"), submit_step("s[2]"), submit_step("sx")])
    names = [str(event.resource) for event in ledger.read_resource_events(ResourceKey("run", "s"))]
    assert sorted(names) == ["run/s[1]", "run/s[2]"]
    assert len(ledger.read_resource_events(ResourceKey("run", "s"), limit=1)) == 1
