from __future__ import annotations

import ast
from pathlib import Path

HOUSE = Path(__file__).parents[2]
# What runs on a host knows nothing but the standard library; the house's own is made of it.
OTHERS = ("agents", "spec/fleetform/spec/dataclass.py")


def takes_theirs(path: Path) -> bool:
    """Whether a module makes data classes with the standard library."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [one.name for one in node.names] if isinstance(node, ast.ImportFrom) else []
        if names and node.module == "dataclasses" and "dataclass" in names:
            return True
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "dataclasses.dataclass":
            return True
    return False


def test_data_classes_are_the_houses():
    """`fleetform.spec.dataclass` makes the same in a tenth of the time; see ADR 21."""
    modules = [
        path.relative_to(HOUSE)
        for portion in ("spec", "providers", "reconciler")
        for path in sorted((HOUSE / portion).rglob("*.py"))
        if not str(path.relative_to(HOUSE)).startswith(OTHERS)
    ]
    assert [str(path) for path in modules if takes_theirs(HOUSE / path)] == []
