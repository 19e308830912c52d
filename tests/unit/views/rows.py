"""Values that the tests of this room are made of."""

from __future__ import annotations

import json
from typing import Any

from fleetform.agents.protocol.messages import JobKey
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.ledger import LedgerStatus
from fleetform.model.live import Live, LiveResource, LiveRun
from fleetform.model.ports import RunHistory
from fleetform.model.run import (
    Attempt,
    AttemptState,
    GpuRequirement,
    Job,
    Requirement,
    Run,
    RunState,
    RunUid,
    Template,
)
from fleetform.spec.desired import ResourceKey

NOW = 1_700_000_000_000
GB = 1 << 30


def history(name: str = "train", state: RunState = RunState.RUNNING, **more: Any) -> RunHistory:
    """A run of one node whose latest attempt is on `local-0`."""
    jobs = more.pop("jobs", (job(),))
    parent = more.pop("parent", "")
    template = Template(
        name,
        "task",
        ("true",),
        requirement=Requirement(
            4000, None, 16 * GB, gpu=GpuRequirement(2, names=("A100",), memory_min_bytes=80 * GB)
        ),
        nodes=len(jobs),
        parent=parent,
        element=name[len(parent) + 1 : -1] if parent else "",
    )
    values: dict[str, Any] = {
        "attempt": 1,
        "submitted_at_ms": NOW - 90_000,
        "started_at_ms": NOW - 60_000,
        **more,
    }
    row = Run(RunUid(f"uid-{name}"), name, template, state, 1, **values)
    attempt = Attempt(row.uid, 1, AttemptState.RUNNING, jobs, NOW - 90_000, NOW - 60_000)
    return RunHistory(row, (attempt,), archived=False, commit="abc")


def job(rank: int = 0, **more: Any) -> Job:
    values: dict[str, Any] = {"instance_uid": f"i{rank}", **more}
    return Job(f"j{rank}", JobKey("uid-train", 1, rank), JobState.RUNNING, 1, **values)


def exited(rank: int, code: int) -> Job:
    return job(rank, cause=Cause.EXITED, exit_code=code)


def instance(number: int = 0, **more: Any) -> Instance:
    values: dict[str, Any] = {
        "state": InstanceState.READY,
        "cpu_millicores": 8000,
        "memory_bytes": 64 * GB,
        **more,
    }
    return Instance(f"i{number}", f"local-{number}", "local", number, **values)


def live(*resources: LiveResource, instances: tuple[Instance, ...] = ()) -> Live:
    return Live(
        "env", "ledger", 1, LedgerStatus.READY, 1, {one.key: one for one in resources}, instances
    )


def resource(kind: str, name: str, document: dict[str, Any], **more: Any) -> LiveResource:
    return LiveResource(
        ResourceKey(kind, name), f"uid-{name}", 1, "", "", "", json.dumps(document), kind, **more
    )


def live_run(state: RunState) -> LiveRun:
    return LiveRun(state, 1)
