"""Whole documents in the manner of dstack: each feature of its newer releases loads."""

from __future__ import annotations

import pytest

from conformance.deviations import FOLDER
from fleetform.spec.tree import load_tree
from unit.spec.trees import ENVIRONMENT, write

DOCUMENTS = sorted((FOLDER / "data" / "documents").glob("*.yaml"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_a_document_of_dstack_loads(tmp_path, path):
    """Alone in an environment it has no error and declares one resource, with or without blocks."""
    write(tmp_path, "environment.yaml", ENVIRONMENT)
    write(tmp_path, path.name, path.read_text(encoding="utf-8"))
    loaded = load_tree(tmp_path)
    assert loaded.errors == ()
    assert loaded.desired is not None
    assert len(loaded.desired.resources) + len(loaded.desired.beyond) == 1
