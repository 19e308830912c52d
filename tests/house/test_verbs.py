"""Verbs are said once: in `model.verbs`, which everything else asks."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fleetform.model.verbs import VERBS, Verb

HOUSE = Path(__file__).resolve().parents[2]
FILES = sorted((HOUSE / "reconciler" / "fleetform").rglob("*.py"))
TABLE = HOUSE / "reconciler" / "fleetform" / "model" / "verbs.py"


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
        if isinstance(node, ast.Constant) and node.value in set(Verb) and id(node) not in events
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
