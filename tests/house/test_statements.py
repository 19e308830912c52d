"""Row statements stand once: two copies of one drift apart."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

STORE = Path(__file__).parents[2] / "reconciler" / "fleetform" / "store"

_WRITES = ("UPDATE ", "INSERT ", "DELETE ")


def statements_in(node: ast.AST) -> Iterator[str]:
    """Yield each statement that writes rows and is written as one text; parts of one are left out."""
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and node.value.startswith(_WRITES):
            yield node.value
        return
    for child in ast.iter_child_nodes(node):
        yield from statements_in(child)


def test_a_statement_that_writes_rows_stands_once() -> None:
    """What two modules write alike is one function of `store/resources`, `store/runs` or another."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in sorted(STORE.rglob("*.py")):
        for statement in statements_in(ast.parse(module.read_text(encoding="utf-8"))):
            places[statement].append(str(module.relative_to(STORE)))
    assert len(places) > 50
    assert {one: where for one, where in places.items() if len(where) > 1} == {}
