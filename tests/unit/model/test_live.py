"""A row of what was applied parses its document once, and only if somebody reads a field of it."""

from __future__ import annotations

from dataclasses import replace

from fleetform.checker import check
from fleetform.model.plan import Permissions
from fleetform.plan.planner import plan
from unit.plan.trees import NOW_MS, fleet, ledger, queue, row, task, tree, volume


def test_parsed_is_the_document():
    """A row without a document has an empty one; with one, every reader gets the same value."""
    declared = task("train", fleets=["local"])
    read = row(declared)
    assert read.parsed == declared.document
    assert read.parsed is read.parsed
    assert replace(read, document="").parsed == {}


def test_a_copy_parses_its_own_document():
    """A row that is replaced with another document does not keep the fields of the first one."""
    first = row(task("train", fleets=["local"]))
    assert first.parsed["fleets"] == ["local"]
    assert replace(first, document='{"fleets": ["other"]}').parsed == {"fleets": ["other"]}


def test_parsing_is_not_seen():
    """Rows are equal, have one hash and print alike, whether their documents were read or not."""
    first, second = row(task("train")), row(task("train"))
    assert first.parsed
    assert (first, hash(first.key), repr(first)) == (second, hash(second.key), repr(second))


def test_a_plan_without_changes_parses_no_document():
    """Digests are compared: ten thousand rows that are as declared cost no parsing."""
    declared = [fleet("local"), volume("data"), queue("night", "local")]
    declared += [task(f"train-{number}", queue="night") for number in range(20)]
    unreadable = [replace(row(one), document="{not JSON") for one in declared]
    live, desired = ledger(*unreadable), tree(*declared)
    made = plan(desired, live, permissions=Permissions(), now_ms=NOW_MS)
    assert made.changes == ()
    assert check(made, desired, live, Permissions()) == ()
