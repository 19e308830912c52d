"""The row of a kind without tables of its own, if its steps act on hosts."""

from __future__ import annotations

import pytest

from contract.ledgers import enter, plan_of, step, written
from fleetform.model.apply import StepOutcome
from fleetform.model.live import LiveResource
from fleetform.model.plan import Predicate
from fleetform.model.ports import Ledger
from fleetform.model.verbs import Verb
from fleetform.store import document_rows, steps

WRITE = step("queue.set", "batch", **written({"fleets": ["a"]}, type="queue"))


@pytest.fixture(autouse=True)
def queues_on_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue is in the ledger only; here its verb has what the verbs of a kind on hosts have."""
    monkeypatch.setitem(steps._BEGIN, Verb.QUEUE_SET, document_rows.begin)
    monkeypatch.setitem(steps._FAIL, Verb.QUEUE_SET, document_rows.fail)


def apply(ledger: Ledger, error: str = "", *predicates: Predicate) -> str:
    """Begin and finish the step; returns the uid that its resource had when it was begun."""
    accepted = enter(ledger, plan_of(ledger, [WRITE], *predicates))
    begun = ledger.begin_steps(accepted.apply_uid, [WRITE], now_ms=1)[WRITE.key]
    ledger.finish_steps(accepted.apply_uid, [WRITE], [StepOutcome(WRITE.key, error)], now_ms=1)
    state = "failed" if error else "done"
    ledger.finish_apply(accepted.apply_uid, state=state, summary="", now_ms=1)
    return begun.resource_uid


def row(ledger: Ledger) -> LiveResource:
    return ledger.read_live().resources[WRITE.resource]


def test_it_has_its_uid_before_it_is_created(ledger: Ledger) -> None:
    """A host can mark what it creates, and the row has the same uid when it is created."""
    uid = apply(ledger)
    found = row(ledger)
    assert uid
    assert (found.uid, found.state, found.generation, found.archived) == (uid, "present", 1, False)
    assert found.parsed == {"fleets": ["a"]}


def test_what_could_not_be_created_keeps_its_uid(ledger: Ledger) -> None:
    """It may exist all the same; it is absent to plans, and created under the uid that it had."""
    uid = apply(ledger, "no")
    assert row(ledger).archived
    assert apply(ledger, "", Predicate("absent", WRITE.resource)) == uid
    assert (row(ledger).state, row(ledger).archived) == ("present", False)


def test_what_could_not_be_updated_differs_from_every_document(ledger: Ledger) -> None:
    """The next plan shows it again, although it is declared as it was."""
    apply(ledger)
    apply(ledger, "no")
    assert (row(ledger).digest, row(ledger).state, row(ledger).archived) == ("", "failed", False)
    apply(ledger)
    assert row(ledger).digest == WRITE.arguments["digest"]
