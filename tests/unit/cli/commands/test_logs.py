from __future__ import annotations


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
    """No output is no error: it may come."""
    assert typed("logs", "next")[:2] == (0, "")
