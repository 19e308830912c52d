"""What a document says itself decides whether a finished run is run again: asked of the planner."""

from __future__ import annotations

import pytest

from fleetform.model.plan import Action, Reason
from fleetform.spec.desired import Desired
from unit.plan.trees import UID, ledger, planned, row
from unit.spec.overlay.environments import FLEET, extending, good

ENVIRONMENT = extending().replace("0b2f6a0e-54c5", UID)
BASE = "type: environment\nname: base\nabstract: true\nvalues: {epochs: 1}\n"
OWN = (
    "type: task\nname: own\ncommands: [run]\nenv: [LR=1]\nfiles: [train.py]\n"
    "resources: {cpu: 2, memory: 8GB}\n"
)
FILES = {
    "base__environment": BASE,
    "base__fleet": FLEET,
    "base__train": "type: task\nname: train\ncommands: [run]\nenv: [LR=1]\nfiles: [train.py]\n",
    "base__train.py": "1",
    "staging__environment": ENVIRONMENT,
    "staging__own": OWN,
    "staging__train.py": "1",
    "staging__valued": "type: task\nname: valued\ncommands: ['run ${{ values.epochs }}']\n",
    "staging__sweep": "type: task\nname: sweep\ncommands: [run]\nmatrix: {lr: [1, 2]}\n",
    "staging__array": "type: task\nname: array\ncommands: [run]\narray: 1-2%1\nprofile: some\n",
    "staging__lent": "type: task\nname: lent\ncommands: [run]\nenv: [B=1]\nfiles: [train.py]\n"
    "profile: some\n",
    "staging__profiles": "type: profile\nname: some\nenv: [A=1]\n",
}
RUNS = ("own", "train", "valued", "sweep[lr=1]", "sweep[lr=2]", "array[1]", "array[2]", "lent")


def replanned(tmp_path, **changed: str) -> dict[str, tuple[Action, Reason]]:
    """What a plan does to runs that have finished, once files have changed."""
    before = good(tmp_path, **FILES)
    after = good(tmp_path, **changed)
    return _changes(before, after)


def _changes(before: Desired, after: Desired) -> dict[str, tuple[Action, Reason]]:
    live = ledger(*(row(one) for one in before.resources.values()), rules=before.environment.rules)
    plan = planned(after, live)
    return {
        change.key.name: (change.action, change.reasons[0])
        for change in plan.changes
        if change.key.kind == "run"
    }


STALE = (Action.UPDATE, Reason.INHERITED_CHANGED)
AGAIN = (Action.REPLACE, Reason.EXECUTION_CHANGED)


def patch(entry: str) -> str:
    return f"{ENVIRONMENT}patches:\n  - {entry}\n"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"staging__own": OWN + "description: x\n"}, {"own": (Action.UPDATE, Reason.COSMETIC_CHANGED)}),
        ({"staging__own": OWN.replace("LR=1", "LR=2")}, {"own": AGAIN}),
        ({"base__train": FILES["base__train"].replace("LR=1", "LR=2")}, {"train": STALE}),
        ({"base__train.py": "2"}, {"train": STALE}),
        ({"staging__train.py": "2"}, {"own": AGAIN, "lent": AGAIN}),
        ({"staging__environment": patch("{target: run/own, merge: {env: {LR: '2'}}}")}, {"own": STALE}),
        ({"staging__environment": patch("{target: run/own, merge: {resources: {cpu: 4}}}")}, {"own": STALE}),
        ({"staging__environment": patch("{target: run/train, merge: {nodes: 2}}")}, {"train": STALE}),
        ({"staging__environment": f"{ENVIRONMENT}values: {{epochs: 2}}\n"}, {"valued": STALE}),
        ({"base__environment": BASE.replace("1}", "2}")}, {"valued": STALE}),
        (
            {"staging__valued": FILES["staging__valued"].replace("run", "go")},
            {"valued": AGAIN},
        ),
        (
            {"staging__profiles": FILES["staging__profiles"].replace("A=1", "A=2")},
            {"lent": STALE, "array[1]": STALE, "array[2]": STALE},
        ),
        ({"staging__lent": FILES["staging__lent"].replace("B=1", "B=2")}, {"lent": AGAIN}),
        (
            {"staging__sweep": FILES["staging__sweep"].replace("2]", "2, 3]")},
            {"sweep[lr=3]": (Action.CREATE, Reason.ABSENT)},
        ),
        (
            {"staging__environment": patch("{target: run/sweep, merge: {env: [X=1]}}")},
            {"sweep[lr=1]": STALE, "sweep[lr=2]": STALE},
        ),
        (
            {"staging__array": FILES["staging__array"].replace("[run]", "[go]")},
            {"array[1]": AGAIN, "array[2]": AGAIN},
        ),
        # Another spelling is no change, and neither is what says again what was inherited.
        ({"staging__lent": FILES["staging__lent"].replace("[B=1]", "{B: 1}")}, {}),
        ({"staging__environment": patch("{target: run/own, merge: {env: {LR: '1'}}}")}, {}),
    ],
)  # fmt: skip
def test_own_changes_run_again_and_inherited_ones_mark(tmp_path, changed, expected):
    """A line of a base may reach a thousand runs, a line of a document is meant for it."""
    assert replanned(tmp_path, **changed) == expected


def test_beginning_to_inherit_is_no_change_of_its_own(tmp_path):
    """A document that is patched for the first time says what it said."""
    before = good(tmp_path, **FILES)
    after = good(
        tmp_path,
        staging__environment=patch("{target: 'run/*', merge: {description: x, priority: 1}}"),
    )
    own = {key: one.own_digest for key, one in before.resources.items() if key.kind == "run"}
    assert {key: after.resources[key].own_digest for key in own} == own


def test_all_runs_of_these_tests_are_planned(tmp_path):
    """None of them is held for a reason that the tests do not mean."""
    desired = good(tmp_path, **FILES)
    assert {key.name for key in desired.resources if key.kind == "run"} == set(RUNS)


@pytest.mark.parametrize(
    "half",
    ["checkpoint: {lead: 5m}\n", "env: {B: '${{ env.A }}'}\n"],
)
def test_what_is_no_document_by_itself_has_a_digest_too(tmp_path, half):
    """The profile has the other half; the files count all the same."""
    files = {
        **FILES,
        "staging__lent": "type: task\nname: lent\ncommands: [run]\nfiles: [train.py]\n"
        f"profile: some\n{half}",
        "staging__profiles": "type: profile\nname: some\nenv: [A=1]\n"
        "checkpoint: {signal: USR1, lead: 1m}\n",
    }
    if "env.A" in half:
        files["staging__lent"] = (
            files["staging__lent"].replace(half, "").replace("[run]", "['run ${{ env.A }}']")
        )
    before = good(tmp_path, **files)
    profiles = files["staging__profiles"].replace("A=1", "A=2")
    assert _changes(before, good(tmp_path, staging__profiles=profiles))["lent"] == STALE
    after = good(tmp_path, **{**files, "staging__train.py": "2"})
    assert _changes(before, after)["lent"] == AGAIN
