"""What is not supported yet is said wherever a field is described, and not only in plans."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fleetform.spec import fields
from fleetform.spec.explain import Explanation, below, explain
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.unsupported import KINDS as UNSUPPORTED
from fleetform.spec.kinds.unsupported import VALUES
from unit.spec.trees import load

SUPPORTED = ("task", "fleet", "profile", "queue", "volume")
BASES = {
    "task": {"commands": ["a"]},
    "fleet": {"local": {"cpu": 8, "memory": "8GB"}},
    "volume": {"fleet": "local", "path": "/data"},
}
REFERENCE = Path(__file__).parents[4] / "docs" / "reference"


def known(path: str) -> Explanation:
    found = explain(path)
    assert isinstance(found, Explanation), found
    return found


def reference_row(kind: str, field: str) -> str:
    """The row of a field in its page of the reference; empty where it has none."""
    text = (REFERENCE / f"{kind}.md").read_text(encoding="utf-8")
    return next((row for row in text.splitlines() if row.startswith(f"| `{field}` |")), "")


@pytest.mark.parametrize("kind", SUPPORTED)
def test_each_unsupported_field_says_so(kind):
    """`explain` and the reference say it of every field that has no implementation."""
    assert KINDS[kind].name not in UNSUPPORTED
    for field in fields.unsupported(kind):
        found = explain(f"{kind}.{field}")
        if not isinstance(found, Explanation):
            continue  # A field of another type of run.
        assert "Not supported yet" in found.description, field
        row = reference_row(kind, field)
        assert "not yet" in row or not row, field


@pytest.mark.parametrize("kind", SUPPORTED)
def test_lists_of_fields_mark_the_unsupported_ones(kind):
    """Who reads the list of the fields of a document sees it before the field's own page."""
    for path, part in below(kind):
        is_unsupported = path.partition(".")[2] in fields.unsupported(kind)
        assert part.summary.startswith("Not supported yet.") == is_unsupported, path


@pytest.mark.parametrize("kind", SUPPORTED)
def test_each_unsupported_value_is_named(kind, tmp_path):
    """Each example and choice that `validate` calls unsupported is named by `explain` and the reference."""
    written = []
    for part in known(kind).parts:
        found = known(f"{kind}.{part.name}")
        values = [*found.examples, *(choice.value for choice in found.choices)]
        for value in map(yaml.safe_load, values):
            document = {"type": kind, "name": f"n{len(written)}", **BASES.get(kind, {})}
            written.append({**document, part.name: value, "type": kind})
    loaded = load(tmp_path, yaml.safe_dump_all(written, sort_keys=False))
    addresses = {one.address for one in loaded.findings if one.code == "not-supported"}
    told = {
        ".".join(part for part in one.split(".")[2:] if not part.isdigit()) for one in addresses
    }
    for field in sorted(told - {"", "type"}):
        path = f"{kind}.{field}" if isinstance(explain(f"{kind}.{field}"), Explanation) else ""
        if field.startswith("env."):
            path = f"{kind}.env"
        assert path, field
        above = path.rpartition(".")[0]
        said = known(path).description + (known(above).description if "." in above else "")
        assert "ot supported yet" in said, field
    for field in VALUES.get(KINDS[kind].name, {}):
        assert "Not supported yet" in known(f"{kind}.{field}").description
        assert "not yet" in reference_row(kind, field) or not reference_row(kind, field)


def test_an_example_that_is_blocked_is_named():
    """`on_upstream_change: rerun` is offered, and plans block it."""
    assert "Not supported yet: `rerun`." in known("task.on_upstream_change").description
    assert "`rerun`" in reference_row("task", "on_upstream_change")
