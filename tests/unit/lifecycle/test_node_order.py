"""Which nodes of a run wait for which others to start."""

from __future__ import annotations

import pytest

from fleetform.agents.protocol.states import Cause, JobState
from fleetform.lifecycle import job_request, must_wait
from fleetform.model.instance import Instance, InstanceState
from unit.lifecycle.rows import OK, attempt, ended, run

STARTING = {"state": JobState.STARTING}
RUNNING = {"state": JobState.RUNNING}
PEERS = {
    rank: Instance(f"i{rank}", f"h{rank}", "f", rank, InstanceState.READY) for rank in range(3)
}


def waiting(order: str, *jobs: dict[str, object]) -> list[int]:
    """The ranks that may not start yet; a message that prepares one says so as well."""
    row, gang = run(nodes=len(jobs), startup_order=order), attempt(*jobs)
    for job in gang.jobs:
        if job.state is JobState.STARTING:
            request = job_request(row, gang, job, PEERS, {})
            assert request.go is not must_wait(row.template, gang, job)
    return [job.key.rank for job in gang.jobs if must_wait(row.template, gang, job)]


@pytest.mark.parametrize(
    ("order", "begun", "expected"),
    [
        ("any", [], []),
        ("master-first", [], [1, 2]),
        ("master-first", [0], []),
        ("workers-first", [], [0]),
        ("workers-first", [1], [0]),
        ("workers-first", [1, 2], []),
    ],
)
@pytest.mark.parametrize("state", [RUNNING, OK, ended(Cause.STOPPED)])
def test_nodes_wait_for_others_to_have_begun(order, begun, expected, state):
    """Also one that has ended since has begun: nothing waits for it for ever."""
    jobs = [state if rank in begun else STARTING for rank in range(3)]
    assert waiting(order, *jobs) == expected


@pytest.mark.parametrize("order", ["any", "master-first", "workers-first"])
def test_a_node_alone_waits_for_none(order):
    """It is the first node and all of them."""
    assert waiting(order, STARTING) == []
