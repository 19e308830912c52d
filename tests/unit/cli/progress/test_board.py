from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.cli.progress.board import Board, last_line, most_urgent, printable
from fleetform.model.run import Run, RunState, RunUid, Template


def run_in(state, *, name="train", attempt=1, parent=""):
    return Run(
        uid=RunUid(name), name=name, template=Template(name, "task", ("true",), parent=parent),
        state=state, number=1, attempt=attempt,
    )  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(RunState))))
def test_counts_agree_with_the_items(changes):
    """However the runs move, each is counted once, in its latest state."""
    board = Board()
    for name, state in changes:
        board.note_run(run_in(state, name=name), "")
    for state in RunState:
        shown = [item for item in board.items.values() if item.state is state]
        assert board.counts[state] == len(shown)


def test_what_went_wrong_is_shown_first():
    """Where not all fit, a failed run is never the one left out."""
    board = Board()
    for number in range(50):
        board.note_run(run_in(RunState.DONE, name=f"a{number}"), "")
    board.note_run(run_in(RunState.FAILED, name="bad"), "")
    board.note_run(run_in(RunState.RUNNING, name="moves"), "")
    assert [item.name for item in most_urgent(board.rows(), 3)] == ["bad", "moves", "a0"]
    assert board.summary() == "1 failed, 1 running, 50 done"


def test_a_large_array_is_one_item_with_its_first_failures():
    """A thousand elements leave room for the runs beside them."""
    board = Board()
    for number in range(1000):
        state = RunState.FAILED if number < 20 else RunState.RUNNING
        board.note_run(run_in(state, name=f"arr[{number}]", parent="arr"), "")
    board.note_run(run_in(RunState.DONE), "")
    train, whole, *failed = board.rows()
    assert train.name == "train"
    assert (whole.name, whole.state, whole.message) == (
        "arr",
        RunState.RUNNING,
        "20 failed, 980 running",
    )
    assert [item.name for item in failed] == [f"arr[{number}]" for number in range(10)]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"one\ntwo\n", "two"),
        (b"one\n\n  \n", "one"),
        (b"10%\r20%\r30%", "30%"),
        (b"\x1b[31mred\x1b[0m text\n", "red text"),
        (b"\x1b]0;title\x07ok", "0;titleok"),
        (b"\xff\xfe\n", "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"),
        (b"", ""),
    ],
)
def test_the_last_line_is_text(data, line):
    """What a job prints is shown and never acts on the terminal."""
    assert last_line(data) == line


@given(st.text())
def test_nothing_that_acts_on_a_terminal_is_left(text):
    """No escape, bell or backspace of a job reaches the one who watches."""
    assert printable(text).isprintable()
