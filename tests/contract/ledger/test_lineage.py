"""Which results an attempt started from is written when it is placed, and compared with those of now."""

from __future__ import annotations

import pytest

from contract.ledgers import Desk, carry_out, step, submit_step, written
from fleetform.model.lineage import InputEvent
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


RERUN, ADDED, REMOVED = InputEvent.RERUN, InputEvent.ADDED, InputEvent.REMOVED
CHANGED, OUTDATED, LOST = InputEvent.CHANGED, InputEvent.OUTDATED, InputEvent.LOST


def outdated(desk: Desk) -> dict[str, tuple[tuple[str, InputEvent], ...]]:
    return {name: tuple(map(tuple, one)) for name, one in desk.ledger.read_live().outdated.items()}


def sweep(desk: Desk, *elements: int, **document: object) -> None:
    """Elements of one sweep, run to their end."""
    for number in elements:
        desk.submit(submit_step(f"sw[{number}]", parent="sw", element=str(number), **document))
        desk.run_to_end(f"sw[{number}]")


def after(name: str, **more: object) -> dict[str, object]:
    return {"depends_on": {"runs": [{"run": name, **more}]}}


def test_what_was_made_of_the_latest_is_fresh(desk: Desk) -> None:
    """Nothing is redone while nothing runs again."""
    desk.submit(submit_step("train", **AFTER_DATA))
    desk.run_to_end("train")
    assert outdated(desk) == {}


def test_an_input_that_is_done_anew_is_named(desk: Desk) -> None:
    """From the end of its later execution on, and not before: until then there is no other result."""
    desk.submit(submit_step("train", **AFTER_DATA))
    desk.run_to_end("train")
    desk.submit(submit_step("data", commands=["other"]))
    assert outdated(desk) == {}
    desk.run_to_end("data")
    assert outdated(desk) == {"train": (("data", RERUN),)}
    (history,) = desk.ledger.read_runs(["train"])
    assert history.outdated == (("data", RERUN),)


def test_running_it_again_makes_it_fresh(desk: Desk) -> None:
    """The later attempt is made of what there is then."""
    desk.submit(submit_step("train", **AFTER_DATA))
    desk.run_to_end("train")
    desk.submit(submit_step("data", commands=["other"]))
    desk.run_to_end("data")
    desk.submit(submit_step("train", **AFTER_DATA))
    desk.run_to_end("train")
    assert outdated(desk) == {}


def test_an_input_that_failed_anew_or_left_is_none(desk: Desk) -> None:
    """There is no newer result to be made from."""
    desk.submit(submit_step("train", **AFTER_DATA))
    desk.run_to_end("train")
    desk.submit(submit_step("data", commands=["other"]))
    desk.run_to_end("data", exit_code=1)
    assert desk.run("data").state is RunState.FAILED
    assert outdated(desk) == {}


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
    assert outdated(desk) == {"eval[2]": (("array[2]", RERUN),)}


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
    assert outdated(desk) == {}
    desk.submit(submit_step(names[0], parent="sweep", element="0", commands=["other"]))
    assert outdated(desk) == {}
    desk.run_to_end(names[0])
    assert outdated(desk) == {"best": (("sweep[0]", RERUN) if count == 3 else ("sweep", CHANGED),)}


def test_a_replaced_element_is_another_set(desk: Desk) -> None:
    """The one that left counts at once, the one that came once it has a result."""
    sweep(desk, 1, 2)
    desk.submit(submit_step("co", **after("sw")))
    desk.run_to_end("co")
    assert outdated(desk) == {}
    desk.submit(step("run.archive", "sw[2]"))
    assert outdated(desk) == {"co": (("sw[2]", REMOVED),)}
    sweep(desk, 3)
    assert outdated(desk) == {"co": (("sw[2]", REMOVED), ("sw[3]", ADDED))}


@pytest.mark.parametrize("count", [3, 40])
def test_an_added_element_is_another_set(desk: Desk, count: int) -> None:
    """Also of a sweep of which only a fingerprint is kept."""
    sweep(desk, *range(count))
    desk.submit(submit_step("co", **after("sw")))
    desk.run_to_end("co")
    desk.submit(submit_step("sw[99]", parent="sw", element="99"))
    assert outdated(desk) == {}
    desk.run_to_end("sw[99]")
    assert outdated(desk) == {"co": (("sw[99]", ADDED) if count == 3 else ("sw", CHANGED),)}


def test_a_removed_element_of_a_large_sweep_is_another_set(desk: Desk) -> None:
    """Also where only a fingerprint of it is kept."""
    sweep(desk, *range(40))
    desk.submit(submit_step("co", **after("sw")))
    desk.run_to_end("co")
    desk.submit(step("run.archive", "sw[7]"))
    assert outdated(desk) == {"co": (("sw", CHANGED),)}


def test_a_sweep_that_grew_large_is_compared_as_one(desk: Desk) -> None:
    """An attempt that started from few elements of it has other inputs."""
    sweep(desk, 1, 2)
    desk.submit(submit_step("co", **after("sw")))
    desk.run_to_end("co")
    sweep(desk, *range(10, 50))
    assert outdated(desk) == {"co": (("sw", CHANGED),)}


def test_of_alternatives_only_those_that_had_a_result_are_inputs(desk: Desk) -> None:
    """With `when: any`, a run that ends later was none that the attempt started from."""
    desk.submit(submit_step("late"))
    runs = [{"run": "data"}, {"run": "late"}]
    desk.submit(submit_step("co", depends_on={"runs": runs, "all": False}))
    desk.run_to_end("co")
    desk.run_to_end("late")
    assert outdated(desk) == {}
    desk.submit(submit_step("data", commands=["other"]))
    desk.run_to_end("data")
    assert outdated(desk) == {"co": (("data", RERUN),)}


def test_an_input_that_is_submitted_again_at_the_same_moment_has_no_result_yet(desk: Desk) -> None:
    """The attempt read the result before it, and is outdated once there is another."""
    desk.submit(submit_step("co", **after("data")))
    desk.submit(submit_step("data", commands=["other"]))
    desk.run_to_end("co")
    assert outdated(desk) == {}
    desk.run_to_end("data")
    assert outdated(desk) == {"co": (("data", RERUN),)}


def test_a_failed_input_that_failed_again_is_another_result(desk: Desk) -> None:
    """A run that waits for a failure started from that failure."""
    desk.submit(submit_step("broken"))
    desk.run_to_end("broken", exit_code=1)
    desk.submit(submit_step("co", **after("broken", when="failed")))
    desk.run_to_end("co")
    desk.submit(submit_step("broken", commands=["other"]))
    desk.run_to_end("broken", exit_code=1)
    assert outdated(desk) == {"co": (("broken", RERUN),)}


def test_an_outdated_input_is_named_along_a_chain(desk: Desk) -> None:
    """Its result is the one that was used, and yet not what it would be now."""
    sweep(desk, 1, 2, **after("data"))
    desk.submit(submit_step("b", **after("sw")))
    desk.run_to_end("b")
    desk.submit(submit_step("c", **after("b")))
    desk.run_to_end("c")
    desk.submit(submit_step("data", commands=["other"]))
    desk.run_to_end("data")
    again = (("data", RERUN),)
    assert outdated(desk) == {
        "b": (("sw", OUTDATED),),
        "c": (("b", OUTDATED),),
        "sw[1]": again,
        "sw[2]": again,
    }


def test_an_input_that_left_as_a_whole_makes_nothing_outdated(desk: Desk) -> None:
    """There is nothing newer to start from."""
    desk.submit(submit_step("co", **after("data")))
    desk.run_to_end("co")
    desk.submit(step("run.archive", "data"))
    assert outdated(desk) == {}


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


def test_results_of_runs_that_mounted_a_volume_are_outdated_when_its_data_is_lost(
    desk: Desk,
) -> None:
    """Until they are run again, and with what was made from them; a later update changes nothing of it."""

    def volume(verb: str, **more: object) -> None:
        where = {"fleet": "local", "path": "v"}
        carry_out(
            desk.ledger,
            [step(verb, "v", **written(where, type="volume", **where, **more))],
            now_ms=desk.now_ms,
        )

    mounting = {"volumes": [{"name": "v", "path": "/v"}]}
    volume("volume.make")
    desk.submit(submit_step("writer", **mounting), submit_step("waits", **mounting))
    sweep(desk, 1, **mounting)
    desk.run_to_end("writer")
    desk.submit(submit_step("report", **after("sw")))
    desk.run_to_end("report")
    volume("volume.update")
    assert outdated(desk) == {}
    desk.now_ms += 1000
    volume("volume.update", take="any", lost=True)
    lost = (("v", LOST),)
    expected = {"report": (("sw", OUTDATED),), "sw[1]": lost, "writer": lost}
    assert outdated(desk) == expected
    desk.now_ms += 1000
    volume("volume.update")
    assert outdated(desk) == expected
    desk.run_to_end("waits")
    desk.submit(submit_step("writer", **mounting, rerun=1))
    desk.run_to_end("writer")
    assert outdated(desk).keys() == {"report", "sw[1]"}
