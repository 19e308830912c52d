from __future__ import annotations

from fleetform.providers.contract.observed import InstanceSeen
from fleetform.views.fleets import agent_rows, agents_table
from fleetform.views.table import plain_lines

SEEN = [
    InstanceSeen(f"uid-{name}", name, fleet, "env", "ledger", 1, alive=name == "b")
    for fleet, name in (("z", "a"), ("local", "b"), ("local", "a"))
]


def test_agents_are_in_order_of_fleet_and_name():
    """Whatever order a folder is listed in, rows are the same."""
    assert [(row.fleet, row.name) for row in agent_rows(SEEN)] == [
        ("local", "a"), ("local", "b"), ("z", "a"),
    ]  # fmt: skip


def test_whether_one_answers_is_a_word():
    """A pipe can be searched for it, with no colour to tell."""
    lines = plain_lines(agents_table(agent_rows(SEEN)))
    assert [line.split()[2] for line in lines] == ["ANSWERS", "no", "yes", "no"]
