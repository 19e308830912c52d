"""
Which message a host is due, from a job's row and what the host last said of it.

This is the whole of recovery on the controller's side: after any crash, lost message or
reconnect, comparing each row with its record tells what is still to be sent. Sending one twice
does no harm, because an agent answers an echo with what it knows.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import fields, replace

from fleetform.agents.protocol.messages import FileEntry, JobRecord, Mount, StartJob
from fleetform.agents.protocol.states import JobState
from fleetform.lifecycle.node_order import must_wait
from fleetform.lifecycle.slurm import SlurmFacts, slurm_variables
from fleetform.model.instance import Instance
from fleetform.model.run import Attempt, Job, Run, Template


class Due(enum.StrEnum):
    PREPARE = "prepare"
    """With `go` once the commit point has passed; see `job_request`."""
    START = "start"
    STOP = "stop"
    FORGET = "forget"


def due(
    job: Job,
    record: JobRecord | None,
    *,
    gang: int = 1,
    output_complete: bool = True,
    waits: bool = False,
) -> Due | None:
    """
    Say which message the job's host is due now, or None.

    Args:
        job: The committed row.
        record: What the host said last; None: it has said hello and does not know the job.
        gang: How many jobs the attempt has.
        output_complete: All that the job wrote has been taken in: it may be forgotten.
        waits: Other nodes of the run start first; see `node_order.must_wait`.
    """
    if not job.instance_uid or job.forgotten:
        return None
    if job.state is JobState.FINISHED:
        return _due_finished(job, record, output_complete=output_complete)
    if job.stop_wanted:
        return _due_stop(job, record)
    if record is not None and record.state is JobState.FINISHED:
        # News that the ledger has not taken in yet.
        return None
    what = _due_alive(job, record, gang)
    return None if waits and what is Due.START else what


def _due_finished(job: Job, record: JobRecord | None, *, output_complete: bool) -> Due | None:
    if record is not None and record.state is not JobState.FINISHED:
        # The row is over and the host still has the job, as when a refusal was believed that the
        # host took back: it must not run beside the next attempt.
        return Due.STOP
    return Due.FORGET if output_complete else None


def _due_stop(job: Job, record: JobRecord | None) -> Due | None:
    if record is None:
        return Due.STOP
    if record.state is JobState.FINISHED or record.gen >= job.gen:
        return None
    return Due.STOP


_SENT_WHILE: dict[JobState, Due] = {
    JobState.RESERVED: Due.PREPARE,
    JobState.PREPARING: Due.PREPARE,
    JobState.PREPARED: Due.PREPARE,
    JobState.STARTING: Due.PREPARE,
}
"""
What a host that does not know the job is sent, by the row's state. From `RUNNING` on there was
a process: a host without a record of it has lost its memory, and a second start might be one
too many.
"""


def _due_alive(job: Job, record: JobRecord | None, gang: int) -> Due | None:
    if record is None:
        return _SENT_WHILE.get(job.state)
    if job.state is JobState.STARTING and record.state is JobState.PREPARED:
        # A gang's go; and for one alone, an agent that restarted between the two phases.
        return Due.START
    if record.state in {JobState.WAITING, JobState.RESERVED}:
        return _SENT_WHILE.get(job.state)
    return None


# One job as its host is told of it: `StartJob`, with the environment that the job sees.
# The same value describes a job on every provider. The host adds its own defaults, such as PATH and
# HOME (`agents.host.job_environment`): they are in no message, and so in no digest.

LOG_HEAD_BYTES = 1 << 20
LOG_TAIL_BYTES = 8 << 20
"""
What is kept of a job's output: how it began, and how it ended. A thousand jobs that all write
without end fill 9 GB of a host's disk at most.
"""

_TWINS = (
    "RUN_NAME",
    "NODE_RANK",
    "NODES_NUM",
    "NODES_IPS",
    "MASTER_NODE_IP",
    "GPUS_PER_NODE",
    "GPUS_NUM",
)
"""Variables that dstack has under the same name with its own prefix; its two ids differ."""


_WRITTEN = {"env", "files"}
"""Fields that template and message have under one name, and that mean more in the message."""

_COPIED = tuple(
    sorted(
        {one.name for one in fields(StartJob)} & {one.name for one in fields(Template)} - _WRITTEN
    )
)
"""
Fields of the template that go to the host as they are. Derived, so that a new one reaches hosts by
its name in both places, and none is read from the document and then left out.
"""


def job_request(
    run: Run,
    attempt: Attempt,
    job: Job,
    peers: Mapping[int, Instance],
    volume_paths: Mapping[str, str],
    slurm: SlurmFacts | None = None,
) -> StartJob:
    """
    Describe `job` to its host.

    Args:
        run: Its template says what is executed.
        attempt: Whose jobs are the gang.
        job: Placed: its instance and boot are known.
        peers: The instances of all ranks. One that is missing gives an empty address.
        volume_paths: Where each volume lies on this job's host, absolute, by its name.
        slurm: For a run with `compat: slurm`; no other run's request contains any of it.

    Raises:
        KeyError: A volume of the run is not in `volume_paths`.
    """
    assert job.instance_uid, job.key
    template = run.template
    request = StartJob(
        **{name: getattr(template, name) for name in _COPIED},
        job_uid=job.uid,
        key=job.key,
        gen=job.gen,
        boot_id=job.boot_id,
        run_name=run.name,
        env={
            **_environment(run, attempt, job, peers, volume_paths),
            **(slurm_variables(run, attempt, job, peers, slurm) if slurm is not None else {}),
        },
        files=tuple(
            FileEntry(file.path, file.sha256, file.size_bytes, file.mode) for file in template.files
        ),
        bundle=template.code,
        mounts=tuple(
            Mount(volume.name, volume_paths[volume.name], volume.path, volume.read_only)
            for volume in template.volumes
        ),
        gpus=job.gpus,
        cpu_millicores=job.cpu_millicores,
        memory_bytes=job.memory_bytes if job.memory_limited else None,
        log_head_bytes=LOG_HEAD_BYTES,
        log_tail_bytes=LOG_TAIL_BYTES,
        # Once the commit point has passed, one message carries prepare and start: at once for a
        # run on one node, and again where a host has lost a gang's prepared record. A node that
        # starts after others is prepared again, and started when its turn comes.
        go=job.state is JobState.STARTING and not must_wait(template, attempt, job),
        execution_digest=run.execution_digest,
        account=job.account,
        is_spot=bool(peers[job.key.rank].endpoint.get("spot")) if job.key.rank in peers else False,
    )
    if job.silence is None:
        return request
    # When it counts as dead is computed from the numbers of the row: the host must get the same.
    return replace(
        request,
        silence_seconds=job.silence.after_seconds,
        checkpoint_lead_seconds=job.silence.checkpoint_lead_seconds,
        stop_grace_seconds=job.silence.stop_grace_seconds,
    )


def _environment(
    run: Run,
    attempt: Attempt,
    job: Job,
    peers: Mapping[int, Instance],
    volume_paths: Mapping[str, str],
) -> dict[str, str]:
    """
    Join the variables of the fleet, of the run and of the product; the later ones win.

    The product's win because what a job is told of its rank and place must be true.
    """
    ours = _facts(run, attempt, job, peers)
    ours.update(
        {
            f"VOLUME_{_variable(volume.name)}": volume_paths[volume.name]
            for volume in run.template.volumes
        }
    )
    env = {**job.fleet_env, **run.template.env}
    env.update({f"FLEETFORM_{name}": value for name, value in ours.items()})
    env.update({f"DSTACK_{name}": ours[name] for name in _TWINS})
    env["DSTACK_RUN_ID"] = run.uid
    env["DSTACK_JOB_ID"] = job.uid
    return env


def _facts(run: Run, attempt: Attempt, job: Job, peers: Mapping[int, Instance]) -> dict[str, str]:
    template = run.template
    addresses = [
        peers[other.key.rank].address if other.key.rank in peers else "" for other in attempt.jobs
    ]
    facts = {
        "RUN_NAME": run.name,
        "RUN_UID": str(run.uid),
        "ATTEMPT": str(attempt.number),
        "JOB_UID": job.uid,
        "NODE_RANK": str(job.key.rank),
        "NODES_NUM": str(len(attempt.jobs)),
        "NODES_IPS": "\n".join(addresses),
        "MASTER_NODE_IP": addresses[0],
        "GPUS_PER_NODE": str(len(job.gpus)),
        "GPUS_NUM": str(sum(len(other.gpus) for other in attempt.jobs)),
    }
    if attempt.master_port is not None:
        facts["MASTER_PORT"] = str(attempt.master_port)
    if template.index is not None:
        facts["ARRAY_INDEX"] = str(template.index)
    for key, value in template.matrix.items():
        facts[f"MATRIX_{_variable(key)}"] = _text(value)
    return facts


def _variable(name: str) -> str:
    """Spell a name as part of a variable: upper case, with `_` for what a shell would refuse."""
    return re.sub(r"[^A-Z0-9_]", "_", name.upper())


def _text(value: object) -> str:
    """Write a canonical value as YAML would be read by a program: `true`, not `True`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
