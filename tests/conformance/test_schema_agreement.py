"""
Schemas and `validate` agree about wrong values, as far as JSON Schema can say what is wrong.

Valid documents are changed at one place. What a schema refuses then, loading refuses as well: an
editor underlines no valid value. For the kinds of fields in `EXAMPLES` the reverse holds too, up
to the reasons in `NOT_IN_SCHEMAS`.
"""

from __future__ import annotations

import copy
import functools
import itertools
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import deviations, seeds
from conformance.test_documents import DOCUMENTS
from conformance.test_schema import CLOUD, FIELDS, SERVICE, SSH, TASK, document, validators
from fleetform.spec.findings import Level
from fleetform.spec.nodes import plain
from fleetform.spec.schema import MODELS, generate
from fleetform.spec.syntax import read_documents

ENVIRONMENTS = Path(__file__).parents[2] / "environments"
GATEWAY = {"type": "gateway", "name": "public", "backend": "aws", "region": "eu-west-1"}

# Fields


EXAMPLES: dict[str, tuple[dict[str, Any], tuple[str, ...], list[Any]]] = {
    "name": (TASK, ("name",), ["train-1", "ab", "a" * 41]),
    "fleet's name": (TASK, ("fleets",), ["local", "vision/gpus", ["lab"]]),
    "backend's name": (CLOUD, ("backends",), ["aws", ["aws", "gcp"]]),
    "gateway's name": (SERVICE, ("gateway",), ["public", "vision/public", True]),
    "port": (TASK, ("ports",), [8000, "80", "8080:80", "*:80", ["65535"]]),
    "service's port": (SERVICE, ("port",), [8000, "80", "8080:80", {"container_port": 80}]),
    "SSH port": (SSH, ("ssh_config", "port"), [22, "22"]),
    "duration": (TASK, ("retry", "duration"), [90, "90", "5m", "1h30m", "2d 4h", "1w"]),
    "duration or off": (TASK, ("max_duration",), [90, "off", False, -1, "2h", "1d12h"]),
    "idle duration": (CLOUD, ("idle_duration",), [90, "off", "-1", "2h", " 5m "]),
    "CPUs": (TASK, ("resources", "cpu"), [2, 0.5, "2..", "..8", "1..8", "x86:4", "2..4:arm"]),
    "CPUs as a mapping": (
        TASK, ("resources", "cpu"), [{"min": 1}, {"arch": "arm"}, {"arch": "x86", "count": "2.."}],
    ),
    "CPUs of a host": (SSH, ("ssh_config", "hosts", 0, "capacity", "cpu"), [64, "64", "8..8"]),
    "GPUs of a host": (
        SSH, ("ssh_config", "hosts", 0, "capacity", "devices"), [[0, 7], ["GPU-5e1f-0c2a", 1]],
    ),
    "memory": (TASK, ("resources", "memory"), [8, "8GB", "1.5TB..", "..16gb", {"min": "8GB"}]),
    "disk": (TASK, ("resources", "disk"), [100, "100GB..", {"size": "1TB"}]),
    "shared memory": (TASK, ("resources", "shm_size"), [8, 0.5, "512MB", "16 GB"]),
    "count of GPUs": (TASK, ("resources", "gpu", "count"), [2, "1..8", "2..", {"min": 1, "max": 8}]),
    "slice of a GPU": (TASK, ("resources", "gpu", "slice"), ["1g.10gb", "1c.3g.40gb", "1g.10gb+me"]),
    "nodes of a fleet": (CLOUD, ("nodes",), [2, "0..2", {"min": 1, "target": 2, "max": "4"}]),
    "blocks": (SSH, ("blocks",), [4, "8", "auto"]),
    "host": (SSH, ("ssh_config", "hosts"), ["gpu1", ["10.0.0.1", "gpu[01-03,7].lab"], "fe80::1"]),
    "jump host": (SSH, ("ssh_config", "proxy_jump"), ["login", "me@login.lab:22"]),
    "domain": (GATEWAY, ("domain",), ["models.example.com", "*.example.com", "a-b.example.org"]),
    "cron": (
        TASK, ("schedule", "cron"),
        ["0 0 * * *", "*/5 1-4,7 L 1-12/3 mon-fri", ["0 9 1,15 jan sun#2", "0 9 * * 5L"]],
    ),
}  # fmt: skip
"""By the kind of the field: a document, the path of a field of this kind, and valid values of it."""


def _numbers(text: str) -> list[int]:
    return [int(one) for one in re.findall(r"[0-9]+", text)]


def _is_date_without_a_day(value: Any) -> bool:
    """The only days of an expression are after the 29th, and some months do not have them."""
    fields = [one.split() for one in _texts(value)]
    return any(len(one) == 5 and max(_numbers(one[2]), default=0) > 29 for one in fields)


def _is_range_of_names(value: Any) -> bool:
    return any(re.search(r"[a-z]-|-[a-z]", text, re.IGNORECASE) for text in _texts(value))


def _is_backwards(value: Any) -> bool:
    return any(
        int(first) > int(last)
        for text in _texts(value)
        for first, last in re.findall(r"([0-9]+)-([0-9]+)", text)
    )


def _texts(value: Any) -> list[str]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _scalars(one)
    else:
        yield value


def _says(*words: str) -> Callable[[str, Any, str], bool]:
    return lambda _, __, problem: any(word in problem for word in words)


NOT_IN_SCHEMAS: dict[str, Callable[[str, Any, str], bool]] = {
    "An integer with a decimal point, such as 2.0, is an integer to JSON Schema.": (
        lambda _, value, __: any(
            isinstance(one, float) and one.is_integer() for one in _scalars(value)
        )
    ),
    "JSON Schema compares no two numbers: the ends of a range, a target with its bounds.": (
        _says("begins above its end", "before its begin", "is not between", "one amount of CPUs")
    ),
    "JSON Schema compares no entries with each other.": _says("is named twice"),
    "JSON Schema computes no amounts: the seconds of `9999999w`, the hosts of `gpu[1-99999]`, that `0.0` CPUs and `0h` are none.": (
        _says(
            "longer than a hundred years",
            "too large",
            "the most is",
            "names more than",
            "ranges name",
            "runs no job",
            "a duration of 0",
        )
    ),
    "A number with very many decimals is a number to JSON Schema.": _says(
        "finer than a thousandth", "is not a size", "is not a number of CPUs"
    ),
    "JSON Schema knows no calendar, and no order of weekdays and months.": (
        lambda kind, value, _: (
            kind == "cron"
            and (_is_date_without_a_day(value) or _is_range_of_names(value) or _is_backwards(value))
        )
    ),
}
"""Why a schema accepts a value that loading refuses: a reason, and the cases that it covers."""


# What is compared


@functools.cache
def schema_of(type_name: str) -> Any:
    return jsonschema.Draft202012Validator(json.loads(generate()[f"{type_name}.json"]))


def for_editors() -> Any:
    """The schema of any document, in the draft that editors read."""
    return validators()[1]


def refusal(whole: dict[str, Any]) -> str:
    """Why loading refuses the document; empty if it does not."""
    try:
        model = MODELS[whole["type"]].model_validate(whole)
    except ValueError as exc:
        return str(exc)
    problems = model.problems() if hasattr(model, "problems") else ()
    return "; ".join(one.detail for one in problems if one.level is Level.ERROR)


def at(whole: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """A copy of the document with `value` at the path; what is missing on the way is made."""
    changed = copy.deepcopy(whole)
    place: Any = changed
    for step, following in itertools.pairwise(path):
        if isinstance(place, list) and isinstance(place[int(step)], str):
            place[int(step)] = {"hostname": place[int(step)]}
        place = (
            place.setdefault(step, [] if isinstance(following, int) else {})
            if isinstance(place, dict)
            else place[int(step)]
        )
    place[path[-1]] = value
    return changed


LETTERS = "0159:-*/,.#[]@ \taLxXsmhdwGBT\n"


@st.composite
def nearly(draw: st.DrawFn, examples: list[Any]) -> Any:
    """A value of the kind after a slip of the pen, or a value of another type."""
    value = draw(st.sampled_from(examples))
    if draw(st.integers(0, 4)) == 0:
        others: list[Any] = ["", [], {}, True, False, 0, -1, 2.0, 1.5, [""], [1], {"x": 1}, "x"]
        return draw(st.sampled_from(others))
    return _slip(draw, value)


def _slip(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, dict):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: _slip(draw, value[key])}
    if isinstance(value, list):
        number = draw(st.integers(0, len(value) - 1))
        return [*value[:number], _slip(draw, value[number]), *value[number + 1 :]]
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return draw(st.sampled_from([value, -value, value + 70_000, str(value), f"{value}x"]))
    text = str(value)
    place = draw(st.integers(0, len(text)))
    letter = draw(st.sampled_from(["", *LETTERS]))
    return text[:place] + letter + text[place + draw(st.integers(0, 1)) :]


# Tests


@pytest.mark.parametrize("kind", EXAMPLES)
@given(data=st.data())
@settings(max_examples=60)
def test_a_value_is_one_to_the_schema_where_it_is_one_to_the_loader(kind, data):
    """For the kinds of fields of the table, whatever the slip; exceptions have a reason."""
    base, path, examples = EXAMPLES[kind]
    value = data.draw(nearly(examples))
    whole = at(base, path, value)
    problem = refusal(whole)
    if any(excuses(kind, value, problem) for excuses in NOT_IN_SCHEMAS.values()):
        return
    for validator in (schema_of(whole["type"]), for_editors()):
        assert validator.is_valid(whole) == (not problem), (value, problem)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_examples_of_a_kind_are_valid(kind):
    """Each example loads, and each schema accepts it."""
    base, path, examples = EXAMPLES[kind]
    for value in examples:
        whole = at(base, path, value)
        assert refusal(whole) == ""
        assert schema_of(whole["type"]).is_valid(whole), value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("duration", 60.0),
        ("memory", "16GB..8GB"),
        ("host", ["h", "h"]),
        ("duration", "9999999w"),
        ("CPUs", 0.0001),
        ("cron", "0 0 31 2 *"),
    ],
)
def test_what_a_schema_cannot_express_is_refused_by_validate(kind, value):
    """Each reason has a case: only loading refuses it."""
    base, path, _ = EXAMPLES[kind]
    whole = at(base, path, value)
    problem = refusal(whole)
    assert problem
    assert schema_of(whole["type"]).is_valid(whole)
    assert any(excuses(kind, value, problem) for excuses in NOT_IN_SCHEMAS.values())


@pytest.mark.parametrize("source", ["ssh_config", "local", "kubernetes", "slurm"])
def test_the_fields_that_a_source_of_hosts_excludes(source):
    """A fleet of existing hosts has no `nodes`, one of a source has no other; null is not set."""
    values: dict[str, Any] = {"ssh_config": {"hosts": ["h1"]}}
    fleet = {"type": "fleet", "name": "lab", source: values.get(source, True)}
    others = {"nodes": 1, "regions": ["eu"], "max_price": 1, "kubernetes": True, "slurm": True}
    for name, value in others.items():
        whole = {**fleet, name: value}
        for validator in (schema_of("fleet"), for_editors()):
            assert validator.is_valid({**whole, name: None} if name != source else fleet)
            assert validator.is_valid(whole) == (not refusal(whole)), whole


# Any field of any document

NEAR_VALID: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 1.5, 2.0, 1_000_000, "", "x", "X", " 5 ", "5", "-1", "0",
    "5m", "1h30m", "30m1h", "off", "8GB", "8Gi", "8GB..", "8..2", "1..4", "..", "1...4", "0.5",
    "x86:4", "A100:80GB:8", "80", "8080:80", "*:80", "70000", "models.example.com",
    "https://example.com", "a b", "me@host:22", "gpu[01-16]", "10.0.0.0/24", "0 0 * * *",
    "60 * * * *", "a-b", "a_b", "train-1", "x\n", "/data", "data:/data", "../x", "true", "3.12",
    "2026-12-24T18:00Z", "on-demand", [], {}, ["x"], ["x", "x"], [""], [1], [None], {"min": 1},
    {"min": None}, {"max": "4"}, {"x": 1}, {"name": "x"}, {"container_port": 80}, {"A": "b"},
    {"hostname": "h"}, {"cron": "0 0 * * *"}, {"duration": "5m"},
]  # fmt: skip
DROPPED = object()

# A patch is applied before its result is read, so it is not read by the model of its document.
SKIPPED = frozenset({"patches"})


@functools.cache
def documents() -> tuple[dict[str, Any], ...]:
    """The documents of the tests of conformance, and of the environments, that load."""
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS] + seeds.kept()
    texts += [path.read_text(encoding="utf-8") for path in sorted(ENVIRONMENTS.rglob("*.yaml"))]
    read = [plain(node) for text in texts for node in read_documents(text.encode(), "one.yaml")[0]]
    rows = [document(row) for row in deviations.rows() if row.file in FIELDS]
    shown = [one.whole for one in deviations.documents()]
    every = [one for one in [*read, *rows, *shown] if one.get("type") in MODELS]
    return tuple(one for one in every if not refusal(one))


def places(value: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of all values in a document."""
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    for step, inner in steps:
        yield (*above, step)
        if isinstance(inner, dict | list):
            yield from places(inner, (*above, step))


def changed(whole: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    copied = copy.deepcopy(whole)
    place: Any = copied
    for step in path[:-1]:
        place = place[step]
    if value is DROPPED:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return copied


@pytest.mark.parametrize("seed", range(4))
def test_what_a_schema_refuses_loading_refuses(seed):
    """No field of a document is underlined in an editor and loads all the same."""
    chance = random.Random(seed)
    for _ in range(2500):
        whole = chance.choice(documents())
        path = chance.choice([one for one in places(whole) if one != ("type",)])
        if path[0] in SKIPPED:
            continue
        one = changed(whole, path, chance.choice([*NEAR_VALID, DROPPED]))
        errors = [error.message for error in schema_of(one["type"]).iter_errors(one)]
        assert not errors or refusal(one), (path, one, errors)
