"""What a host is told of a job, and what the job sees."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from fleetform.agents.protocol.messages import FileEntry, Mount, StartJob
from fleetform.agents.protocol.states import JobState
from fleetform.lifecycle import job_request
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.run import (
    FileMount,
    SilenceLimit,
    Template,
    VolumeMount,
    from_document,
)
from unit.lifecycle.rows import attempt, run

PEERS = {
    rank: Instance(f"i{rank}", f"h{rank}", "f", rank, InstanceState.READY, address=f"10.0.0.{rank}")
    for rank in range(2)
}
GANG = attempt(
    {"state": JobState.RESERVED, "gpus": ("a", "b"), "memory_bytes": 5, "cpu_millicores": 7},
    {"state": JobState.RESERVED, "gpus": ("c",)},
    number=4,
)
ROW = run(
    nodes=2,
    env={"LR": "0.1", "FLEETFORM_NODE_RANK": "mine", "DSTACK_RUN_NAME": "mine"},
    volumes=(VolumeMount("my-data", "/data", True),),
    files=(FileMount("a.py", "ab", 3, 0o755),),
    matrix={"lr": 0.1, "amp": True},
    index=3,
    max_duration_seconds=60,
)


def test_the_environment_of_a_rank():
    """Ours under both prefixes, the document's beside it, ours where they meet."""
    env = job_request(ROW, GANG, GANG.jobs[1], PEERS, {"my-data": "/srv/d"}).env
    common = {
        "RUN_NAME": "train",
        "NODE_RANK": "1",
        "NODES_NUM": "2",
        "NODES_IPS": "10.0.0.0\n10.0.0.1",
        "MASTER_NODE_IP": "10.0.0.0",
        "GPUS_PER_NODE": "1",
        "GPUS_NUM": "3",
    }
    ours = {
        "RUN_UID": "run",
        "ATTEMPT": "4",
        "JOB_UID": "job-4-1",
        "ARRAY_INDEX": "3",
        "MATRIX_LR": "0.1",
        "MATRIX_AMP": "true",
        "VOLUME_MY_DATA": "/srv/d",
    }
    assert env == {
        "LR": "0.1",
        "DSTACK_RUN_ID": "run",
        "DSTACK_JOB_ID": "job-4-1",
        **{f"DSTACK_{name}": value for name, value in common.items()},
        **{f"FLEETFORM_{name}": value for name, value in {**common, **ours}.items()},
    }


def test_all_ranks_get_the_port_of_their_attempt():
    """Under no name of dstack, which has none; an attempt without one is sent none."""
    placed = replace(GANG, master_port=20_007)
    for job in placed.jobs:
        env = job_request(ROW, placed, job, PEERS, {"my-data": "/d"}).env
        assert env["FLEETFORM_MASTER_PORT"] == "20007"
        assert "DSTACK_MASTER_PORT" not in env
    assert (
        "FLEETFORM_MASTER_PORT"
        not in job_request(ROW, GANG, GANG.jobs[0], PEERS, {"my-data": "/d"}).env
    )


def test_the_env_of_the_run_wins_over_that_of_its_fleet():
    """A job has the variables of its own fleet, below those of the run and the product."""
    fleet = {"LR": "fleet", "NCCL_DEBUG": "fleet", "FLEETFORM_NODE_RANK": "fleet"}
    job = replace(GANG.jobs[1], fleet_env=fleet)
    env = job_request(ROW, GANG, job, PEERS, {"my-data": "/srv/d"}).env
    assert env["NCCL_DEBUG"] == "fleet"
    assert env["LR"] == "0.1"
    assert env["FLEETFORM_NODE_RANK"] == "1"
    assert "NCCL_DEBUG" not in job_request(ROW, GANG, GANG.jobs[0], PEERS, {"my-data": "/d"}).env


def test_what_is_mounted_and_sent():
    """Volumes by their place on the host, files by their content."""
    request = job_request(ROW, GANG, GANG.jobs[0], PEERS, {"my-data": "/srv/d"})
    assert request.mounts == (Mount("my-data", "/srv/d", "/data", True),)
    assert request.files == (FileEntry("a.py", "ab", 3, 0o755),)
    assert request.max_duration_seconds == 60


def test_a_field_of_both_names_reaches_the_host():
    """What template and message call by one name is the same, but variables and files, which gain."""
    same = {one.name for one in fields(StartJob)} & {one.name for one in fields(Template)}
    said = {"shell": "bash", "working_dir": "w", "stop_grace_seconds": 3, "compat": ("slurm",)}
    row = run(**said, checkpoint_signal="USR1", checkpoint_lead_seconds=2, max_duration_seconds=9)
    request = job_request(row, GANG, GANG.jobs[0], PEERS, {})
    for name in same - {"env", "files"}:
        assert getattr(request, name) == getattr(row.template, name), name
    assert said.keys() < same


def test_a_job_gets_the_times_of_its_row():
    """The controller computes from these when the host has ended the job: the document may differ by now."""
    document = {
        "on_silence": {"action": "stop", "after": 600},
        "checkpoint": {"signal": "USR1", "lead": 60},
    }
    limit = from_document("train", document).silence
    assert limit == SilenceLimit(600, 60, 10)
    assert limit.proof_ms == 670_000 + 13_400 + 10_000
    alone = attempt({"state": JobState.STARTING, "silence": limit})
    later = run(stop_grace_seconds=99, checkpoint_lead_seconds=99)
    request = job_request(later, alone, alone.jobs[0], PEERS, {})
    assert request.silence_seconds == 600
    assert (request.checkpoint_lead_seconds, request.stop_grace_seconds) == (60, 10)
    wait = from_document("train", {"on_silence": {"action": "wait"}})
    assert (wait.silence, from_document("train", {}).silence) == (None, None)


def test_memory_is_a_limit_only_where_it_was_asked_for():
    """An allotted share is counted, not enforced."""
    soft = job_request(ROW, GANG, GANG.jobs[0], PEERS, {"my-data": "/d"})
    hard_job = replace(GANG.jobs[0], memory_limited=True)
    hard = job_request(ROW, GANG, hard_job, PEERS, {"my-data": "/d"})
    assert (soft.memory_bytes, hard.memory_bytes) == (None, 5)


@pytest.mark.parametrize("state", [JobState.RESERVED, JobState.PREPARED, JobState.STARTING])
def test_go_travels_only_past_the_commit_point(state: JobState):
    """The row's state says whether one message may carry prepare and start."""
    alone = attempt({"state": state})
    assert job_request(run(), alone, alone.jobs[0], PEERS, {}).go is (state is JobState.STARTING)


def test_a_volume_without_a_place_is_a_bug_that_names_it():
    """The plan has checked the name, so there is nobody to tell but us."""
    with pytest.raises(KeyError, match="my-data"):
        job_request(ROW, GANG, GANG.jobs[0], PEERS, {})
