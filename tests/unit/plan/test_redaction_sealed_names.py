"""Elements that an earlier release named with a secret in clear."""

from __future__ import annotations

from fleetform.model.plan import Action
from fleetform.model.redaction import SEALED_MARK, Seal
from fleetform.model.run import RunState
from fleetform.plan.redaction import with_sealed_names
from fleetform.spec.desired import Declared
from fleetform.spec.secrecy import SEALED_IN_NAME, sealed_for_name
from unit.plan.trees import declare, element, ledger, planned, row, tree

UID = tree().environment.uid


def sealed(**matrix: str) -> Declared:
    """The same element as it is named now."""
    name = sealed_for_name(UID, matrix["api_token"])
    inside = f"api_token={name},lr={matrix['lr']}"
    document = {"type": "task", "commands": ["train"], "matrix": matrix}
    return declare("run", f"sweep[{inside}]", document, parent="sweep", element=inside)


def test_they_are_renamed_and_run_no_second_time() -> None:
    """Whether they are done or at work; a second plan is empty."""
    old = [element("sweep", api_token=one, lr="0.1") for one in ("abc", "def")]
    new = [sealed(api_token=one, lr="0.1") for one in ("abc", "def")]
    live = ledger(row(old[0], RunState.DONE), row(old[1], RunState.RUNNING))
    desired = with_sealed_names(tree(*new), live)
    plan = planned(desired, live)
    assert [change.action for change in plan.changes] == [Action.UPDATE] * 2
    assert {step.verb for step in plan.steps} == {"resource.move"}
    now = ledger(*(row(one, RunState.DONE) for one in new))
    assert with_sealed_names(tree(*new), now) == tree(*new)


def test_nothing_else_is_renamed() -> None:
    """Neither other sweeps, nor elements that are declared no longer."""
    plain, gone = element("sweep", lr="0.1"), element("sweep", api_token="gone", lr="0.1")
    desired = tree(plain)
    assert with_sealed_names(desired, ledger(row(plain), row(gone))) is desired


def test_a_name_and_a_version_seal_with_one_key() -> None:
    """Whoever compares a plan with a name sees that both are of one value."""
    version = Seal(UID).version("abc").removeprefix(SEALED_MARK)
    assert sealed_for_name(UID, "abc") == f"{SEALED_IN_NAME}{version}"
