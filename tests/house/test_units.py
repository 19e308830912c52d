"""A plan prints each value in the unit in which documents have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fleetform.spec import fields, schema
from fleetform.views.field_text import value_text
from house.test_kinds import KINDS, documents

CASES = [(kind, number) for kind in KINDS for number in range(len(documents(kind)))]


@pytest.mark.parametrize(("kind", "number"), CASES)
def test_a_plan_prints_what_a_document_may_say(kind: str, number: int) -> None:
    """Put back into the document, each printed amount means what the document meant."""
    document = documents(kind)[number]
    model = schema.MODELS[kind]
    canonical = model.model_validate(document).to_canonical()
    for name in sorted(canonical.keys() & document.keys()):
        if not holds_amount(canonical[name]):
            continue
        written = as_printed(fields.KIND_OF_TYPE.get(kind, kind), name, canonical[name])
        again = model.model_validate({**document, name: written}).to_canonical()
        assert again[name] == canonical[name], f"{kind}.{name}: {written}"


def holds_amount(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(holds_amount, value.values()))
    if isinstance(value, list | tuple):
        return any(map(holds_amount, value))
    return isinstance(value, int) and not isinstance(value, bool)


def as_printed(kind: str, path: str, value: Any) -> Any:
    """The value with each amount in it as a plan has it."""
    if isinstance(value, Mapping) and not value.keys() <= {"min", "max"}:
        printed = {name: as_printed(kind, f"{path}.{name}", value[name]) for name in value}
        # With an architecture, documents have the number of CPUs one level below.
        return {"arch": printed.pop("arch"), "count": printed} if "arch" in printed else printed
    if isinstance(value, list | tuple) and path.rpartition(".")[2] != "compute_capability":
        return [as_printed(kind, path, one) for one in value]
    if not holds_amount(value):
        return value
    # That a percentage is one goes without saying in a document.
    text = value_text(kind, path, value).removesuffix("%")
    return int(text) if text.isdecimal() else text
