from __future__ import annotations

from fleetform.spec.explain import Choice, Explanation, Part
from fleetform.views.explain import explanation_lines, kind_lines, part_lines

FOUND = Explanation(
    path="task.retry",
    type="mapping",
    description="When a failed attempt is followed by another, and how often that may be.",
    spellings=("`true` or `false`", "a mapping of `on`"),
    choices=(Choice("error", "Its commands failed."),),
    default="true",
    examples=("{on: [error]}",),
    unit="",
    field_class="control",
    on_change="update",
    change="in place",
    carried_out_by="lifecycle",
    parts=(Part("on", "text or list", "The events.", required=True, has_parts=False),),
)


def texts(lines):
    return [line.text.rstrip() for line in lines]


def test_an_explanation_reads_from_what_it_is_to_what_is_below():
    """Sections that have nothing to say are left out."""
    assert texts(explanation_lines(FOUND, width=50)) == [
        "task.retry  mapping",
        "  When a failed attempt is followed by another,",
        "  and how often that may be.",
        "",
        "Default  true",
        "Change   in place",
        "",
        "Written as",
        "  `true` or `false`",
        "  a mapping of `on`",
        "",
        "Values",
        "  error  Its commands failed.",
        "",
        "Examples",
        "  {on: [error]}",
        "",
        "Fields",
        "  on  text or list. Required. The events.",
    ]


def test_a_tree_is_indented_from_where_it_begins():
    """The depth counts from what was asked for, and a long line is cut."""
    part = Part("on", "text", "The events that are followed by another attempt.", False, False)
    lines = texts(part_lines([("task.retry.on", part), ("task.retry.on.each", part)], width=40))
    assert lines[0] == "on    text. The events that are followe…"
    assert lines[1].startswith("  on  ")
    assert max(map(len, lines)) == 40


def test_nothing_below_is_no_line():
    """A field without parts has an empty tree."""
    assert texts(part_lines([], width=80)) == []


def test_kinds_are_listed_with_their_sentence():
    """One line a type."""
    kinds = [Part("task", "document", "Commands that run.", False, True)]
    assert texts(kind_lines(kinds, width=0)) == ["task  Commands that run."]
