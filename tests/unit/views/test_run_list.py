"""Arrays and sweeps folded into one row, with rows for the elements that failed."""

from __future__ import annotations

from dataclasses import replace

from fleetform.model.run import RunState
from fleetform.views.run_list import list_runs
from fleetform.views.runs import in_order, run_rows, runs_table
from fleetform.views.table import plain_lines
from unit.views.rows import NOW, history


def rows_of(name, states, **more):
    """Rows of an array by index, from 1."""
    many = [
        history(f"{name}[{number}]", state, parent=name, **more)
        for number, state in enumerate(states, 1)
    ]
    return run_rows(in_order(many), now_ms=NOW)


def listed(rows, **more):
    """Name, state and message of each row."""
    return [(row.name, row.state, row.message) for row in list_runs(rows, **more).rows]


def test_an_array_is_one_row_with_counts():
    """The state is that of the work; other runs keep their place in the order of names."""
    states = [RunState.DONE, RunState.RUNNING, RunState.DONE]
    many = run_rows([history("aa")], now_ms=NOW) + rows_of("arr", states)
    assert listed(many) == [
        ("aa", "running", ""),
        ("arr", "running", "3 elements: 1 running, 2 done"),
    ]
    assert listed(rows_of("arr", [RunState.DONE] * 3)) == [("arr", "done", "3 elements")]


def test_failed_elements_are_named_in_ranges_by_what_happened():
    """One row for each state and message, whose name is an address of these elements."""
    rows = list(rows_of("arr", [RunState.DONE] * 300))
    for number, message in {
        17: "exit code 3",
        18: "exit code 3",
        230: "exit code 3",
        5: "out of memory",
    }.items():
        rows[number - 1] = replace(rows[number - 1], state="failed", message=message)
    assert listed(rows) == [
        ("arr", "failed", "300 elements: 4 failed, 296 done"),
        ("arr[5]", "failed", "out of memory"),
        ("arr[17-18,230]", "failed", "3 elements: exit code 3"),
    ]


def test_failed_elements_of_a_sweep_have_addresses_too():
    """All values of a parameter in one row; elements without an address in common, in a row each."""
    names = [f"s[batch={batch},lr={lr}]" for batch in (8, 16) for lr in (0.1, 0.2)]
    made = [history(name, RunState.FAILED, parent="s", message="exit code 1") for name in names]
    more = history("s[batch=32,lr=0.1]", RunState.DONE, parent="s")
    grid = run_rows([*made, more], now_ms=NOW)
    assert listed(grid)[1:] == [("s[batch=8|16,lr=0.1|0.2]", "failed", "4 elements: exit code 1")]
    diagonal = run_rows([made[0], made[3], more], now_ms=NOW)
    assert [name for name, _, _ in listed(diagonal)] == ["s", names[0], names[3]]


def test_an_array_that_failed_alike_is_one_row():
    """What its row says already is not said once more."""
    rows = rows_of("arr", [RunState.ABORTED] * 4, message="needed data to succeed")
    assert listed(rows) == [("arr", "aborted", "4 elements: needed data to succeed")]


def test_what_is_not_named_is_counted():
    """Of many kinds of failure the first few have rows, and it is said how many there are."""
    rows = [
        replace(row, message=f"exit code {row.name}")
        for row in rows_of("arr", [RunState.FAILED] * 20)
    ]
    found = list_runs(rows)
    assert len(found.rows) == 7
    assert found.unlisted == {"arr": 20}


def test_an_array_that_is_named_keeps_a_row_for_each_element():
    """Other arrays stay folded."""
    rows = rows_of("one", [RunState.DONE] * 2) + rows_of("two", [RunState.DONE] * 2)
    assert [name for name, _, _ in listed(rows, unfolded=["two"])] == ["one", "two[1]", "two[2]"]


def test_the_row_of_an_array_spans_its_elements():
    """From the first start to now, on the hosts of all of them; in a pipe nothing is cut."""
    rows = list(rows_of("arr", [RunState.RUNNING] * 4))
    rows = [replace(row, instances=(f"local-{number}",)) for number, row in enumerate(rows)]
    rows[3] = replace(rows[3], started_at_ms=NOW - 80_000, duration_ms=80_000)
    title, line = plain_lines(runs_table(list_runs(rows).rows, now_ms=NOW))
    assert title.split() == ["NAME", "STATE", "AGE", "DURATION", "RESOURCES", "HOSTS", "MESSAGE"]
    assert "1m20s" in line
    assert line.endswith("local-0 and 3 more  4 elements")
