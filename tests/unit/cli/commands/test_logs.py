from __future__ import annotations

from types import SimpleNamespace

import pytest

import applied
from fleetform.cli.commands.logs import _say_of_earlier
from fleetform.model.run_state import RunState


def test_output_comes_out_as_it_was(typed, lab):
    """Byte for byte, so that it can be piped into what reads it."""
    assert typed("logs", "train") == (0, "one\ntwo\n", "")
    assert typed("logs", "sweep[lr=0.1]")[1] == "one\ntwo\n"


def test_the_tail_is_counted_in_lines(typed, lab):
    """The last lines only, and none where none are wanted."""
    assert typed("logs", "train", "--tail", "1")[1] == "two\n"
    assert typed("logs", "train", "--tail", "0")[1] == ""


def test_following_a_run_that_is_over_ends(typed, lab):
    """All of the output, then the prompt again."""
    assert typed("logs", "train", "--follow")[:2] == (0, "one\ntwo\n")
    assert typed("logs", "train", "-f", "--tail", "1")[1] == "two\n"


def test_what_is_not_there_is_named(typed, lab):
    """Attempts and ranks that do not exist are refused with those that do."""
    assert "its attempts are 1 to 1" in typed("logs", "train", "--attempt", "2")[2]
    assert "the ranks are 0 to 0" in typed("logs", "train", "--rank", "3")[2]
    assert typed("logs", "train", "-f", "--attempt", "1")[0] == 1


def test_a_run_that_waits_has_printed_nothing(typed, lab):
    """No output is no error, because it may come; a line says where the reason is."""
    code, out, err = typed("logs", "next")
    assert (code, out) == (0, "")
    assert "next has not started; `fleetform why next` says why\n" in err


@pytest.mark.parametrize(
    ("state", "started_ms", "is_told"),
    [
        (RunState.SUBMITTED, None, True),
        (RunState.RUNNING, 5, False),
        (RunState.FAILED, None, False),
    ],
)
def test_the_attempt_before_one_that_waits_is_named(state, started_ms, is_told):
    """After the loss of a host the run waits again, and what it printed is of the attempt before."""
    attempts = [
        SimpleNamespace(number=1, started_at_ms=1),
        SimpleNamespace(number=2, started_at_ms=started_ms),
    ]
    history = SimpleNamespace(run=SimpleNamespace(name="long", state=state), attempts=attempts)
    told = []
    _say_of_earlier(history, SimpleNamespace(line=lambda text, _tone: told.append(text)))
    sentence = "attempt 2 has not started; `fleetform logs long --attempt 1` prints the output of attempt 1"
    assert told == ([sentence] if is_told else [])


def test_a_sweep_means_the_elements_that_it_has(typed, lab):
    """Elements that were removed are printed when they are named, and said to be archived."""
    tree = lab / "tree.yaml"
    tree.write_text(tree.read_text().replace("[0.1, 0.2]", "[0.1]"))
    applied.enter(lab)
    assert typed("logs", "sweep") == (0, "one\ntwo\n", "")
    assert typed("logs", "sweep", "-f")[:2] == (0, "one\ntwo\n")
    assert "lr=0.2" not in typed("why", "sweep")[1]
    code, out, err = typed("logs", "sweep[lr=0.2]")
    assert (code, out) == (0, "one\ntwo\n")
    assert "sweep[lr=0.2] is archived" in err
    assert "It is archived: the configuration" in typed("why", "sweep[lr=0.2]")[1]
    tree.write_text(tree.read_text().replace("name: sweep", "name: other"))
    applied.enter(lab)
    assert "lr=0.2" in typed("logs", "sweep")[1]


def test_output_of_a_sweep_says_which_element_printed_it(typed, lab):
    """In the order of the elements; the last lines are those of each element."""
    merged = "[lr=0.1] | one\n[lr=0.1] | two\n[lr=0.2] | one\n[lr=0.2] | two\n"
    assert typed("logs", "sweep") == (0, merged, "")
    assert typed("logs", "sweep", "--follow")[:2] == (0, merged)
    last = "[lr=0.1] | two\n[lr=0.2] | two\n"
    assert typed("logs", "sweep", "--tail", "1")[1] == last
    assert typed("logs", "sweep", "-f", "--tail", "1")[1] == last


def test_output_of_several_runs_has_their_names(typed, lab):
    """Runs that have printed nothing add nothing; one run alone is as it was."""
    code, out, _err = typed("logs", "*", "--tail", "1")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        [name, "|", "two"] for name in ("bad", "sweep[lr=0.1]", "sweep[lr=0.2]", "train")
    ]
    assert typed("logs", "sweep[lr=0.1|0.2]", "--attempt", "1")[0] == 1
    assert typed("logs", "*[lr=0.2]")[1] == "one\ntwo\n"
