"""Every YAML document in the texts that this project grew from loads as it is written."""

from __future__ import annotations

import pytest

from conformance import seeds
from fleetform.spec.findings import Level
from fleetform.spec.tree import load_tree
from unit.spec.trees import ENVIRONMENT, write

DOCUMENTS = seeds.kept()


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_a_document_loads_as_it_stands(tmp_path, number):
    """Alone in a tree it has no error, and is planned or held; what is held says why."""
    write(tmp_path, "environment.yaml", ENVIRONMENT)
    write(tmp_path, "seed.yaml", DOCUMENTS[number])
    loaded = load_tree(tmp_path)
    assert loaded.errors == ()
    assert loaded.documents_count == 1
    assert loaded.desired is not None
    assert len(loaded.desired.resources) + len(loaded.desired.beyond) == 1
    for beyond in loaded.desired.beyond.values():
        assert beyond.obstacles
    # A finding says so too; two fleets of these are carried out whole and have none.
    assert any(one.level is not Level.ERROR for one in loaded.findings) or not loaded.desired.beyond


def test_the_copies_are_what_the_texts_have(summarise):
    """Each fenced block of YAML in the texts, also an indented one, lies here unchanged."""
    if not seeds.TEXTS.is_dir():
        pytest.skip(f"the texts are not there: {seeds.TEXTS}")
    extracted = list(seeds.extract())
    assert extracted == DOCUMENTS
    assert len(extracted) == 26
    summarise(f"YAML documents in the seeds: {len(extracted)}, none with an error")
