"""
Runs, attempts and jobs as the ledger knows them, and the template that a run freezes.

A *run* is one execution wanted: a task, or one element of a sweep or an array. An *attempt*
is one try at it, a *job* what one host does for that try. People see `RunState`; the states
between ledger and agent are `agents.protocol.states.JobState`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NewType

from fleetform.model.run_state import FINAL, AttemptState, RunState

if TYPE_CHECKING:
    from fleetform.agents.protocol.keys import JobKey
    from fleetform.agents.protocol.states import Cause, JobState

__all__ = [
    "FINAL", "ArrayFacts", "Attempt", "AttemptState", "Dependency", "FileMount", "GpuRequirement", "Job",
    "PortMapping", "Requirement", "Retry", "Run", "RunState", "RunUid", "SilenceLimit", "Template",
    "VolumeMount", "When",
]  # fmt: skip


RunUid = NewType("RunUid", str)


@dataclass(frozen=True, slots=True)
class GpuRequirement:
    """
    GPUs asked for. `names` and `memory` narrow the choice; empty and None do not.

    Sizes in bytes; a `None` bound is open.
    """

    count_min: int
    count_max: int | None = None
    names: tuple[str, ...] = ()
    memory_min_bytes: int | None = None
    memory_max_bytes: int | None = None
    vendor: str = ""


@dataclass(frozen=True, slots=True)
class Requirement:
    """
    What one job needs of its host. Ranges allot their minimum on a fleet shared `exact`.

    `None` means that the document does not say: see `schedule` for what is allotted then.
    """

    cpu_min_millicores: int | None = None
    cpu_max_millicores: int | None = None
    memory_min_bytes: int | None = None
    memory_max_bytes: int | None = None
    disk_min_bytes: int | None = None
    shm_bytes: int | None = None
    gpu: GpuRequirement | None = None


class When(enum.StrEnum):
    """The state of an upstream run that a dependency waits for."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    FINISHED = "finished"
    STARTED = "started"


@dataclass(frozen=True, slots=True)
class Dependency:
    """
    One entry of `depends_on`. `run` names a run, or a sweep as a whole (all its elements).

    `each`: element i waits for element i of the other only.
    """

    run: str
    when: When = When.SUCCEEDED
    each: bool = False


STOP_GRACE_SECONDS = 10
"""`stop_duration` of a run that does not set it."""


@dataclass(frozen=True, slots=True)
class Retry:
    """
    When a failed attempt is followed by another.

    `on` holds the events: `error` (exit code), `no-capacity`, `interruption`, `time-limit`,
    `preemption`, `node-failure`. `max_attempts` counts the first; None: unlimited within
    `window_seconds` since submission. Delays double from `delay_seconds`, capped at 10 min.
    """

    on: frozenset[str]
    max_attempts: int | None = None
    window_seconds: int | None = None
    delay_seconds: int = 0
    requeue_exit_codes: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class SilenceLimit:
    """
    `on_silence: stop after …`: how the host of a job ends it when it hears no controller.

    The host gets these numbers with the job and goes by them to the end, so a job keeps those of its
    start whatever the document says later.
    """

    after_seconds: int
    checkpoint_lead_seconds: int
    stop_grace_seconds: int

    @property
    def proof_ms(self) -> int:
        """
        For how long a host must have heard nothing until the job is proven to be over.

        By the host's clock it is killed after the three times. The clocks of two machines differ by far
        less than 2 %, and a host that has been suspended needs a moment to notice.
        """
        seconds = self.after_seconds + self.checkpoint_lead_seconds + self.stop_grace_seconds
        return seconds * 1020 + 10_000


@dataclass(frozen=True, slots=True)
class VolumeMount:
    name: str
    path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class PortMapping:
    """A port on which a program of the job listens; `local_port` is that of an attached user, None: any."""

    port: int
    local_port: int | None = None


@dataclass(frozen=True, slots=True)
class FileMount:
    """`path` is where it lies in the job's working directory."""

    path: str
    sha256: str
    size_bytes: int
    mode: int


@dataclass(frozen=True, slots=True)
class Template:
    """
    A run's canonical document with types: what scheduling, lifecycle and agents read.

    Built by `from_document`; the document stays the truth and is what is stored.
    """

    name: str
    type: str
    commands: tuple[str, ...]
    shell: str = "sh"
    env: Mapping[str, str] = field(default_factory=dict)
    working_dir: str = ""
    files: tuple[FileMount, ...] = ()
    code: str = ""
    """SHA-256 of the bundle that is unpacked where the job starts; empty: none."""
    volumes: tuple[VolumeMount, ...] = ()
    ports: tuple[PortMapping, ...] = ()
    """Forwarded by `attach`; the job itself knows nothing of them."""
    requirement: Requirement = field(default_factory=Requirement)
    nodes: int = 1
    fleets: tuple[str, ...] = ()
    """Empty: any fleet."""
    queue: str = ""
    """The queue that it waits in; empty: the default one, if there is any."""
    creation_policy: str = "reuse-or-create"
    priority: int = 0
    """0 to 100, higher first."""
    max_duration_seconds: int | None = None
    stop_grace_seconds: int = STOP_GRACE_SECONDS
    checkpoint_signal: str | None = None
    checkpoint_lead_seconds: int = 0
    silence: SilenceLimit | None = None
    """None: a job whose host hears no controller runs on."""
    retry: Retry | None = None
    depends_on: tuple[Dependency, ...] = ()
    depends_on_all: bool = True
    concurrency_group: str = ""
    """Runs of one group share `concurrency_limit` places; empty: no such limit."""
    concurrency_limit: int | None = None
    runtime: str = "process"
    compat: tuple[str, ...] = ()
    """Other systems whose variables and commands the job finds: `slurm`."""
    startup_order: str = "any"
    """Which nodes start first: `any`, `master-first` or `workers-first`."""
    stop_criteria: str = "all-done"
    """Whose end is the run's: `all-done`, or `master-done` for node 0."""
    wanted: str = "running"
    """`state:` of the document: `running` or `stopped`."""
    parent: str = ""
    element: str = ""
    index: int | None = None
    """The element's number in its array, else None."""
    matrix: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ArrayFacts:
    """
    An array as a whole, for programs that know arrays of Slurm.

    `number` is that of the first run that the array ever had, and stays; `indices` are those of
    its elements now, ascending.
    """

    number: int
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """
    One run's row.

    `number` orders submissions (FIFO). `attempt` is the latest attempt's number, 0 before
    the first. `generation` goes up with each commit that changes what should happen to it.
    Times are Unix milliseconds.
    """

    uid: RunUid
    name: str
    template: Template
    state: RunState
    number: int
    attempt: int = 0
    generation: int = 1
    cause: str = ""
    message: str = ""
    stop_requested: str = ""
    """Who requested the end and why; empty: no request."""
    submitted_at_ms: int = 0
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    not_before_ms: int = 0
    """No attempt is placed earlier: delay between attempts, `begin:`."""
    uncounted: int = 0
    """Attempts so far in which no code of the run ran: `retry.max_attempts` does not count them."""
    after_uid: str = ""
    """An earlier run of the same name that must be over before this one is placed, or empty."""
    execution_digest: str = ""
    owner: str = ""
    """The Unix account of the person who applied it; empty where that is not known."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job's row. `instance_uid` and `boot_id` are empty before it is reserved."""

    uid: str
    key: JobKey
    state: JobState
    gen: int
    instance_uid: str = ""
    boot_id: str = ""
    stop_wanted: bool = False
    cpu_millicores: int = 0
    memory_bytes: int = 0
    """Allotted, and the hard limit where `memory_limited`."""
    memory_limited: bool = False
    disk_bytes: int = 0
    gpus: tuple[str, ...] = ()
    blocks: int = 0
    cause: Cause | None = None
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    forgotten: bool = False
    peak_memory_bytes: int | None = None
    cpu_time_ms: int | None = None
    log_bytes: int = 0
    fleet_env: Mapping[str, str] = field(default_factory=dict)
    """`env` of its fleet when it was placed: a later change counts for later attempts."""
    account: str = ""
    """The account that it runs as on its host; empty: that of the agent."""
    silence: SilenceLimit | None = None
    """The template's when it was placed: a later change counts for later attempts."""


@dataclass(frozen=True, slots=True)
class Attempt:
    run_uid: RunUid
    number: int
    state: AttemptState
    jobs: tuple[Job, ...]
    """In order of rank."""
    submitted_at_ms: int = 0
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    cause: str = ""
    message: str = ""
    reserved_at_ms: int | None = None
    """When its units were reserved: the time to prepare counts from here."""
    starting_at_ms: int | None = None
    """When it passed its commit point: the time to start counts from here."""
    master_port: int | None = None
    """Where rank 0 listens; None: it has one node or no place, or an earlier release placed it."""

    @property
    def begun_ms(self) -> int | None:
        """When the first of its jobs began, by its host; None while none has."""
        return min(
            (job.started_at_ms for job in self.jobs if job.started_at_ms is not None), default=None
        )

    @property
    def over_ms(self) -> int | None:
        """When the last of its jobs that ended did, by its host; None while none has."""
        return max(
            (job.finished_at_ms for job in self.jobs if job.finished_at_ms is not None),
            default=None,
        )


# From a run's canonical document to its typed template.
# The document was validated when it was loaded; here it is only read. A field that this
# module does not read is carried out nowhere, so `tests/house` compares the two.


def from_document(name: str, document: Mapping[str, Any], *, parent: str = "") -> Template:
    """
    Build the template of the run `name`.

    Args:
        name: The run's full name, `sweep[lr=0.1]` for an element.
        document: In canonical form; see `spec.canonical`.
        parent: The sweep or array that it is an element of, or empty.
    """
    checkpoint = document.get("checkpoint") or {}
    concurrency = document.get("concurrency") or {}
    depends_on = document.get("depends_on") or {}
    limit = concurrency.get("limit")
    group = concurrency.get("group") or (parent or name)
    return Template(
        name=name,
        type=document.get("type", "task"),
        commands=tuple(document.get("commands", ())),
        shell=document.get("shell", "sh"),
        env=dict(document.get("env", {})),
        working_dir=document.get("working_dir", ""),
        files=tuple(
            FileMount(entry["path"], entry["sha256"], entry["size"], entry["mode"])
            for entry in document.get("files", ())
        ),
        code=document.get("code", {}).get("sha256", ""),
        volumes=tuple(
            VolumeMount(entry["name"], entry["path"], entry.get("read_only", False))
            for entry in document.get("volumes", ())
        ),
        ports=tuple(
            PortMapping(entry["container_port"], entry.get("local_port"))
            for entry in document.get("ports", ())
        ),
        requirement=requirement(document.get("resources") or {}),
        nodes=document.get("nodes", 1),
        fleets=tuple(document.get("fleets", ())),
        queue=document.get("queue", ""),
        creation_policy=document.get("creation_policy", "reuse-or-create"),
        priority=document.get("priority", 0),
        max_duration_seconds=document.get("max_duration"),
        stop_grace_seconds=document.get("stop_duration", STOP_GRACE_SECONDS),
        checkpoint_signal=checkpoint.get("signal"),
        checkpoint_lead_seconds=checkpoint.get("lead", 0),
        silence=_silence(document),
        retry=_retry(document.get("retry")),
        depends_on=tuple(
            Dependency(entry["run"], When(entry.get("when", "succeeded")), entry.get("each", False))
            for entry in depends_on.get("runs", ())
        ),
        depends_on_all=depends_on.get("all", True),
        concurrency_group=group if limit is not None else "",
        concurrency_limit=limit,
        runtime=document.get("runtime", "process"),
        compat=tuple(document.get("compat", ())),
        startup_order=document.get("startup_order", "any"),
        stop_criteria=document.get("stop_criteria", "all-done"),
        wanted=document.get("state", "running"),
        parent=parent,
        element=name[len(parent) + 1 : -1] if parent else "",
        index=document.get("index"),
        matrix=dict(document.get("matrix", {})),
    )


def requirement(resources: Mapping[str, Any]) -> Requirement:
    """Read `resources` of a document, or of a fleet's template."""
    cpu = resources.get("cpu") or {}
    memory = resources.get("memory") or {}
    disk = resources.get("disk") or {}
    gpu = resources.get("gpu")
    return Requirement(
        cpu_min_millicores=cpu.get("min"),
        cpu_max_millicores=cpu.get("max"),
        memory_min_bytes=memory.get("min"),
        memory_max_bytes=memory.get("max"),
        disk_min_bytes=disk.get("min"),
        shm_bytes=resources.get("shm_size"),
        gpu=_gpu(gpu) if gpu else None,
    )


def _gpu(gpu: Mapping[str, Any]) -> GpuRequirement:
    count = gpu.get("count") or {"min": 1}
    memory = gpu.get("memory") or {}
    return GpuRequirement(
        count_min=count.get("min") or 0,
        count_max=count.get("max"),
        names=tuple(gpu.get("name") or ()),
        memory_min_bytes=memory.get("min"),
        memory_max_bytes=memory.get("max"),
        vendor=gpu.get("vendor") or "",
    )


def _silence(document: Mapping[str, Any]) -> SilenceLimit | None:
    silence = document.get("on_silence") or {}
    if silence.get("action") != "stop":
        return None
    checkpoint = document.get("checkpoint") or {}
    return SilenceLimit(
        after_seconds=silence["after"],
        checkpoint_lead_seconds=checkpoint.get("lead", 0),
        stop_grace_seconds=document.get("stop_duration", STOP_GRACE_SECONDS),
    )


def _retry(retry: Mapping[str, Any] | None) -> Retry | None:
    if not retry:
        return None
    return Retry(
        on=frozenset(retry.get("on", ())),
        max_attempts=retry.get("max_attempts"),
        window_seconds=retry.get("duration"),
        delay_seconds=retry.get("delay", 0),
        requeue_exit_codes=frozenset(retry.get("requeue_exit_codes", ())),
    )
