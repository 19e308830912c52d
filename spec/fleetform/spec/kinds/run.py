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
    Field,
    GetPydanticSchema,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

from fleetform.spec.field_facts import Facts, control, execution
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import (
    Flag,
    Name,
    Whole,
    contradiction,
    listed,
    not_supported,
    read_by,
    refuse,
    warn_in_clear,
)
from fleetform.spec.kinds.commands import (
    Commands,
    Variables,
    slurm_beyond,
    slurm_problems,
    warn_of_secrets,
    without_nul,
    without_value,
)
from fleetform.spec.kinds.container import (
    Image,
    Python,
    RegistryAuth,
    Runtime,
    User,
    source_problems,
)
from fleetform.spec.kinds.files import (
    Code,
    Files,
    Repos,
    code_problems,
    files_beyond,
    warn_of_passwords,
)
from fleetform.spec.kinds.offers import Fleets, Instances, Offable, OfferChoice, Text
from fleetform.spec.kinds.resources import Limit, Resources
from fleetform.spec.kinds.run_policies import (
    Checkpoint,
    ConcurrencySpec,
    DependsOnSpec,
    RetrySpec,
    SilenceSpec,
    UtilizationPolicy,
)
from fleetform.spec.kinds.schedules import Moment, Schedule
from fleetform.spec.kinds.volume import Mounts, mount_problems, mounts_beyond
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
    The fields of every run: task, dev environment or service. They are one kind of resource with
    one set of names, because a run may depend on any other run and they share the fleets.
    """

    left_out: ClassVar[frozenset[str]] = frozenset({"name", "files"})

    # How many of it there are, after what, and in which surroundings: then what it does there.
    leading: ClassVar[tuple[str, ...]] = (
        *("nodes", "groups", "array", "matrix", "key", "concurrency", "depends_on"),
        *("image", "registry_auth", "python", "nvcc", "docker", "repos", "env", "working_dir"),
        "setup",
    )

    # An element's own value. Adding one to the document adds an element and changes no other.
    other_facts: ClassVar[Mapping[str, tuple[Facts, ...]]] = {"index": (execution("agents.host"),)}

    image: Annotated[Image | None, execution()] = None
    """
    The image of the container. Default: a base image with Python and CUDA. Example:
    `pytorch/pytorch:2.7.0-cuda12.8-cudnn9-runtime`.
    """

    registry_auth: Annotated[RegistryAuth | None, execution()] = None
    """
    The credentials for a private registry. Default: none. Example: `{username: $oauthtoken,
    password: "${{ secrets.ngc_api_key }}"}`.
    """

    python: Annotated[Python | None, execution()] = None
    """
    The version of Python in the base image. It excludes `image`. Quote it: `3.10` without quotes is
    the number 3.1. Example: `"3.12"`.
    """

    nvcc: Annotated[Flag | None, execution(default=False)] = None
    """Whether the base image contains the CUDA compiler of NVIDIA. Example: `true`."""

    docker: Annotated[Flag | None, execution(default=False)] = None
    """Whether the run can start containers of its own. Example: `true`."""

    privileged: Annotated[Flag | None, execution(default=False)] = None
    """Whether the container has all privileges of the host. Example: `true`."""

    user: Annotated[User | None, execution()] = None
    """
    The user, and optionally the group behind a colon, that the container runs as. Default: the user
    of the image. Example: `ubuntu`, `1000:1000`.
    """

    # dstack ignores this and `setup` as well; a dev environment's `setup` is part of its `init`.
    home_dir: Annotated[Text | None, control(essential=False)] = None
    """Accepted for old documents of dstack, and ignored there too. Example: `/root`."""

    shell: (
        Annotated[
            str,
            AfterValidator(without_nul),
            AfterValidator(_shell),
            execution("agents.host", default="sh"),
        ]
        | None
    ) = None
    """The shell that runs the commands: `sh`, `bash`, or an absolute path. Example: `bash`."""

    env: Annotated[Variables | None, execution("agents.host")] = None
    """
    Environment variables of the run, as a list or a mapping. In a list, a name without a value
    takes the value from the environment of the submitting shell. Example: `[LR=0.1, HF_TOKEN]`,
    `{LR: 0.1}`.
    """

    working_dir: (
        Annotated[
            str,
            Field(min_length=1),
            AfterValidator(without_nul),
            AfterValidator(_working_dir),
            execution("agents.host"),
        ]
        | None
    ) = None
    """
    The directory in which the commands run. A relative path is inside the directory of the job.
    Default: the directory of the job, which is new for each job. Example: `code`.
    """

    setup: Annotated[Commands | None, control(essential=False)] = None
    """
    Accepted for old documents of dstack, and ignored there too. Example: `[pip install torch]`.
    """

    dstack: Annotated[Flag | None, execution(default=False)] = None
    """Whether programs of the run can reach the server that manages it. Example: `true`."""

    repos: Annotated[Repos | None, execution()] = None
    """
    The git repository that is checked out for the commands. Example: `[.]`, `[".:code"]`, `[{url:
    "https://git.example.com/vision/models", branch: main}]`.
    """

    # How `repos` are fetched, and not what is fetched.
    single_branch: Annotated[Flag | None, control(essential=False)] = None
    """Whether only one branch of the repository is fetched. Example: `true`."""

    files: Annotated[Files | None, execution("agents.host")] = None
    """
    Files and directories of the configuration that are copied into the working directory before the
    job starts, as `LOCAL_PATH` or `LOCAL_PATH:PATH`. A change of their content is a change of the
    run. Example: `[./train.py, ./configs:conf]`, `{local_path: ./a.py, path: b.py}`.
    """

    code: Annotated[Code | None, execution("agents.host")] = None
    """
    A working copy, frozen at submission, that is unpacked into the directory of the job. `fleetform
    submit` writes this field. Example: `{sha256:
    8c7dd922ad47494fc02c388e12c00eac278d2e0ea7f3a90c3e7a6d4b3e1f8c11, commit: 0f1e2d3c}`.
    """

    volumes: Annotated[Mounts | None, execution("agents.host")] = None
    """
    Volumes, and directories of hosts, that are mounted into the job, as `NAME:PATH`, `NAME:PATH:ro`
    or a mapping. Example: `[checkpoints:/checkpoints]`, `["data:/data:ro"]`, `{name: data, path:
    /data, read_only: true}`, `[/mnt/nvme:/scratch]`.
    """

    resources: Annotated[Resources | None, execution("schedule")] = None
    """
    The resources that each node requires. Default: no requirement; `sharing` of the fleet decides
    what the job receives. Example: `{cpu: 2.., memory: 8GB.., gpu: A100:80GB:1}`.
    """

    runtime: Annotated[Runtime | None, execution("agents.host", default="process")] = None
    """
    How the commands run. `process`: as processes of the host. `container`: in a container. Example:
    `process`.
    """

    compat: (
        Annotated[
            tuple[Literal["slurm"], ...],
            *listed(Literal["slurm"], "entry"),
            execution("agents.host"),
        ]
        | None
    ) = None
    """
    Provide the variables and commands of another system. `slurm`: set `SLURM_*`, and provide
    replacements of `srun` and `scontrol`. `SLURM_NTASKS`, `SLURM_NTASKS_PER_NODE` and
    `SLURM_CPUS_PER_TASK` of `env` set the number of tasks. Example: `slurm`.
    """

    fleets: Annotated[Fleets | None, execution("schedule")] = None
    """
    The fleets on which the run may start. Default: all fleets. Example: `[local]`, `[vision/gpus]`.
    """

    instances: Annotated[Instances | None, execution()] = None
    """
    The hosts on which the run may start. Default: all hosts of the allowed fleets. Example:
    `[gpus-0]`, `[{fleet: gpus, instance: 0}]`.
    """

    queue: Annotated[Name | None, control("schedule")] = None
    """
    The queue of the run. It decides on which fleets the run may start. Default: none. Example:
    `batch`.
    """

    pack: Annotated[TopologyLevel | None, execution()] = None
    """
    A level of the topology, such as `switch`, within one of which all nodes of the run are placed.
    Default: anywhere. Example: `switch`.
    """

    spread: Annotated[TopologyLevel | None, execution()] = None
    """
    A level of the topology, such as `rack`; each node of the run is placed in a different one.
    Default: anywhere. Example: `rack`.
    """

    creation_policy: Annotated[
        Literal["reuse", "reuse-or-create"] | None, control("schedule", default="reuse-or-create")
    ] = None
    """
    Whether a fleet whose `nodes` are a range creates hosts for the run. `reuse`: use only hosts that
    exist or are being created. `reuse-or-create`: create hosts when none is free. Example: `reuse`.
    """

    startup_order: Annotated[
        Literal["any", "master-first", "workers-first"] | None,
        execution("lifecycle", default="any"),
    ] = None
    """
    The order in which the nodes start. `any`: all at once. `master-first`: node 0 first, then the
    others. `workers-first`: node 0 last. Example: `workers-first`.
    """

    stop_criteria: Annotated[
        Literal["all-done", "master-done"] | None, execution("lifecycle", default="all-done")
    ] = None
    """
    When a run on several nodes ends. `all-done`: when all nodes have ended. `master-done`: when
    node 0 has ended. Example: `master-done`.
    """

    profile: Annotated[Name | None, control("spec.overlay")] = None
    """The profile that supplies fields which the run does not set. Example: `spot`."""

    priority: Annotated[Whole, Field(ge=0, le=100), control("schedule", default=0)] | None = None
    """
    The priority, from 0 to 100. Among waiting runs, a higher number starts first. Example: `50`.
    """

    begin: Annotated[Moment | None, control()] = None
    """
    The earliest start, as a time with its time zone. Default: at once. Example:
    `2026-12-24T18:00Z`.
    """

    deadline: Annotated[Moment | None, control()] = None
    """
    The time by which the run must have ended, with its time zone. Default: none. Example:
    `2026-12-31T23:59Z`.
    """

    schedule: Annotated[Schedule | None, control()] = None
    """
    Times at which the run starts repeatedly. Default: it runs once. Example: `{cron: 30 2 * *
    mon-fri}`.
    """

    max_duration: Annotated[Limit | None, control("agents.host")] = None
    """
    The longest time that an attempt may run, such as `90m` or `2h`; it is ended after that. `off`,
    the default: no limit. Example: `2h`.
    """

    stop_duration: Annotated[Offable | None, control("agents.host", default="10s")] = None
    """
    The time between the request to stop (SIGTERM) and SIGKILL. `off`: never kill. Example: `30s`.
    """

    checkpoint: Annotated[Checkpoint | None, control("agents.host")] = None
    """
    A signal that is sent before an attempt is ended, so that the program can save its state.
    Default: none. Example: `{signal: USR1, lead: 5m}`.
    """

    # It frees GPUs for others; the run itself is the same.
    utilization_policy: Annotated[UtilizationPolicy | None, control(essential=False)] = None
    """
    The least GPU utilization; a run below it is ended. Default: none. Example:
    `{min_gpu_utilization: 10, time_window: 1h}`.
    """

    on_silence: Annotated[SilenceSpec | None, control("lifecycle", default="wait")] = None
    """
    What a job does while its host hears no controller: `wait`, or `stop after` a duration of at least
    one minute. A change counts for later attempts. Example: `stop after 10m`, `wait`.
    """

    retry: Annotated[RetrySpec | None, control("lifecycle")] = None
    """
    When and how often a failed run is attempted again. Default: no retry. `true`: after every event
    except `time-limit`. Example: `true`, `{on: [error], max_attempts: 3}`.
    """

    depends_on: Annotated[DependsOnSpec | None, control("lifecycle")] = None
    """
    The runs that this run waits for, each until it has succeeded unless `when` says otherwise.
    Default: none. Example: `train`, `[train, {run: evaluate, when: finished}]`, `{when: any, runs:
    [one, two]}`.
    """

    on_upstream_change: Annotated[
        Literal["note", "rerun"] | None, control("lifecycle", default="note")
    ] = None
    """
    What happens after a run of `depends_on` has re-run. `note`: the result of this run is shown as
    outdated. `rerun`: this run re-runs too. Example: `note`.
    """

    concurrency: Annotated[ConcurrencySpec | None, control("schedule")] = None
    """
    A limit on the number of runs or elements that run at a time. Default: no limit. Example:
    `{group: gpu-tests, limit: 1}`.
    """

    state: (
        Annotated[
            WantedState | dict[str, WantedState],
            # Not as a union: a wrong choice is then told once, and as that of a choice.
            GetPydanticSchema(
                lambda _, handler: handler(Annotated[WantedState, WrapValidator(_wanted_state)])
            ),
            WithJsonSchema({"anyOf": [_STATE, {"type": "object", "additionalProperties": _STATE}]}),
            control("lifecycle", default="running"),
        ]
        | None
    ) = None
    """
    The desired state: `running` or `stopped`, for the whole run or, as a mapping, for elements of a
    sweep or an array by the text in their brackets. In a mapping, the last matching entry applies.
    `running`: run to the end. `stopped`: end the run, also before it starts, and keep its record.
    Example: `stopped`, `{3-7: stopped}`.
    """

    on_change: Annotated[
        Literal["hold", "restart", "after-finish"] | None, control("plan", default="hold")
    ] = None
    """
    What a plan does when a changed field makes a running run re-run. `hold`: block the change until
    `fleetform apply --allow-restart` permits it. `restart`: end the run and re-run it; this applies
    once a plan has applied `on_change: restart`. `after-finish`: re-run it after it has ended.
    Example: `after-finish`.
    """

    rerun: (
        Annotated[
            int | dict[str, int],
            *read_by(
                _rerun, {"anyOf": [_COUNT, {"type": "object", "additionalProperties": _COUNT}]}
            ),
            control("plan", default=0),
        ]
        | None
    ) = None
    """
    A counter: a number above its highest earlier value makes the run re-run. A mapping sets it for
    elements of a sweep or an array, by the text in their brackets. Example: `1`, `{lr=0.1: 1}`.
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
        yield from mount_problems(self.volumes or (), in_image=self.image is not None)
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
            yield contradiction(
                "spread",
                f"Its nodes cannot be within one `{self.pack}` and in different ones.",
                "Remove one of the two.",
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
        for name, detail in self._unsupported_values():
            yield not_supported((name,), detail, "Until then, plans block it.")
        if self.resources is not None and self.resources.cpu and self.resources.cpu.arch:
            yield not_supported(
                ("resources", "cpu"),
                "Choosing hosts by their architecture is not supported yet.",
                "Name fleets with that architecture in `fleets`.",
            )

    def _unsupported_values(self) -> Iterator[tuple[str, str]]:
        """Fields with a value other than the supported one."""
        if self.runtime == "container":
            yield "runtime", "Containers are not supported yet: runs are processes of the host."
        if self.stop_duration == OFF:
            yield "stop_duration", "Waiting without limit for a run to end is not supported yet."
        if self.on_upstream_change == "rerun":
            yield "on_upstream_change", "Automatic re-runs are not supported yet."
        foreign = [name for name in self.fleets or () if "/" in name]
        if foreign:
            yield (
                "fleets",
                f"{shown(foreign[0])} belongs to another project, which is not supported yet.",
            )
