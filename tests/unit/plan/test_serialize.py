"""A plan as bytes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from fleetform.model.live import Live
from fleetform.model.plan import Permissions, Plan
from fleetform.model.redaction import fingerprint
from fleetform.model.run import RunState
from fleetform.plan.planner import plan as make_plan
from fleetform.plan.serialize import dump, load
from fleetform.spec.desired import Desired, ResourceKey, Rules
from unit.plan.trees import NOW_MS, element, fleet, ledger, planned, row, task, tree, volume


def inputs() -> tuple[Desired, Live]:
    """A tree and a ledger between which nearly everything happens."""
    desired = tree(
        fleet("local", nodes=2),
        volume("data", path="/new"),
        task("train", env={"LR": "0.2", "Ü": "\ud800"}, fleets=["local"]),
        task("new", volumes=[{"name": "data", "path": "/in"}]),
        *(element("s", lr=lr, batch=batch) for lr in (0.1, 0.3) for batch in (1, 2)),
        rules=Rules(delete_count=9),
        broken=[ResourceKey("run", "bad")],
    )
    live = ledger(
        row(fleet("local")),
        row(volume("data")),
        row(task("train")),
        row(task("gone"), RunState.RUNNING, gpus=2, started_at_ms=NOW_MS - 1000),
        row(task("failed"), RunState.FAILED),
        *(row(element("s", lr=lr, batch=batch)) for lr in (0.1, 0.2) for batch in (1, 2)),
    )
    return desired, live


@pytest.fixture
def sample() -> Plan:
    return planned(*inputs())


def test_a_round_trip_is_exact(sample: Plan) -> None:
    """What is read is what was written, annex and all."""
    assert load(dump(sample)) == sample
    assert dump(load(dump(sample))) == dump(sample)


def test_the_digest_leaves_the_annex_out() -> None:
    """The same plan a day later has other ages and the same digest."""
    desired, live = inputs()
    earlier = planned(desired, live)
    later = make_plan(desired, live, permissions=Permissions(), now_ms=NOW_MS + 86_400_000)
    assert earlier.digest == later.digest
    assert earlier.annex != later.annex


def test_the_order_of_the_input_is_no_part_of_it() -> None:
    """Rows and declarations in another order give the same bytes."""
    desired, live = inputs()
    turned = replace(desired, resources=dict(reversed(desired.resources.items())))
    turned_live = replace(live, resources=dict(reversed(live.resources.items())))
    assert dump(planned(turned, turned_live)) == dump(planned(desired, live))


def test_the_hash_seed_is_no_part_of_it() -> None:
    """Two processes with different hash seeds write the same bytes."""
    program = (
        "import sys; sys.path.insert(0, 'tests');"
        "from unit.plan.test_serialize import inputs; from unit.plan.trees import planned;"
        "from fleetform.plan.serialize import dump; sys.stdout.buffer.write(dump(planned(*inputs())))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1


def edited(sample: Plan, **keys: Any) -> bytes:
    return json.dumps({**json.loads(dump(sample)), **keys}).encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "not a plan of fleetform"),
        (b'{"format": "other"}', "not a plan of fleetform"),
        (b'{"format": "fleetform-plan", "format_version": 99}', "has format 99"),
        (b'{"format": "fleetform-plan", "format_version": "x"}', "has format x"),
        (
            b'{"format": "fleetform-plan", "format_version": 1}',
            "'environment_fingerprint' is missing",
        ),
    ],
)
def test_what_is_no_plan_is_refused(data: bytes, message: str) -> None:
    """Each refusal is a sentence that says what is wrong with the file."""
    with pytest.raises(ValueError, match=message):
        load(data)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"changes": 3}, "is not a list"),
        ({"changes": [{"key": ["run"]}]}, "damaged"),
        ({"epoch": "2"}, "is not a whole number"),
        ({"held": [{}]}, "'change' is missing"),
        ({"commit": "other"}, "its digest does not match"),
        ({"more": 1}, "its digest does not match"),
        ({"rules": {"allow_everything": True}}, "damaged"),
    ],
)
def test_an_edited_plan_is_refused(sample: Plan, keys: dict[str, Any], message: str) -> None:
    """A plan is what was reviewed, to the last byte."""
    with pytest.raises(ValueError, match=message):
        load(edited(sample, **keys))


def test_a_plan_that_was_cut_short_is_refused(sample: Plan) -> None:
    """At whatever byte the copy ended."""
    data = dump(sample)
    for length in range(0, len(data) - 2, 997):
        with pytest.raises(ValueError, match="incomplete"):
            load(data[:length])


def test_a_plan_of_an_earlier_build_names_its_environment_by_the_uid(sample: Plan) -> None:
    """An apply that was interrupted before an upgrade is gone on with."""
    whole = {**json.loads(dump(sample)), "environment_uid": "e" * 32}
    annex = whole.pop("annex")
    del whole["environment_fingerprint"], whole["salt"], whole["digest"]
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    plan = load(json.dumps({**whole, "annex": annex, "digest": found}).encode())
    assert plan.environment_fingerprint == fingerprint("e" * 32)
    assert plan.changes == sample.changes
