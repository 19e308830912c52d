from __future__ import annotations

import pytest

from fleetform.spec.schema import MODELS, snippets

DOCUMENTS = [(kind, one) for kind in MODELS for one in snippets.document_snippets(kind)]


@pytest.mark.parametrize(("kind", "snippet"), DOCUMENTS, ids=lambda value: str(value)[:40])
def test_a_document_that_is_offered_is_valid(kind, snippet):
    """As it stands when nobody changes anything in it."""
    MODELS[kind].model_validate(snippets.filled_in(snippet["body"]))


def test_what_a_text_has_of_the_snippet_syntax_is_a_text():
    """Dollars and braces of an expression are kept from the editor, which would eat them."""
    (found,) = snippets.field_snippets("volume", "name", 'Example: `["${{ run.name }}"]`.')
    assert found["bodyText"] == '["\\${{ run.name \\}\\}"]'
    assert snippets.filled_in(found["bodyText"]) == '["${{ run.name }}"]'


def test_the_uid_of_an_environment_is_never_handed_out():
    """An editor that wrote one would give everybody the same."""
    assert snippets.document_snippets("environment") == []
