"""
What controller and agent say to each other, as values.

The ledger mints every number: a command is always a copy of a committed row. The agent
checks, in this order: ledger id, epoch, boot id, `gen`. Each message is one JSON object
in one frame (`frames`). Standard library only, Python 3.9.

A request carries `id`; exactly one `Reply` with the same `id` answers it. Events, which
nobody asked for, carry a number of the agent's log instead and are sent again after a
reconnect until they are acknowledged.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Union

# Under the same names again: here is where whoever speaks the protocol looks for them.
from fleetform.agents.protocol.channels import (
    ChannelData,
    ChannelEnded,
    CloseChannel,
    Credit,
    OpenChannel,
)
from fleetform.agents.protocol.keys import Cursor as Cursor  # noqa: PLC0414 -- exported
from fleetform.agents.protocol.keys import JobKey as JobKey  # noqa: PLC0414 -- exported
from fleetform.agents.protocol.states import Cause, JobState

PROTOCOL_OLDEST = 1
PROTOCOL_NEWEST = 2
"""
Both ends speak the highest version that both know. Version 1 is that of the release before: its
peers reject a hello whose `protocol` is not 1, end the session at an unknown message, and know
nothing of heartbeats and channels.
"""

CAPABILITY_OF_FIELD = {
    "account": "job.account",
    "silence_seconds": "job.silence",
    "is_spot": "job.spot",
}
"""
Fields of `StartJob` that an agent of an earlier release would ignore, with the capability that it
lacks. Such a field is sent only with a value other than its default, and only to an agent with the
capability: a job never starts without what its field asks for.
"""

CAPABILITIES = (
    "channel.blob",
    "channel.exec",
    "channel.forward",
    "channel.rank",
    "disk.snapshot",
    "exec.sftp",
    *CAPABILITY_OF_FIELD.values(),
)
"""What this release can do beyond what its newest version says of every peer."""

BUNDLE_FILES_MAX = 50_000
"""Of one archive. A working copy has some thousand; more is data, or installed packages."""

BUNDLE_BYTES_MAX = 512 << 20
"""All of its contents together, written out on each host of the run."""


@dataclass(frozen=True)
class FileEntry:
    """
    One file that must lie in the job's working directory before it starts.

    `path` is relative to the working directory, `sha256` in hex names the content, `mode` is
    the permission bits.
    """

    path: str
    sha256: str
    size_bytes: int
    mode: int = 0o644


@dataclass(frozen=True)
class Mount:
    """
    A directory of the host that the job sees at `path`.

    An absolute `path` is a bind mount in a mount namespace of the job; a relative one is a
    link in the working directory. `source` is absolute on the host.
    """

    name: str
    source: str
    path: str
    read_only: bool = False


@dataclass(frozen=True)
class StartJob:
    """
    Everything a host needs for one job; the same value describes it on every provider.

    `gen` counts the row's commits and tells news from echo. `go` says that the start is
    committed too: one message then carries prepare and start, as for a run on one node.
    `boot_id` is the boot the units were reserved under: a rebooted host refuses.
    """

    job_uid: str
    key: JobKey
    gen: int
    boot_id: str
    run_name: str
    commands: tuple[str, ...]
    """Run one after another by one shell; the first failure ends the job."""
    shell: str = "sh"
    """`sh`, `bash`, or an absolute path."""
    env: dict[str, str] = field(default_factory=dict)
    working_dir: str = ""
    """Empty: a fresh directory of the job's own. Relative: below it. Absolute: as it is."""
    files: tuple[FileEntry, ...] = ()
    mounts: tuple[Mount, ...] = ()
    gpus: tuple[str, ...] = ()
    """Allotted GPUs by UUID, in the host's order; sets CUDA_VISIBLE_DEVICES. Empty hides all."""
    cpu_millicores: int = 0
    memory_bytes: int | None = None
    """Hard limit; None: not limited."""
    max_duration_seconds: int | None = None
    """Counted from the start by a clock that counts suspend; None: for ever."""
    stop_grace_seconds: int = 10
    """Between TERM and KILL."""
    checkpoint_signal: str | None = None
    """E.g. USR1; sent `checkpoint_lead_seconds` before TERM, to processes that catch it."""
    checkpoint_lead_seconds: int = 0
    log_head_bytes: int = 1 << 20
    log_tail_bytes: int = 8 << 20
    """Output beyond head + tail is dropped between them, and the gap is marked."""
    runtime: str = "process"
    go: bool = False
    bundle: str = ""
    """
    SHA-256 in hex of a tar archive that is unpacked into the job's own directory first; empty:
    none. It has files, folders and links that lead nowhere out of it.
    """
    execution_digest: str = ""
    """Names what the run's document executes: a lost ledger finds its runs again by it."""
    compat: tuple[str, ...] = ()
    """Other systems whose commands the job finds on its PATH: `slurm`."""
    account: str = ""
    """
    The Unix account that the job runs as; empty: the agent's own. For an agent with the capability
    `job.account` only: others start the job as theirs, which may be root.
    """
    silence_seconds: int | None = None
    """
    The job is stopped this long after the last heartbeat of the agent that the controller has
    answered, by a clock that counts suspend, and killed `checkpoint_lead_seconds` and
    `stop_grace_seconds` later; None: never. For an agent with the capability `job.silence` only.
    """
    is_spot: bool = False
    """
    The cloud may take the host away: the agent reads its notice, and ends the job as `Cause.INTERRUPTED`. For an agent
    with the capability `job.spot` only.
    """


# -- controller to agent ------------------------------------------------------------------


@dataclass(frozen=True)
class Hello:
    """
    First message of every connection.

    `protocol` is the oldest version that the sender speaks, under the name that version 1 reads;
    `protocol_newest` is the newest, and 0 says that there is no other. `capabilities` are what the
    sender can do beyond that version.

    `fence` is the sender's shard fence: a higher one closes older connections. `cursor` is
    None when this ledger has never read this agent's log. `look` asks for the records alone,
    whichever ledger of the environment asks: the agent goes on obeying whom it obeys, and takes
    no command here.
    """

    environment_uid: str
    ledger_id: str
    epoch: int
    fence: int
    cursor: Cursor | None = None
    protocol: int = PROTOCOL_OLDEST
    look: bool = False
    environment_name: str = ""
    """Its name, shown to users who would take the host from it."""
    protocol_newest: int = 0
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prepare:
    id: int
    job: StartJob


@dataclass(frozen=True)
class Start:
    """The commit point has passed: all ranks are prepared."""

    id: int
    key: JobKey
    gen: int
    boot_id: str


@dataclass(frozen=True)
class Stop:
    """
    End the job, or see to it that it never starts.

    Running: checkpoint signal, TERM, KILL by the host's clock. Prepared or never seen: a
    tombstone first, then `never_started`.
    """

    id: int
    key: JobKey
    job_uid: str
    gen: int
    cause: Cause = Cause.STOPPED
    grace_seconds: int | None = None
    """None: as the job's own StartJob says."""


@dataclass(frozen=True)
class Forget:
    """Outcome and logs are safe: delete the directory and keep a tombstone."""

    id: int
    keys: tuple[JobKey, ...]


@dataclass(frozen=True)
class Acknowledge:
    """All events up to the cursor are committed; the agent may drop them. Not answered."""

    cursor: Cursor


@dataclass(frozen=True)
class MissingBlobs:
    """Which of these contents does the host lack? The reply's `missing` lists them."""

    id: int
    digests: tuple[str, ...]


@dataclass(frozen=True)
class PutBlob:
    """
    One piece of a content, base64; the last piece makes it real if its digest is right.

    What version 1 has instead of channels of the kind `blob`.
    """

    id: int
    sha256: str
    offset: int
    data: str
    last: bool


@dataclass(frozen=True)
class MakeVolume:
    """
    Make a directory and remember its owner; making it twice is the same as once.

    `take` says what of a directory that is there already: `new` takes an empty one only, `found`
    takes whatever is in it and wants it to be there, `any` takes all. `kept` is of a volume that was
    made before, and wants it to be there, with its mark or with data.
    """

    id: int
    operation_uid: str
    volume_uid: str
    name: str
    path: str
    take: str = "any"


@dataclass(frozen=True)
class RemoveVolume:
    """Release a directory of this environment; `delete_data` removes what is in it too."""

    id: int
    operation_uid: str
    volume_uid: str
    path: str
    delete_data: bool


@dataclass(frozen=True)
class SnapshotVolume:
    """
    Keep a directory of this environment as a snapshot, under another name in the same folder.

    Asking twice is the same as once. Only a person removes what was put aside. The answer's
    `places` are all that this volume's data has been put aside in on this host.
    """

    id: int
    operation_uid: str
    volume_uid: str
    name: str
    path: str
    into: str


@dataclass(frozen=True)
class MountDisk:
    """
    Mount a disk that is attached to the host, and remember its owner on it; an empty disk is formatted.

    `disk` is the cloud's id of it. One that was made of a `snapshot` is never formatted: it has data, or the snapshot is a wrong
    one. That field is for an agent with the capability `disk.snapshot` only. Asking twice is the same as once. The body of the
    reply has a `warning` where the disk is mounted, and smaller than it could be.
    """

    id: int
    volume_uid: str
    name: str
    disk: str
    path: str
    snapshot: str = ""


@dataclass(frozen=True)
class MountFileSystem:
    """
    Mount a shared file system as it is: other hosts have it too, so nothing is written to it.

    `kind` is `efs` or `lustre`, `source` what mount(8) gets. Asking twice is the same as once.
    """

    id: int
    kind: str
    source: str
    path: str


@dataclass(frozen=True)
class UnmountDisk:
    """Write back and unmount what is mounted at a path; nothing where nothing is."""

    id: int
    path: str


@dataclass(frozen=True)
class FollowLog:
    """
    Send the output of this job from `offset` on, as `LogData`. Not answered.

    Needed after a reconnect only: `Prepare` implies it from offset 0. A job is forgotten
    only after all of its output has been taken in.
    """

    job_uid: str
    offset: int


@dataclass(frozen=True)
class Probe:
    """What hardware is there, and how it is; the reply's `host` is a HostReport as JSON."""

    id: int


@dataclass(frozen=True)
class Shutdown:
    """End the agent. Refused while jobs run unless `force`, which stops them first."""

    id: int
    force: bool = False


@dataclass(frozen=True)
class Heartbeat:
    """
    Says that its sender lives, in both directions and from version 2 on; see `link`.

    `at_ms` of an agent is the time since its host was booted. A controller that manages the host sends
    it back at once: for how long the host hears no controller counts from there. 0: none is said.
    """

    at_ms: int = 0


# -- agent to controller ------------------------------------------------------------------


@dataclass(frozen=True)
class JobRecord:
    """
    What the agent knows of one job. Records are the truth; events only make them early.

    A `tombstone` is all that is left after `Forget` or of a job that was stopped before it
    was seen. `exit_code` is None unless `cause` is exited; `signal` likewise.
    Times are Unix milliseconds by the host's wall clock, for display. `run_name` and
    `execution_digest` are the job's own, as long as the record is kept: by them a ledger that
    was lost is put together again. Empty where the agent never had the job itself.
    """

    key: JobKey
    job_uid: str
    gen: int
    digest: str
    state: JobState
    cause: Cause | None = None
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    peak_memory_bytes: int | None = None
    cpu_time_ms: int | None = None
    log_bytes: int = 0
    tombstone: bool = False
    run_name: str = ""
    execution_digest: str = ""


@dataclass(frozen=True)
class Welcome:
    """
    Answer to `Hello`.

    `oldest` and `newest` are the numbers of the events kept (`newest` = `oldest` - 1 when
    there are none). `records` is the snapshot of all jobs and tombstones; None when the
    cursor was good and events alone tell the rest. `protocol` is the version that both speak from
    here on, `capabilities` what the agent can do beyond it.
    """

    owner: str | None
    """The environment's uid this agent belongs to."""
    ledger_id: str
    epoch: int
    install_id: str
    boot_id: str
    machine_id: str
    log_id: str
    oldest: int
    newest: int
    records: tuple[JobRecord, ...] | None
    version: str
    protocol: int = PROTOCOL_OLDEST
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rejected:
    """
    Answer to a `Hello` that is not taken; the connection closes after it.

    code: `foreign_owner` (another environment's agent), `foreign_ledger` (same environment, another ledger
    of the same or a lower epoch), `old_epoch`, `old_fence`, `protocol`.
    """

    code: str
    message: str
    owner: str | None = None
    ledger_id: str = ""
    epoch: int = 0


@dataclass(frozen=True)
class Event:
    """News of one job, numbered within the agent's log."""

    number: int
    record: JobRecord


@dataclass(frozen=True)
class LogData:
    """
    A piece of a job's output, standard output and error as one stream, base64.

    From version 2 on it waits for credit on `link.LOG_CHANNEL`.

    `offset` counts the bytes the job ever wrote: a jump says that what lay between was
    dropped by the log's budget. `complete` marks the last piece, which may be empty; it may come long
    after the event that says the job has finished.
    """

    job_uid: str
    offset: int
    data: str
    complete: bool = False


@dataclass(frozen=True)
class Reply:
    """
    Answer to the request `id`.

    code when not ok: `boot_changed`, `conflict`, `stale` (lower gen than known; `body`
    has the current record), `busy` (units not free), `unsupported`, `not_found`, `invalid`,
    `no_space`, `io`, `refused` (nothing listens at a port).
    """

    id: int
    ok: bool
    code: str = ""
    message: str = ""
    body: dict[str, Any] = field(default_factory=dict)


Request = Union[
    Prepare, Start, Stop, Forget, MissingBlobs, PutBlob, MakeVolume, RemoveVolume,
    SnapshotVolume, MountDisk, MountFileSystem, UnmountDisk, Probe, Shutdown, OpenChannel,
    CloseChannel,
]  # fmt: skip
EitherWay = Union[Heartbeat, ChannelData, Credit, ChannelEnded, OpenChannel, Reply]
ToAgent = Union[Hello, EitherWay, Acknowledge, FollowLog, Request]
ToController = Union[Welcome, EitherWay, Rejected, Event, LogData, Reply]


@dataclass(frozen=True)
class Unknown:
    """
    What a newer release said and this one cannot read: never sent, made by the reader of frames.

    A request is answered with `unsupported` and this `problem`, which names the message or the
    value; anything else is logged and ignored.
    """

    id: int | None
    problem: str


def to_json(value: Any) -> Any:
    """Turn a message or a part of one into JSON values; enums become their values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        said = {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
        if isinstance(value, StartJob):
            # As in frames: earlier releases do not know these fields.
            for name in CAPABILITY_OF_FIELD:
                if not said[name]:
                    del said[name]
        return said
    if isinstance(value, JobKey):
        return list(value)
    if isinstance(value, (JobState, Cause)):
        return value.value
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    return value
