"""Findings as a terminal shows them."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fleetform.spec.findings import (
    Finding,
    Level,
    Place,
    render_finding,
    render_findings,
    summarize,
)

FINDING = Finding(
    Level.ERROR,
    "unknown-field",
    "A field is not known",
    Place("runs/train.yaml", 7, 5, 8),
    "`resorces` is not a field of a task, so nothing would ask for GPUs.",
    "Did you mean `resources`?",
    "task.train.resorces",
    "    resorces:",
)


def test_a_finding_has_this_form():
    """Place, level and code, then the line with carets, then what, why and what to do."""
    assert render_finding(FINDING) == (
        "runs/train.yaml:7:5: error[unknown-field]: A field is not known\n"
        "    7 |     resorces:\n"
        "      |     ^^^^^^^^\n"
        "  `resorces` is not a field of a task, so nothing would ask for GPUs.\n"
        "  help: Did you mean `resources`?"
    )


def test_prose_is_wrapped():
    """Prose goes on below itself, advice below its first word."""
    shown = render_finding(replace(FINDING, text="", advice="one two three " * 5), width=44)
    assert shown.splitlines()[1:] == [
        "  `resorces` is not a field of a task, so",
        "  nothing would ask for GPUs.",
        "  help: one two three one two three one",
        "        two three one two three one two",
        "        three",
    ]


def test_what_is_not_known_is_left_out():
    """A finding about a whole file has no line, and one without file has no place."""
    whole = Finding(Level.WARNING, "empty-file", "The file is empty", Place("a.yaml"))
    assert render_finding(whole) == "a.yaml: warning[empty-file]: The file is empty"
    assert render_finding(replace(whole, place=Place(""))) == (
        "warning[empty-file]: The file is empty"
    )


def test_what_is_said_of_several_places_is_said_once():
    """Warnings with the same words have their places in a line; errors have each their own."""
    warnings = [
        replace(FINDING, level=Level.WARNING, place=Place("a.yaml", line, 1))
        for line in range(1, 14)
    ]
    other = replace(warnings[0], detail="Something else.", place=Place("a.yaml", 3, 1))
    shown = render_findings([*warnings[:3], other])
    assert shown.count("warning[unknown-field]") == 2
    assert "  help: Did you mean `resources`?\n  also: a.yaml:2:1, a.yaml:3:1\n\n" in shown
    assert " a.yaml:11:1 and 2 more" in " ".join(render_findings(warnings).split())
    errors = [replace(one, level=Level.ERROR) for one in warnings]
    assert render_findings(errors).count("error[unknown-field]") == 13


def test_findings_are_in_order_and_once():
    """Findings are sorted by place, and one that two passes found is shown once."""
    earlier = replace(FINDING, place=Place("runs/train.yaml", 2, 1))
    shown = render_findings([FINDING, earlier, FINDING])
    assert re.findall(r"yaml:(\d+):", shown) == ["2", "7"]
    assert "\n\n" in shown


def test_colours_add_nothing_else():
    """With the escape codes taken out, the coloured text is the plain one."""
    coloured = render_finding(FINDING, colour=True)
    assert coloured != render_finding(FINDING)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render_finding(FINDING)


def test_carets_stand_below_wide_and_combining_letters():
    """Columns of the terminal are counted, not characters."""
    for text, column, spaces in (("日本: x", 5, 6), ("e\u0301: x", 5, 3), ("\ta: x", 5, 7)):
        finding = replace(FINDING, text=text, place=Place("x", 1, column, 1))
        assert render_finding(finding).splitlines()[2] == f"      | {' ' * spaces}^"


def test_a_long_line_is_cut_around_the_caret():
    """The marked word stays visible in a line that is too long for the terminal."""
    text = "x" * 500 + "HERE" + "y" * 500
    finding = replace(FINDING, text=text, place=Place("x", 1, 501, 4))
    _, line, carets, *_ = render_finding(finding, width=80).splitlines()
    assert len(line) <= 80
    at = carets.index("^")
    assert line[at : at + 4] == "HERE"
    assert carets.count("^") == 4


def test_levels_are_counted():
    """The last line of a command says how many there were."""
    warning = replace(FINDING, level=Level.WARNING)
    assert summarize([FINDING, warning, FINDING]) == "2 errors, 1 warning"
    assert summarize([]) == ""


findings = st.builds(
    Finding,
    st.sampled_from(list(Level)),
    st.just("code"),
    st.text(max_size=30),
    st.builds(Place, st.text(max_size=20), *[st.integers(0, 2000)] * 3),
    st.text(max_size=200),
    st.text(max_size=200),
    st.just(""),
    st.text(max_size=300) | st.text("x\t日", max_size=2000),
)


@given(findings, st.integers(0, 200))
def test_no_finding_can_write_to_the_terminal(finding: Finding, width: int):
    """Whatever a document contains, lines are printable and quotes fit the terminal."""
    lines = render_finding(finding, width=width).split("\n")
    assert all(line.isprintable() for line in lines)
    quoted = [line for line in lines[1:3] if re.match(r" *\d* \| ", line)]
    assert all(len(line) <= max(width, 40) for line in quoted)
