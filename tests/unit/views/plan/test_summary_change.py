"""What a plan changes, in the line that `history` has room for."""

from __future__ import annotations

import pytest

from fleetform.model.plan import Action, Change, FieldChange, Held, HeldBy, Plan, Reason
from fleetform.spec.desired import ResourceKey
from fleetform.views.plan.summary import change_summary


def change(address: str, action: Action, *fields: FieldChange, parent: str = "") -> Change:
    key = ResourceKey(*address.split("/", 1))
    return Change(key, action, (Reason.ABSENT,), key.kind, fields, parent=parent)


def plan(*changes: Change, held: tuple[Held, ...] = ()) -> Plan:
    return Plan("f", "lab", "l", 1, changes, held)


NODES = FieldChange("nodes", 2, 4)
COMMAND = FieldChange("commands[0]", "python train.py", "python train.py --lr 1")
TOKEN = FieldChange("env.TOKEN", "old", "new", sensitive=True)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (plan(change("run/train", Action.REPLACE, COMMAND)), "train: commands[0]"),
        (plan(change("fleet/lab", Action.UPDATE, NODES)), "lab: nodes 2 → 4"),
        (plan(change("run/train", Action.UPDATE, TOKEN)), "train: env.TOKEN"),
        (plan(change("run/train", Action.CREATE, COMMAND)), "+1 run (train)"),
        (plan(change("volume/data", Action.FORGET)), "release 1 volume (data)"),
        (
            plan(
                change("fleet/lab", Action.UPDATE, NODES),
                *(change(f"run/r{n}", Action.CREATE) for n in range(4)),
                change("volume/data", Action.DELETE),
            ),
            "+4 runs, ~1 fleet (lab: nodes 2 → 4), -1 volume (data)",
        ),
        (
            plan(*(change(f"run/s[{n}]", Action.CREATE, parent="s") for n in range(9))),
            "+9 runs (s)",
        ),
        (plan(*(change(f"run/{n}", Action.CREATE) for n in ("a", "b", "c"))), "+3 runs (a, b, c)"),
        (plan(), "no changes"),
        (
            plan(held=(Held(change("run/a", Action.REPLACE), HeldBy.RUNNING_WORK, "it runs"),)),
            "no changes; 1 blocked",
        ),
    ],
)
def test_a_line_says_what_a_plan_changes(made, said):
    """Counts by kind, names where there is one, and the field where it is the only one."""
    assert change_summary(made) == said


def test_many_fields_are_counted():
    """A line has room for three paths; the plan itself has all of them."""
    fields = [FieldChange(f"env.V{n}", "a", "b") for n in range(9)]
    made = plan(change("run/train", Action.UPDATE, *fields))
    assert change_summary(made) == "train: env.V0, env.V1, env.V2 and 6 more"


def test_a_text_is_never_quoted():
    """The API shows this line and withholds what `env` says, so texts stay out of it."""
    made = plan(change("run/train", Action.UPDATE, FieldChange("env.KEY", "hunter2", "hunter3")))
    assert change_summary(made) == "train: env.KEY"
