"""
Digests of a thousand documents and of two hundred plans, as they were once recorded.

A digest that changes by itself runs jobs again that are over, and refuses plans that were reviewed. Record them anew
only when a digest changes on purpose, and say why: `FLEETFORM_TEST_RECORD=1 pytest tests/conformance/test_recorded_digests.py`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from fleetform.plan.planner import plan
from fleetform.plan.serialize import dump, load
from fleetform.spec.canonical import canonical_json
from fleetform.spec.tree import load_tree
from unit.plan.histories import history
from unit.plan.trees import NOW_MS

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
PLANS = 200


def test_documents_have_the_recorded_digests(tmp_path: Path) -> None:
    shutil.copytree(RECORDED / "configuration", tmp_path / "lab")
    loaded = load_tree(tmp_path / "lab")
    assert loaded.errors == ()
    assert loaded.desired is not None
    desired = loaded.desired
    declared = [*desired.resources.values(), *(one.declared for one in desired.beyond.values())]
    lines = (
        f"{one.key.kind} {canonical_json(one.key.name)} {_short(canonical_json(one.document))}"
        f" {one.digest[:16]} {one.execution_digest[:16]} {one.own_digest[:16]}"
        for one in sorted(declared, key=lambda one: one.key)
    )
    _assert_recorded("documents.txt", lines)


def test_plans_have_the_recorded_digests() -> None:
    _assert_recorded("plans.txt", map(_plan_line, range(PLANS)))


def _plan_line(number: int) -> str:
    desired, live, permissions, scope = history(number)
    made = plan(desired, live, permissions=permissions, scope=scope, now_ms=NOW_MS)
    written = dump(made)
    assert load(written) == made
    return f"{number} {len(made.changes)} {made.digest[:16]} {_short(written.decode('utf-8', 'surrogatepass'))}"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _assert_recorded(name: str, lines: Iterator[str]) -> None:
    """Hold the lines against the file, or write it where a new record is asked for."""
    found = [line.encode("utf-8", "backslashreplace").decode("utf-8") for line in lines]
    file = RECORDED / name
    if os.environ.get("FLEETFORM_TEST_RECORD"):
        file.write_text("\n".join(found) + "\n", encoding="utf-8")
    recorded = file.read_text(encoding="utf-8").splitlines()
    assert len(found) == len(recorded)
    changed = [f"{was} -> {now}" for was, now in zip(recorded, found, strict=True) if was != now]
    assert changed == []
