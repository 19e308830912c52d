"""Each document of the table of deviations: what it shows is so."""

from __future__ import annotations

import pytest
import yaml

from conformance import deviations
from conformance.deviations import LOADS, Shown
from unit.spec.trees import load

SHOWN = deviations.documents()


@pytest.mark.parametrize("shown", SHOWN, ids=lambda one: str(one.document)[:60])
def test_a_document_is_read_as_the_table_says(tmp_path, shown: Shown):
    """It loads without an error, or a finding says what the table says that it does."""
    loaded = load(tmp_path, yaml.safe_dump(shown.whole, allow_unicode=True))
    told = [f"{one.detail} {one.advice}" for one in loaded.findings]
    if shown.here == LOADS:
        assert loaded.errors == ()
    else:
        assert any(shown.here in text for text in told), told


def test_every_deviation_has_its_reason():
    """A reason is a sentence, and each side of a row is one of the few that there are."""
    for shown in SHOWN:
        assert shown.why.endswith("."), shown.why
        assert shown.dstack in {"accepted", "refused"}, shown.document
