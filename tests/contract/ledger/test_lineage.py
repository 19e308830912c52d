"""What an attempt was made from is written when it is placed, and that it was redone is known."""

from __future__ import annotations

import pytest

from contract.ledgers import Desk, submit_step
from fleetform.model.ports import Ledger
from fleetform.model.run import RunState

AFTER_DATA = {"depends_on": {"runs": [{"run": "data"}]}}


@pytest.fixture
def desk(ledger: Ledger) -> Desk:
    made = Desk.of(ledger)
    made.submit(submit_step("data"), submit_step("other"))
    made.run_to_end("data")
    made.run_to_end("other")
    return made


def redone(desk: Desk) -> dict[str, tuple[str, ...]]:
    return dict(desk.ledger.read_live().redone)


def test_what_was_made_of_the_latest_is_fresh(desk: Desk) -> None:
    """Nothing is redone while nothing runs again."""
    desk.submit(submit_step("train", **AFTER_DATA))
    desk.run_to_end("train")
    assert redone(desk) == {}


def test_an_input_that_is_done_anew_is_named(desk: Desk) -> None:
    """From the end of its later execution on, and not before: until then there is no other result."""
    desk.submit(submit_step("train", **AFTER_DATA))
    desk.run_to_end("train")
    desk.submit(submit_step("data", commands=["other"]))
    assert redone(desk) == {}
    desk.run_to_end("data")
    assert redone(desk) == {"train": ("data",)}
    (history,) = desk.ledger.read_runs(["train"])
    assert history.redone == ("data",)


def test_running_it_again_makes_it_fresh(desk: Desk) -> None:
    """The later attempt is made of what there is then."""
    desk.submit(submit_step("train", **AFTER_DATA))
    desk.run_to_end("train")
    desk.submit(submit_step("data", commands=["other"]))
    desk.run_to_end("data")
    desk.submit(submit_step("train", **AFTER_DATA))
    desk.run_to_end("train")
    assert redone(desk) == {}


def test_an_input_that_failed_anew_or_left_is_none(desk: Desk) -> None:
    """There is no newer result to be made from."""
    desk.submit(submit_step("train", **AFTER_DATA))
    desk.run_to_end("train")
    desk.submit(submit_step("data", commands=["other"]))
    desk.run_to_end("data", exit_code=1)
    assert desk.run("data").state is RunState.FAILED
    assert redone(desk) == {}


def test_an_element_is_made_of_its_own_element(desk: Desk) -> None:
    """With `each`, element by element: the other one's input is another."""
    for index in ("1", "2"):
        desk.submit(submit_step(f"array[{index}]", parent="array", element=index))
        desk.run_to_end(f"array[{index}]")
        each = {"depends_on": {"runs": [{"run": "array", "each": True}]}}
        desk.submit(submit_step(f"eval[{index}]", parent="eval", element=index, **each))
        desk.run_to_end(f"eval[{index}]")
    desk.submit(submit_step("array[2]", parent="array", element="2", commands=["other"]))
    desk.run_to_end("array[2]")
    assert redone(desk) == {"eval[2]": ("array[2]",)}


@pytest.mark.parametrize("count", [3, 40])
def test_a_sweep_as_a_whole_is_an_input(desk: Desk, count: int) -> None:
    """By its elements where they are few, as one where they are many: redone once all are done."""
    names = [f"sweep[{number}]" for number in range(count)]
    for number, name in enumerate(names):
        desk.submit(submit_step(name, parent="sweep", element=str(number)))
        desk.run_to_end(name)
    whole = {"depends_on": {"runs": [{"run": "sweep"}]}}
    desk.submit(submit_step("best", **whole))
    desk.run_to_end("best")
    assert redone(desk) == {}
    desk.submit(submit_step(names[0], parent="sweep", element="0", commands=["other"]))
    assert redone(desk) == {}
    desk.run_to_end(names[0])
    assert redone(desk) == {"best": ("sweep[0]",) if count == 3 else ("sweep",)}


def test_work_is_told_by_run_and_fleet(desk: Desk) -> None:
    """What holds units of which fleet at this moment: what a removal would end."""
    desk.submit(submit_step("train"))
    assert desk.place("train", desk.share(gpus=("GPU-0", "GPU-1")))
    (work,) = desk.ledger.read_live().work
    assert (work.run, work.fleet, work.jobs, work.gpus) == ("train", "local", 1, 2)


def test_a_host_is_seen_when_it_says_something(ledger: Ledger) -> None:
    """The moment of its hello is kept: a plan says how old what it knows is."""
    desk = Desk.of(ledger)
    (instance,) = ledger.read_live().instances
    assert instance.seen_at_ms == desk.now_ms
    desk.now_ms += 5_000
    desk.greet(instance.uid)
    (instance,) = ledger.read_live().instances
    assert instance.seen_at_ms == desk.now_ms
