"""The reader of `environment.yaml` without models: it says what the models say, or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fleetform.spec.desired import Environment, Rules
from fleetform.spec.environment import EnvironmentDocument, RulesDocument
from fleetform.spec.identity import plain_environment
from fleetform.spec.kinds.base import written_fields
from fleetform.spec.tree import read_environment
from unit.spec.trees import ENVIRONMENT

RIGHT = {"type": "environment", "name": "lab", "uid": "0b2f6a0e-54c5"}

odd = st.none() | st.booleans() | st.integers(-2, 120) | st.floats() | st.text(max_size=6)
WINDOW = {"from": "2026-12-20T00:00Z", "to": "2027-01-02T00:00Z", "reason": "holidays"}

names = st.sampled_from(["lab", "l", "Lab", "a" * 41, "a" * 42, "lab-1", ""]) | odd
uids = st.sampled_from(["0b2f", "0b2", "a" * 64, "a" * 65, "0b2f-", "0B2F", "0b2f\n"]) | odd
counts = st.sampled_from([0, 100, 101, -1, 10**30, "10", "10%", 1.0, True]) | odd
moments = st.sampled_from(["2026-12-20T00:00Z", "2027-01-02 00:00+01:00", "2026-12-20"]) | odd
windows = st.fixed_dictionaries(
    {"reason": st.sampled_from(["holidays", "", "a" * 201]) | odd},
    optional={
        "from": moments,
        "to": moments,
        "cron": st.just("0 18 * * fri") | odd,
        "for": st.just("60h") | odd,
    },
)
rules = st.fixed_dictionaries(
    {},
    optional={
        "allow_destroy": odd,
        "delete_percent": counts,
        "delete_count": counts,
        "freeze": st.lists(windows | odd, max_size=2) | odd,
        "other": odd,
    },
)
patches = st.fixed_dictionaries(
    {},
    optional={
        "target": st.sampled_from(["run/train", "fleet/*", "train", "/", "run/", "/a"]) | odd,
        "merge": st.just({"nodes": 2}) | odd,
        "patch": st.sampled_from([[], [{}], [1], [{"op": "test"}]]) | odd,
        "file": st.just("a.yaml") | odd,
        "delete": odd,
    },
)
addresses = (
    st.sampled_from(
        ["run/train", "run/train\n", "fleet/local", "volume/data", "task/train", "run/a"]
    )
    | odd
)
moves = st.fixed_dictionaries({"from": addresses, "to": addresses}, optional={"and": odd})
documents = st.fixed_dictionaries(
    {"type": st.just("environment") | odd, "name": names, "uid": uids},
    optional={
        "rules": rules | odd,
        "description": odd,
        "abstract": odd,
        "extends": st.sampled_from(["../base", ""]) | odd,
        "values": st.dictionaries(
            st.sampled_from(["lr", "1r", "a-b"]),
            st.sampled_from(["a ${{ b", "a\0"]) | odd,
            max_size=2,
        )
        | odd,
        "patches": st.lists(patches | odd, max_size=2) | odd,
        "moved": st.lists(moves | odd, max_size=2) | odd,
        "removed": st.lists(addresses, max_size=2) | odd,
        "import": st.lists(addresses, max_size=2) | odd,
    },
)


def by_the_models(value):
    """What the models read; None for what they refuse."""
    try:
        document = EnvironmentDocument.model_validate(value)
    except ValidationError:
        return None
    if document.uid is None:
        return None
    said = document.rules.to_canonical() if document.rules else {}
    return Environment(document.name, document.uid, Rules.of(said))


@given(documents)
def test_what_it_reads_the_models_read_too(value):
    """A second reader may know less than the first, and never something else."""
    read = plain_environment(value)
    assert read is None or read == by_the_models(value)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"rules": {}},
        {"rules": {"allow_destroy": True}},
        {"rules": {"allow_destroy": False, "delete_percent": 100, "delete_count": 0}},
        {"rules": {"freeze": [WINDOW]}},
        {"extends": "../base"},
        {"values": {"bucket": "s3://lab", "epochs": 3, "rate": 0.1, "fast": True}},
        {"patches": []},
        {"patches": [{"target": "run/train", "merge": {"nodes": 2}}]},
        {"patches": [{"target": "fleet/gpu-*", "patch": [{"op": "remove", "path": "/blocks"}]}]},
        {"patches": [{"target": "run/train", "file": "patches/train.yaml"}]},
        {"patches": [{"target": "run/train", "delete": True}]},
        {"moved": [{"from": "run/train", "to": "run/pretrain"}]},
        {"removed": ["fleet/old", "volume/scratch"], "import": ["volume/data"]},
    ],
)
def test_what_people_write_is_read_without_the_models(said):
    """Else `ps` is slow for everybody, and no other test would notice."""
    read = plain_environment({**RIGHT, **said})
    assert read is not None
    assert read == by_the_models({**RIGHT, **said})


def test_a_field_of_the_models_is_not_forgotten():
    """A field that only the models know would make each tree that has it slow."""
    every = {"allow_destroy": True, "delete_percent": 1, "delete_count": 1, "freeze": [WINDOW]}
    assert set(every) == set(RulesDocument.model_fields)
    # What is abstract has no uid, and nothing to show.
    inherited = {"extends", "values", "patches"}
    said = {"moved", "removed", "import"}
    known = set(written_fields(EnvironmentDocument))
    # Grants are read with the models: few environments have any.
    assert known == {*RIGHT, "rules", "abstract", "grants", *inherited, *said}
    assert plain_environment({**RIGHT, "rules": every}) is not None


def test_what_is_odd_and_right_is_left_to_the_models(tmp_path):
    """A count in quotes is a count; the plain reader need not know."""
    text = f'{ENVIRONMENT}rules: {{delete_count: "7"}}\n'
    (tmp_path / "environment.yaml").write_text(text)
    environment, findings = read_environment(tmp_path)
    assert environment == Environment("testing", "0b2f6a0e-54c5", Rules(delete_count=7))
    assert findings == ()


def test_more_patches_than_are_carried_out_are_left_to_the_models():
    """They say that there are too many."""
    patches = [{"target": "run/train", "delete": True}] * 1001
    assert plain_environment({**RIGHT, "patches": patches[1:]}) is not None
    assert plain_environment({**RIGHT, "patches": patches}) is None
    assert by_the_models({**RIGHT, "patches": patches}) is None
