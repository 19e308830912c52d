"""Rows that the tests of this room are made of."""

from __future__ import annotations

from typing import Any

from fleetform.agents.protocol.messages import JobKey, JobRecord
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.run import (
    Attempt,
    AttemptState,
    Job,
    Retry,
    Run,
    RunState,
    RunUid,
    Template,
)

NOW = 1_700_000_000_000

OK: dict[str, Any] = {"state": JobState.FINISHED, "cause": Cause.EXITED, "exit_code": 0}


def ended(cause: Cause, code: int | None = None, **more: Any) -> dict[str, Any]:
    return {"state": JobState.FINISHED, "cause": cause, "exit_code": code, **more}


def job(rank: int = 0, attempt: int = 1, **more: Any) -> Job:
    values: dict[str, Any] = {
        "uid": f"job-{attempt}-{rank}",
        "key": JobKey("run", attempt, rank),
        "state": JobState.RUNNING,
        "gen": 3,
        "instance_uid": f"i{rank}",
        "boot_id": f"boot{rank}",
        **more,
    }
    return Job(**values)


def attempt(*jobs: dict[str, Any], number: int = 1, **more: Any) -> Attempt:
    values: dict[str, Any] = {"state": AttemptState.RUNNING, **more}
    return Attempt(
        run_uid=RunUid("run"),
        number=number,
        jobs=tuple(job(rank, number, **one) for rank, one in enumerate(jobs)),
        **values,
    )


def run(retry: Retry | None = None, nodes: int = 1, **more: Any) -> Run:
    row = {
        key: more.pop(key)
        for key in ("state", "stop_requested", "uncounted", "submitted_at_ms", "attempt")
        if key in more
    }
    template = Template("train", "task", ("true",), retry=retry, nodes=nodes, **more)
    values: dict[str, Any] = {"state": RunState.RUNNING, "submitted_at_ms": NOW, **row}
    return Run(uid=RunUid("run"), name="train", template=template, number=1, **values)


def record(state: JobState, gen: int = 3, rank: int = 0, **more: Any) -> JobRecord:
    return JobRecord(JobKey("run", 1, rank), f"job-1-{rank}", gen, "digest", state, **more)
