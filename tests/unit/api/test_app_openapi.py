from __future__ import annotations

import json

from fleetform.api.app import description, openapi_text


def test_every_route_only_reads():
    """There is no operation but GET, so no client can be generated that writes."""
    assert {verb for path in description()["paths"].values() for verb in path} == {"get"}


def test_every_answer_has_a_model():
    """A program can be written against the description: no answer is just `anything`."""
    for path, operations in description()["paths"].items():
        schema = operations["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert schema, path
        assert "4XX" in operations["get"]["responses"], path


def test_the_text_is_the_same_each_time():
    """A generated file changes only when the API does."""
    assert openapi_text() == openapi_text()
    assert json.loads(openapi_text()) == description()
