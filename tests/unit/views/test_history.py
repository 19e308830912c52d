"""History, blame and differences as rows."""

from __future__ import annotations

from fleetform.model.history import HistoryEntry, OperationRecord
from fleetform.model.plan import Action, Change, FieldChange, Reason
from fleetform.model.redaction import Seal
from fleetform.spec.desired import ResourceKey
from fleetform.views.difference import RunSide, difference_lines, run_facts
from fleetform.views.history import (
    Past,
    field_origins,
    history_rows,
    history_table,
    operation_rows,
    touch_rows,
)
from fleetform.views.table import plain_lines
from unit.views.rows import NOW, history

TRAIN = ResourceKey("run", "train")


def entry(at_ms: int, who: str = "ada@node1", **more: object) -> HistoryEntry:
    values = {"digest": f"{at_ms:064x}", "state": "done", "commit": f"{at_ms:040x}", **more}
    return HistoryEntry("apply", who=who, at_ms=at_ms, **values)


def past(at_ms: int, *paths: str, who: str = "ada@node1", action: Action = Action.UPDATE) -> Past:
    fields = tuple(FieldChange(path, 1, 2) for path in paths)
    return Past(entry(at_ms, who), Change(TRAIN, action, (Reason.CONTROL_CHANGED,), "task", fields))


def test_history_shows_outcome_and_time() -> None:
    """An apply has an outcome and took time; a plan that nobody applied has neither."""
    done = entry(NOW, finished_at_ms=NOW + 1500, summary="2 steps done\nmore", changes="+2 runs")
    failed = entry(NOW, state="failed", summary="1 step failed", changes="+1 run (train)")
    made = HistoryEntry("plan", "d" * 64, "made", "eve@node2", "", NOW)
    rows = history_rows([done, made, failed])
    assert [(row.took_ms, row.summary) for row in rows] == [
        (1500, "2 steps done"),
        (None, ""),
        (None, "1 step failed"),
    ]
    first, second, third = plain_lines(history_table(rows))[1:]
    assert " done " in first
    assert first.endswith(" 1.5s  +2 runs")
    assert " planned " in second
    assert third.endswith("  +1 run (train): 1 step failed")


def test_steps_come_in_the_order_of_their_ends() -> None:
    """What was not reached comes last, whatever it is called."""
    steps = [
        OperationRecord("a", "run.submit", TRAIN, "dropped"),
        OperationRecord("b", "run.submit", TRAIN, "done", finished_at_ms=2),
        OperationRecord("c", "run.submit", TRAIN, "failed", "no", finished_at_ms=1),
    ]
    assert [row.step for row in operation_rows(steps)] == ["c", "b", "a"]


def test_each_field_is_the_latest_applys_that_set_it() -> None:
    """A path stands for what is below it and what is above; a similar name does not."""
    document = {"type": "task", "env": {"A": "1", "B": "2"}, "environment": "x", "priority": 3}
    found = field_origins(
        "run",
        document,
        [
            past(3_000, "env.B", who="eve@node2"),
            past(2_000, "priority"),
            past(1_000, "env", "priority", action=Action.CREATE),
        ],
        Seal("e" * 32),
    )
    assert {row.field: (row.at_ms, row.who) for row in found} == {
        "env.A": (1_000, "ada@node1"),
        "env.B": (3_000, "eve@node2"),
        "environment": (None, ""),
        "priority": (2_000, "ada@node1"),
    }


def test_a_value_that_is_nobodys_to_see_is_shown_as_its_version() -> None:
    """Whoever shares the ledger need not be one who reads the tree."""
    document = {"env": {"HF_TOKEN": "hunter2", "LR": "1"}, "commands": ["a://b:hunter2@c"]}
    seal = Seal("e" * 32)
    found = {row.field: row.value for row in field_origins("run", document, [], seal)}
    assert "hunter2" not in str(found)
    assert (found["env.HF_TOKEN"], found["env.LR"]) == (seal.version("hunter2"), '"1"')


def test_a_creation_does_not_list_its_fields() -> None:
    """All fields are new then, which says nothing."""
    rows = touch_rows([past(2, "priority"), past(1, "env", action=Action.CREATE)])
    assert [row.fields for row in rows] == [("priority",), ()]


def test_a_move_names_where_it_came_from() -> None:
    """Under another name it is the same thing."""
    change = Change(TRAIN, Action.UPDATE, (Reason.MOVED,), "task", moved_from="old")
    assert touch_rows([Past(entry(1), change)])[0].action == "moved from old"


def test_differences_are_counted() -> None:
    """The last line says how many there are on which side."""
    change = Change(
        TRAIN, Action.UPDATE, (), "task", (FieldChange("priority", 1, None, True, False),)
    )
    lines = [line.text for line in difference_lines([change])]
    assert lines == ["  ~ task train", "      priority: 1 → (not set)", "", "1 different."]
    assert [line.text for line in difference_lines([])] == ["No differences."]


def test_runs_are_compared_by_what_became_of_them() -> None:
    """Facts that differ are told apart from those that are the same."""
    left, right = (
        RunSide(history(name, attempt=tries), {}) for name, tries in (("a", 1), ("b", 2))
    )
    facts = {fact.what: fact.differs for fact in run_facts(left, right, Seal("e" * 32))}
    assert facts["attempts"]
    assert not facts["commit"]
