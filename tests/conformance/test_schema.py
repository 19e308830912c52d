"""
What loads is valid for the schemas that editors use: none underlines what is right.

The rows are put into documents here, at the field that each of their files is about.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from conformance import deviations, seeds
from conformance.deviations import Row
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.base import Model, written_fields
from fleetform.spec.nodes import plain
from fleetform.spec.schema import ALL_KINDS, MODELS, generate
from fleetform.spec.schema.files import EDITORS
from fleetform.spec.syntax import read_documents

TASK = {"type": "task", "name": "train", "commands": ["true"]}
SERVICE = {"type": "service", "name": "serve", "commands": ["true"], "port": 80}
DEV = {"type": "dev-environment", "name": "dev"}
SSH = {"type": "fleet", "name": "lab", "ssh_config": {"user": "me", "hosts": ["h1"]}}
CLOUD = {"type": "fleet", "name": "lab", "backends": ["aws"], "nodes": 1}

FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "blocks": (SSH, "blocks"),
    "cpu": (TASK, "resources.cpu"),
    "disk": (TASK, "resources.disk"),
    "duration": (TASK, "stop_duration"),
    "env": (TASK, "env"),
    "files": (TASK, "files"),
    "fleet_nodes": (CLOUD, "nodes"),
    "gpu": (TASK, "resources.gpu"),
    "idle_duration": (TASK, "idle_duration"),
    "inactivity_duration": (DEV, "inactivity_duration"),
    "instances_selector": (TASK, "instances"),
    "int_range": (TASK, "resources.gpu.count"),
    "max_price": (TASK, "max_price"),
    "memory": (TASK, "resources.shm_size"),
    "memory_range": (TASK, "resources.memory"),
    "nodes_task": (TASK, "nodes"),
    "offable_duration": (TASK, "max_duration"),
    "ports": (TASK, "ports"),
    "priority": (TASK, "priority"),
    "python": (TASK, "python"),
    "replicas": (SERVICE, ""),
    "repos": (TASK, "repos[]"),
    "resource_name": (TASK, "name"),
    "resources": (TASK, "resources"),
    "retry": (TASK, "retry"),
    "schedule": (TASK, "schedule"),
    "service_port": (SERVICE, "port"),
    "shell": (TASK, "shell"),
    "tags": (TASK, "tags"),
    "user": (TASK, "user"),
    "utilization_policy": (TASK, "utilization_policy"),
    "volume_mounts": (TASK, "volumes"),
}
"""
By the rows' file: a document, and the path of the field in it. With `[]` the value is an entry
of a list; without a path it holds fields of the document itself.
"""


@functools.cache
def validators() -> tuple[Any, ...]:
    """The schema of any document, in both drafts."""
    files = generate()
    return (
        jsonschema.Draft202012Validator(json.loads(files[ALL_KINDS])),
        jsonschema.Draft7Validator(json.loads(files[f"{EDITORS}/{ALL_KINDS}"])),
    )


def document(row: Row) -> dict[str, Any]:
    base, path = FIELDS[row.file]
    whole: dict[str, Any] = json.loads(json.dumps(base))
    if not path:
        return {**whole, **row.value}
    *above, name = path.removesuffix("[]").split(".")
    place = whole
    for part in above:
        place = place.setdefault(part, {})
    place[name] = [row.value] if path.endswith("[]") else row.value
    return whole


def loads(whole: dict[str, Any]) -> bool:
    try:
        MODELS[whole["type"]].model_validate(whole)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("file", FIELDS)
def test_a_value_that_loads_is_valid_for_the_schemas(file):
    """Every spelling that the field's model takes, the schemas of both drafts take as well."""
    documents = [document(row) for row in deviations.rows() if row.file == file]
    accepted = [one for one in documents if loads(one)]
    assert accepted
    for whole in accepted:
        for validator in validators():
            assert [error.message for error in validator.iter_errors(whole)] == [], whole


@pytest.mark.parametrize("number", range(len(seeds.kept())))
def test_a_document_of_the_texts_is_valid_for_the_schemas(number):
    """What loads as it stands is not underlined either."""
    nodes, findings = read_documents(seeds.kept()[number].encode(), "seed.yaml")
    assert not findings
    for value in map(plain, nodes):
        for validator in validators():
            assert [error.message for error in validator.iter_errors(value)] == []


def optional_fields(model: type[Model]) -> list[str]:
    """The fields that a document may leave out, and that then hold nothing."""
    return [
        name
        for name, field in written_fields(model).items()
        if not field.is_required() and field.default is None
    ]


@pytest.mark.parametrize("type_name", sorted(KINDS))
def test_a_field_that_may_be_left_out_may_be_null(type_name):
    """For the loader and for the schemas of both drafts, as dstack has it."""
    model = MODELS[type_name]
    for name in optional_fields(model):
        nothing = {name: None}
        with pytest.raises(ValidationError) as caught:
            model.model_validate({**nothing, "no-such-field": 1})
        assert (name,) not in {error["loc"][:1] for error in caught.value.errors()}, name
        for validator in validators():
            whole = {"type": type_name, **nothing}
            wrong = [error.path for error in validator.iter_errors(whole) if error.path]
            assert wrong == [], name


@pytest.mark.parametrize(
    ("base", "path", "value"),
    [
        *[(TASK, "name", name) for name in ("A", "a", "1a", "a_b", "a" * 42, "train\n", "")],
        *[(TASK, "queue", name) for name in ("A", "a", "a/b")],
        *[
            (TASK, "ports[]", port)
            for port in (0, 65_536, "x", "80:", ":80", "1:2:3", "0", "65536", "80:70000")
        ],
        *[(SERVICE, "port", port) for port in (0, 65_536, "x", "80:", "65536")],
        *[(TASK, name, []) for name in ("groups", "regions", "fleets", "instances", "compat")],
        (SERVICE, "port", "0:80"),
        (SERVICE, "port", {"local_port": 0, "container_port": 80}),
        (SERVICE, "replicas", []),
        *[(TASK, "stop_duration", time) for time in ("30m1h", "1.5h", "5x", "1h1h", "")],
    ],
)
def test_what_validate_refuses_of_simple_values_the_schemas_refuse(base, path, value):
    """A mistake in a name, a port or a time, and a list without entries, is underlined."""
    whole = {**base, path.removesuffix("[]"): [value] if path.endswith("[]") else value}
    assert not loads(whole)
    for validator in validators():
        assert not validator.is_valid(whole)


@pytest.mark.parametrize(
    "port", [0, 1, 22, 65_535, 65_536, "0", "1", "022", "9999", "65535", "65536"]
)
def test_a_port_is_one_to_the_schemas_where_it_is_one_to_the_loader(port):
    """As a number and as text, for hosts, tasks and services."""
    host = {**SSH, "ssh_config": {**SSH["ssh_config"], "port": port}}
    for whole in (host, {**TASK, "ports": [port]}, {**SERVICE, "port": port}):
        assert [one.is_valid(whole) for one in validators()] == [loads(whole)] * 2


@given(st.text(alphabet="aZ09-_ /\n", max_size=43))
def test_a_name_is_one_to_the_schemas_where_it_is_one_to_the_loader(name):
    """Of any text both say the same."""
    whole = {**TASK, "name": name}
    assert [one.is_valid(whole) for one in validators()] == [loads(whole)] * 2
