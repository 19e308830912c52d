"""
What every run may say, whether it ends by itself, is worked in, or serves.

The fields are those of dstack and those it lacks, in one order for all: what runs, in what, on
what, when, and how it is driven.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetPydanticSchema,
    PlainValidator,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.amounts import Limit
from fleetform.spec.kinds.base import (
    Entries,
    Flag,
    Name,
    Whole,
    each_once,
    not_carried_out,
    one_or_many,
    refuse,
)
from fleetform.spec.kinds.checkpoint import Checkpoint
from fleetform.spec.kinds.code import Code, code_problems
from fleetform.spec.kinds.commands import Commands, without_nul
from fleetform.spec.kinds.compat import slurm_beyond, slurm_problems
from fleetform.spec.kinds.concurrency import ConcurrencySpec
from fleetform.spec.kinds.container import Image, Python, RegistryAuth, User, source_problems
from fleetform.spec.kinds.credentials import warn_in_clear
from fleetform.spec.kinds.dependencies import DependsOnSpec
from fleetform.spec.kinds.files import Files, files_beyond
from fleetform.spec.kinds.mounts import Mounts, mount_problems, mounts_beyond
from fleetform.spec.kinds.offers import Offable, OfferChoice, Text
from fleetform.spec.kinds.placing import Fleets, Instances
from fleetform.spec.kinds.repos import Repos, warn_of_passwords
from fleetform.spec.kinds.resources import Resources
from fleetform.spec.kinds.retry import RetrySpec
from fleetform.spec.kinds.runtime import Runtime
from fleetform.spec.kinds.schedules import Schedule
from fleetform.spec.kinds.silence import SilenceSpec
from fleetform.spec.kinds.utilization import UtilizationPolicy
from fleetform.spec.kinds.variables import Variables, warn_of_secrets, without_value
from fleetform.spec.kinds.windows import Moment
from fleetform.spec.quantities import OFF
from fleetform.spec.quantities.ranges import parse_count, shown


def _shell(value: str) -> str:
    if value in {"sh", "bash"} or (value.startswith("/") and len(value) > 1):
        return value
    raise refuse("bad-value", f"{shown(value)} is not `sh`, `bash` or an absolute path.")


def _working_dir(value: str) -> str:
    if ".." in value.split("/"):
        raise refuse("bad-path", f"{shown(value)} contains `..`.", "Write the path it leads to.")
    return value


def _rerun(value: Any) -> int | dict[str, int]:
    if not isinstance(value, Mapping):
        return parse_count(value)
    return {str(element): parse_count(number) for element, number in value.items()}


_COUNT = {"type": "integer", "minimum": 0}

WantedState = Literal["running", "stopped"]


def _wanted_state(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    if not isinstance(value, Mapping):
        return read(value)
    return {str(element): read(state) for element, state in value.items()}


_STATE = {"type": "string", "enum": ["running", "stopped"]}

TopologyLevel = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[a-z][a-z0-9_-]*$")]
"""A level of a host's topology: names are the fleet's own."""


class Run(OfferChoice):
    """
    What tasks, dev environments and services have in common.

    They are one kind of resource with one space of names, because a run may wait for any of them
    and they share the fleets.
    """

    left_out: ClassVar[frozenset[str]] = frozenset({"name", "files"})

    # How many of it there are, after what, and in which surroundings: then what it does there.
    leading: ClassVar[tuple[str, ...]] = (
        *("nodes", "groups", "array", "matrix", "key", "concurrency", "depends_on"),
        *("image", "registry_auth", "python", "nvcc", "docker", "repos", "env", "working_dir"),
        "setup",
    )

    image: Image | None = None
    """The container's image; a base image with Python and CUDA if not said. Example: `pytorch/pytorch:2.7.0-cuda12.8-cudnn9-runtime`."""

    registry_auth: RegistryAuth | None = None
    """What a private registry asks for. Example: `{username: $oauthtoken, password: "${{ secrets.ngc_api_key }}"}`."""

    python: Python | None = None
    """The version of Python in the base image, in place of an image. Example: `"3.12"`."""

    nvcc: Flag | None = None
    """Whether the base image has NVIDIA's compiler. Example: `true`."""

    docker: Flag | None = None
    """Whether it starts containers itself. Example: `true`."""

    privileged: Flag | None = None
    """Whether its container has all rights on the host. Example: `true`."""

    user: User | None = None
    """Who it runs as in the container, with a group behind a colon. Example: `ubuntu`, `1000:1000`."""

    home_dir: Text | None = None
    """The home directory of old versions of dstack, which ignore it now. Example: `/root`."""

    shell: Annotated[str, AfterValidator(without_nul), AfterValidator(_shell)] | None = None
    """`sh`, `bash`, or an absolute path. Example: `bash`."""

    env: Variables | None = None
    """
    Environment variables, as a list or a mapping. In a list, a name alone takes the value over
    from whoever submits. Example: `[LR=0.1, HF_TOKEN]`, `{LR: 0.1}`.
    """

    working_dir: (
        Annotated[
            str, Field(min_length=1), AfterValidator(without_nul), AfterValidator(_working_dir)
        ]
        | None
    ) = None
    """
    Where commands run: a fresh directory of the job's own if not said, one below it if
    relative. Example: `code`.
    """

    setup: Commands | None = None
    """Commands of old versions of dstack, which ignore them now. Example: `[pip install torch]`."""

    dstack: Flag | None = None
    """Whether programs in it reach the server that manages them. Example: `true`."""

    repos: Repos | None = None
    """
    The repository that its commands find checked out. Example: `[.]`, `[".:code"]`,
    `[{url: "https://git.example.com/vision/models", branch: main}]`.
    """

    single_branch: Flag | None = None
    """Whether only one branch of the repository is fetched. Example: `true`."""

    files: Files | None = None
    """
    Files and directories of the tree that lie in the working directory when the job starts.
    Example: `[./train.py, ./configs:conf]`, `{local_path: ./a.py, path: b.py}`.
    """

    code: Code | None = None
    """
    A working copy that lies in the job's own directory when it starts, frozen as a whole. Written
    by `fleetform submit`. Example: `{sha256: 8c7dd922ad47494fc02c388e12c00eac278d2e0ea7f3a90c3e7a6d4b3e1f8c11, commit: 0f1e2d3c}`.
    """

    volumes: Mounts | None = None
    """
    Volumes and directories of the host that the job sees. Example: `[checkpoints:/checkpoints]`,
    `["data:/data:ro"]`, `{name: data, path: /data, read_only: true}`, `[/mnt/nvme:/scratch]`.
    """

    resources: Resources | None = None
    """What each node needs of its host. Example: `{cpu: 2.., memory: 8GB.., gpu: A100:80GB:1}`."""

    runtime: Runtime | None = None
    """
    How commands run. `process`: as processes of the host. `container`: in a container.
    Example: `process`.
    """

    compat: (
        Annotated[
            tuple[Literal["slurm"], ...],
            Field(min_length=1),
            BeforeValidator(
                one_or_many, json_schema_input_type=Literal["slurm"] | Entries[Literal["slurm"]]
            ),
            AfterValidator(each_once("entry")),
        ]
        | None
    ) = None
    """
    Another system whose variables and commands programs find. `slurm`: `SLURM_*`, and small
    stand-ins for `srun` and `scontrol`. `SLURM_NTASKS`, `SLURM_NTASKS_PER_NODE` and
    `SLURM_CPUS_PER_TASK` of `env` say how many tasks there are. Example: `slurm`.
    """

    fleets: Fleets | None = None
    """The fleets it may run on; any if not said. Example: `[local]`, `[vision/gpus]`."""

    instances: Instances | None = None
    """The hosts it may run on. Example: `[gpus-0]`, `[{fleet: gpus, instance: 0}]`."""

    queue: Name | None = None
    """The queue it waits in, which says where it may run. Example: `batch`."""

    pack: TopologyLevel | None = None
    """Place its nodes within one: a level of the hosts' topology. Example: `switch`."""

    spread: TopologyLevel | None = None
    """Place each of its nodes in another one: a level of the hosts' topology. Example: `rack`."""

    creation_policy: Literal["reuse", "reuse-or-create"] | None = None
    """
    Whether hosts may be made for it. `reuse`: only hosts that there are. `reuse-or-create`: new
    ones as well. Example: `reuse`.
    """

    startup_order: Literal["any", "master-first", "workers-first"] | None = None
    """
    In which order its nodes start. `any`: all at once. `master-first`: the first one, then the
    others. `workers-first`: the first one last. Example: `workers-first`.
    """

    stop_criteria: Literal["all-done", "master-done"] | None = None
    """
    When a run on several nodes is over. `all-done`: when all of them have ended. `master-done`:
    when the first one has. Example: `master-done`.
    """

    profile: Name | None = None
    """The profile whose fields hold where the run says nothing. Example: `spot`."""

    priority: Annotated[Whole, Field(ge=0, le=100)] | None = None
    """From 0 to 100; higher first. Example: `50`."""

    begin: Moment | None = None
    """When it may start at the earliest, with the time zone. Example: `2026-12-24T18:00Z`."""

    deadline: Moment | None = None
    """When it has to have ended, with the time zone. Example: `2026-12-31T23:59Z`."""

    schedule: Schedule | None = None
    """When it is started again and again. Example: `{cron: 30 2 * * mon-fri}`."""

    max_duration: Limit | None = None
    """How long an attempt may run before it is ended, or `off`. Example: `2h`."""

    stop_duration: Offable | None = None
    """
    How long it may take to end after it was told to, before it is killed; `off`: as long as it
    takes. Example: `30s`.
    """

    checkpoint: Checkpoint | None = None
    """A signal ahead of the end, for programs that save their state. Example: `{signal: USR1, lead: 5m}`."""

    utilization_policy: UtilizationPolicy | None = None
    """How busy its GPUs have to be for it to go on. Example: `{min_gpu_utilization: 10, time_window: 1h}`."""

    on_silence: SilenceSpec | None = None
    """
    What a job does whose host nobody reaches: `wait`, or `stop after` a time.
    Example: `stop after 10m`, `wait`.
    """

    retry: RetrySpec | None = None
    """When a failed attempt is followed by another. Example: `true`, `{on: [error], max_attempts: 3}`."""

    depends_on: DependsOnSpec | None = None
    """
    Runs to wait for. Example: `train`, `[train, {run: evaluate, when: finished}]`,
    `{when: any, runs: [one, two]}`.
    """

    on_upstream_change: Literal["note", "rerun"] | None = None
    """
    What happens when a run it waited for has run again. `note`: it is shown as out of date.
    `rerun`: it runs again as well. Example: `note`.
    """

    concurrency: ConcurrencySpec | None = None
    """How many run at a time. Example: `{group: gpu-tests, limit: 1}`."""

    state: (
        Annotated[
            WantedState | dict[str, WantedState],
            # Not as a union: a wrong choice is then told once, and as that of a choice.
            GetPydanticSchema(
                lambda _, handler: handler(Annotated[WantedState, WrapValidator(_wanted_state)])
            ),
            WithJsonSchema({"anyOf": [_STATE, {"type": "object", "additionalProperties": _STATE}]}),
        ]
        | None
    ) = None
    """
    Whether it shall run. `running`: run to its end. `stopped`: ended if it runs, its record
    kept; of single elements of a sweep or an array, by what stands in their brackets, where the last entry that
    names an element counts. Example: `stopped`, `{3-7: stopped}`.
    """

    on_change: Literal["hold", "restart", "after-finish"] | None = None
    """
    What a change of its execution does while it runs. `hold`: nothing before somebody allows
    it. `restart`: ends it and runs it again. `after-finish`: runs it again once it has ended.
    Example: `after-finish`.
    """

    rerun: (
        Annotated[
            int | dict[str, int],
            PlainValidator(_rerun),
            WithJsonSchema({"anyOf": [_COUNT, {"type": "object", "additionalProperties": _COUNT}]}),
        ]
        | None
    ) = None
    """
    Run again when this number goes above the highest it ever was; of single elements of a sweep
    or an array, by what stands in their brackets. Example: `1`, `{lr=0.1: 1}`.
    """

    def is_set(self, name: str) -> bool:
        """Whether a field says something: not nothing, not `false`, and no empty list."""
        return getattr(self, name, None) not in {None, False, ()}

    def to_canonical(self) -> dict[str, Any]:
        """
        The run as every element has it: without its element's values, and without `files`,
        whose digests are the tree's to say.
        """
        canonical = super().to_canonical()
        if "volumes" in canonical:
            # A mount inside another one has to come after it, and nothing else is said by order.
            canonical["volumes"].sort(key=lambda mount: mount["path"])
        return canonical

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        yield from mount_problems(self.volumes or ())
        yield from code_problems(self.code, self.working_dir)
        yield from source_problems(self.is_set)
        yield from warn_in_clear(
            [(("registry_auth",), self.registry_auth)],
            "Declare a secret, and write `${{ secrets.NAME }}`.",
        )
        yield from warn_of_secrets(self.env)
        yield from warn_of_passwords(self.repos or ())
        if self.compat:
            yield from slurm_problems(self.env or {})
        if self.checkpoint and self.max_duration and self.checkpoint.lead >= self.max_duration:
            yield Problem(
                "contradiction",
                ("checkpoint", "lead"),
                "The signal would be sent before the run starts: `lead` is not shorter than `max_duration`.",
                "Shorten `lead`.",
            )
        yield from self._time_problems()

    def _time_problems(self) -> Iterator[Problem]:
        if self.begin is not None and self.deadline is not None and self.deadline <= self.begin:
            yield Problem(
                "contradiction",
                ("deadline",),
                "It would have to end before it may start: `deadline` is not after `begin`.",
                "Swap the two.",
            )
        if self.pack is not None and self.pack == self.spread:
            yield Problem(
                "contradiction",
                ("spread",),
                f"Its nodes cannot be within one `{self.pack}` and in different ones.",
                "Remove one of the two.",
                at_key=True,
            )

    def _needs_commands(self) -> Iterator[Problem]:
        """For runs of which each node does the same."""
        if not self.is_set("commands") and self.image is None:
            yield Problem(
                "missing-field",
                (),
                "`commands` is missing.",
                "Add `commands:` with a list of shell commands.",
                at_key=True,
                for_lack_of=("commands", "image", "groups", "replicas"),
            )

    def beyond(self) -> Iterator[Problem]:
        yield from super().beyond()
        yield from mounts_beyond(self.volumes or ())
        yield from files_beyond(self.files or ())
        yield from without_value(self.env)
        if self.compat:
            yield from slurm_beyond(
                getattr(self, "nodes", None), getattr(self, "commands", None) or ()
            )
        for name, detail in self._unbuilt_values():
            yield not_carried_out((name,), detail, "A plan blocks it until then.")
        if self.resources is not None and self.resources.cpu and self.resources.cpu.arch:
            yield not_carried_out(
                ("resources", "cpu"),
                "Choosing hosts by their architecture is not supported yet.",
                "Name fleets with that architecture in `fleets`.",
            )

    def _unbuilt_values(self) -> Iterator[tuple[str, str]]:
        """Fields with a value other than the supported one."""
        if self.runtime == "container":
            yield "runtime", "Containers are not supported yet: runs are processes of the host."
        if self.stop_duration == OFF:
            yield "stop_duration", "Waiting without limit for a run to end is not supported yet."
        if self.on_silence is not None and self.on_silence.action != "wait":
            yield (
                "on_silence",
                "Ending jobs on hosts that do not answer is not supported yet: they keep running.",
            )
        if self.startup_order not in {None, "any"}:
            yield (
                "startup_order",
                "Another order is not supported yet: all nodes of a run start at once.",
            )
        if self.stop_criteria not in {None, "all-done"}:
            yield (
                "stop_criteria",
                "Other criteria are not supported yet: a run ends when all of its nodes have ended.",
            )
        if self.on_upstream_change == "rerun":
            yield "on_upstream_change", "Automatic re-runs are not supported yet."
        foreign = [name for name in self.fleets or () if "/" in name]
        if foreign:
            yield (
                "fleets",
                f"{shown(foreign[0])} belongs to another project, which is not supported yet.",
            )
