from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleetform.apply.execute import StepGraph
from fleetform.model.plan import Step
from fleetform.spec.desired import ResourceKey


def step(key: str, *needs: str) -> Step:
    return Step(key, "run.submit", ResourceKey("run", key), needs)


def keys(steps: list[Step]) -> list[str]:
    return [one.key for one in steps]


def test_what_needs_nothing_is_ready_at_once_and_only_once() -> None:
    """The first ready set has every step without needs, and the next is empty until one is done."""
    graph = StepGraph([step("b"), step("a"), step("c", "a")], frozenset())
    assert keys(graph.take_ready()) == ["a", "b"]
    assert graph.take_ready() == []
    graph.mark_done(["a"])
    assert keys(graph.take_ready()) == ["c"]


def test_a_failure_holds_back_only_what_needs_it() -> None:
    """A step that is never marked done keeps its dependants, and nobody else, from being ready."""
    graph = StepGraph([step("a"), step("b"), step("c", "a"), step("d", "b")], frozenset())
    graph.take_ready()
    graph.mark_done(["b"])
    assert keys(graph.take_ready()) == ["d"]


def test_what_a_crash_left_done_is_passed_over() -> None:
    """Steps that the ledger calls done are not handed out, and what needs them is ready."""
    graph = StepGraph([step("a"), step("b", "a"), step("c", "b")], frozenset({"a", "b"}))
    assert keys(graph.take_ready()) == ["c"]


@given(st.lists(st.sets(st.integers(0, 19)), min_size=1, max_size=20), st.data())
def test_every_step_comes_after_its_needs(needs: list[set[int]], data: st.DataObject) -> None:
    """Whatever the graph, each step is handed out once and after everything that it needs."""
    steps = [
        step(str(number), *(str(other) for other in sorted(wanted) if other < number))
        for number, wanted in enumerate(needs)
    ]
    graph = StepGraph(data.draw(st.permutations(steps)), frozenset())
    order: list[str] = []
    while ready := graph.take_ready():
        order.extend(keys(ready))
        graph.mark_done(keys(ready))
    assert sorted(order) == sorted(keys(steps))
    place = {key: number for number, key in enumerate(order)}
    assert all(place[need] < place[one.key] for one in steps for need in one.needs)
