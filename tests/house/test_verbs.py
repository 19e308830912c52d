"""Verbs and kinds are said once: in `model.verbs` and `spec.kinds`, which everything else asks."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fleetform.apply.kinds import PERFORMERS
from fleetform.model.verbs import ACTS_ON_HOSTS, KINDS, VERBS, Verb
from fleetform.plan.kinds import KINDS as PROPOSERS
from fleetform.spec.kinds import RESOURCES

_VERBS, _KINDS = frozenset(Verb), frozenset(KINDS)
HOUSE = Path(__file__).resolve().parents[2]
FILES = sorted((HOUSE / "reconciler" / "fleetform").rglob("*.py"))
TABLE = HOUSE / "reconciler" / "fleetform" / "model" / "verbs.py"
# Commands and the views behind them name the kinds that they are about.
ROOMS = {
    "apply",
    "checker",
    "controllers",
    "lifecycle",
    "model",
    "plan",
    "schedule",
    "store",
    "views",
}


def test_each_verb_has_a_row():
    """A verb without facts would be passed over by every set."""
    assert set(VERBS) == set(Verb)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(HOUSE)))
def test_no_other_module_spells_a_verb(file):
    """A literal would not be found by who changes the table; events that are logged have names of their own."""
    if file == TABLE:
        return
    tree = ast.parse(file.read_text(encoding="utf-8"))
    events = {
        id(part)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "log" and call.args
        for part in ast.walk(call.args[0])
    }
    spelled = [
        f"line {node.lineno}: {node.value}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in _VERBS and id(node) not in events
    ]
    assert spelled == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(HOUSE)))
def test_no_module_has_a_set_of_verbs_of_its_own(file):
    """Eight private sets of one name had seven meanings; a set that two need is derived in the table."""
    if file == TABLE:
        return
    tree = ast.parse(file.read_text(encoding="utf-8"))
    own = [
        ast.unparse(node.targets[0])
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "frozenset"
        and "Verb." in ast.unparse(node.value)
    ]
    assert own == []


def test_each_kind_with_an_actual_state_is_complete():
    """It has a row of the language, a module that proposes changes, and a performer for each verb on hosts."""
    assert set(KINDS) <= set(RESOURCES)
    assert set(PROPOSERS) == set(KINDS)
    assert set(PERFORMERS) == ACTS_ON_HOSTS


@pytest.mark.parametrize(
    "file",
    [one for one in FILES if one.relative_to(HOUSE).parts[2] in ROOMS and one != TABLE],
    ids=lambda file: str(file.relative_to(HOUSE)),
)
def test_no_module_lists_kinds(file):
    """A new kind would be missing in a list; what several kinds share is a fact in a table."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    listed = [
        f"line {node.lineno}: {ast.unparse(node)[:80]}"
        for node in ast.walk(tree)
        if len(_spelled(node) & _KINDS) > 1
    ]
    assert listed == []


def _spelled(node: ast.AST) -> set[object]:
    """The constants that stand side by side in a set, a list, a tuple, a call or the keys of a dict."""
    parts: list[ast.expr | None] = []
    match node:
        case ast.Set(elts=found) | ast.List(elts=found) | ast.Tuple(elts=found):
            parts = list(found)
        case ast.Dict(keys=keys):
            parts = list(keys)
        case ast.Call(args=found):
            parts = list(found)
    return {part.value for part in parts if isinstance(part, ast.Constant)}
