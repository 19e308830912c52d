from __future__ import annotations

from fleetform.views.text_diff import diff_lines, text_diff


def test_lines_have_the_tone_of_what_they_do():
    """Headers, places, what goes and what comes; a removed line of dashes is no header."""
    found = text_diff("a.yaml", "name: x\n---\nold\n", "name: x\nnew\n")
    assert [(one.text, one.spans[0].tone) for one in found] == [
        ("--- a.yaml", "bold"),
        ("+++ a.yaml", "bold"),
        ("@@ -1,3 +1,2 @@", "info"),
        (" name: x", "plain"),
        ("----", "bad"),
        ("-old", "bad"),
        ("+new", "good"),
    ]


def test_a_new_file_and_one_that_goes_say_so():
    """As `diff` has it; the same text on both sides is no difference."""
    assert text_diff("a", None, "x\n")[0].text == "--- /dev/null"
    assert text_diff("a", "x\n", None)[1].text == "+++ /dev/null"
    assert text_diff("a", "x\n", "x\n") == ()


def test_what_is_easily_overlooked_is_a_difference():
    """Blanks at a line's end, a carriage return, and a last line without an end."""
    assert [str(one) for one in diff_lines("a\nb\n", "a \nb\r")] == [
        "@@ -1,2 +1,2 @@",
        "-a",
        "-b",
        "+a\\u0020",
        "+b\\u000d",
        "\\ no newline at the end",
    ]


def test_a_text_made_to_keep_its_reader_waiting_is_shown_at_once():
    """Lines that are all alike, or all different, by the thousand; none of them is left out."""
    old = "".join(f"{number % 7}\n" for number in range(9000))
    new = "".join(f"{number * 3 % 11}\n" for number in range(9000))
    found = list(diff_lines(f"x\n{old}y\n", f"x\n{new}y\n"))
    assert [one.text for one in found if one.sign in " -"] == ["x", *old.splitlines(), "y"]
    assert [one.text for one in found if one.sign in " +"] == ["x", *new.splitlines(), "y"]


def test_nothing_in_it_moves_the_cursor():
    """A document may hold escape sequences, and a diff is read before it is trusted."""
    assert all("\x1b" not in one.text for one in text_diff("a", None, "x: \x1b[2J\n"))
