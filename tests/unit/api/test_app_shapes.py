"""What all answers have in common: one shape of lists, one form of times, and where to start."""

from __future__ import annotations

import re

import pytest

import applied
from fleetform.api.app import description
from unit.api.test_app import get

LISTS = ("environments", "resources", "runs", "events", "plans", "history", "overrides")


@pytest.mark.parametrize("noun", LISTS)
def test_each_list_has_the_same_envelope(lab, noun):
    """A client pages through any list with the same lines."""
    assert set(get(lab, f"/{noun}").json()) == {"items", "next"}
    names = [one["name"] for one in description()["paths"][f"/api/v1/{noun}"]["get"]["parameters"]]
    assert {"cursor", "limit"} <= set(names)


@pytest.mark.parametrize("noun", ["plans", "history"])
def test_pages_of_what_was_applied_are_the_list(lab, noun):
    """Newest first, nothing twice and nothing skipped."""
    applied.write_tree(lab, applied.FLEET, "type: task\nname: other\ncommands: [echo]\n")
    applied.enter(lab)
    whole = get(lab, f"/{noun}").json()["items"]
    assert len(whole) == 2
    first = get(lab, f"/{noun}", limit=1).json()
    second = get(lab, f"/{noun}", limit=1, cursor=first["next"]).json()
    assert (first["items"] + second["items"], second["next"]) == (whole, None)
    assert get(lab, f"/{noun}", cursor="rubbish!").status_code == 400


def times(value):
    """Every moment in an answer, as (name, milliseconds, text beside it)."""
    if isinstance(value, list):
        for one in value:
            yield from times(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if re.search(r"(^|_)(at|since|until)_ms$", name):
                yield name, one, value[name.removesuffix("_ms")]
            yield from times(one)


@pytest.mark.parametrize("path", ["runs", "runs/train", "events", "plans", "history"])
def test_a_time_is_also_text(lab, path):
    """Beside each `…_at_ms` stands the same moment in RFC 3339, or null where there is none."""
    found = list(times(get(lab, f"/{path}").json()))
    assert found
    for name, milliseconds, text in found:
        if milliseconds is None:
            assert text is None, name
        else:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text), name


def test_the_description_has_both_forms_of_a_time():
    """A client that is generated from the description knows the text as well."""
    schemas = description()["components"]["schemas"]
    found = 0
    for schema in schemas.values():
        properties = schema.get("properties", {})
        for name in properties:
            if re.search(r"(^|_)(at|since|until)_ms$", name):
                found += 1
                assert name.removesuffix("_ms") in properties
    assert found


def test_the_root_leads_to_what_can_be_asked(lab):
    """The page needs no other site, and `/api/v1` lists the routes of the description."""
    page = get(lab, "/", prefix="")
    assert page.headers["content-type"].startswith("text/html")
    assert 'href="/api/v1/openapi.json"' in page.text
    assert not re.search(r"https?://|<script|<link", page.text)
    listed = get(lab, "").json()["items"]
    paths = {path for path in description()["paths"] if path.startswith("/api/v1/")}
    assert {one["path"] for one in listed} == paths
    assert all(one["summary"] for one in listed)
    assert all(f"<code>{path}</code>" in page.text for path in paths if "{" in path)


def test_a_supervisor_can_ask_how_it_is(lab, root):
    """`/healthz` asks nothing but the process, `/readyz` whether the ledger can be read."""
    assert get(lab, "/healthz", prefix="").json() == {"status": "ok"}
    assert get(lab, "/readyz", prefix="").json() == {"status": "ok", "ledger": "ready"}


def test_an_environment_without_a_ledger_is_ready(root):
    """Before the first apply there is nothing to read, and that can be answered."""
    assert get(root, "/readyz", prefix="").json() == {"status": "ok", "ledger": "empty"}
