"""
A task: commands that run to their end, once, on one host or several, or as a sweep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.amounts import Duration, Limit
from fleetform.spec.kinds.array import ArraySpec
from fleetform.spec.kinds.base import Document, Name, Whole, each_once, one_or_many, refuse, text_of
from fleetform.spec.kinds.resources import Resources
from fleetform.spec.kinds.run import (
    Checkpoint,
    ConcurrencySpec,
    DependsOnSpec,
    Files,
    Mounts,
    RetrySpec,
    Variables,
)
from fleetform.spec.quantities.ranges import shown, unfit

Scalar = str | int | float | bool


def _commands(value: Any) -> Any:
    if not isinstance(value, str | list | tuple):
        raise refuse("wrong-type", str(unfit(value, "a list of commands")))
    # `- true` is the command of that name, and YAML's truth value by accident only.
    return [
        str(item).lower() if isinstance(item, bool) else text_of(item, "A command")
        for item in one_or_many(value)
    ]


def _shell(value: str) -> str:
    if value in {"sh", "bash"} or (value.startswith("/") and len(value) > 1):
        return value
    raise refuse("bad-value", f"{shown(value)} is not `sh`, `bash` or an absolute path.")


def _working_dir(value: str) -> str:
    if ".." in value.split("/"):
        raise refuse("bad-path", f"{shown(value)} contains `..`.", "Write the path it leads to.")
    return value


def _matrix(value: Any) -> Any:
    if not isinstance(value, Mapping) or not value:
        raise refuse(
            "wrong-type",
            str(unfit(value, "parameters with their values, such as `{lr: [0.1, 0.01]}`")),
        )
    return {key: _axis(key, item) for key, item in value.items()}


def _axis(key: str, value: Any) -> list[Scalar]:
    if not _is_parameter(key):
        raise refuse(
            "bad-name",
            f"{shown(key)} cannot be the name of a parameter.",
            "Use letters, digits and `_`, with no digit in front.",
        )
    values = value if isinstance(value, list | tuple) else [value]
    if not values:
        raise refuse(
            "bad-value", f"The parameter `{key}` has no values.", "Remove it, or give it one."
        )
    for item in values:
        if not isinstance(item, Scalar):
            raise refuse(
                "wrong-type",
                f"A value of `{key}`: {unfit(item, 'text, a number or a truth value')}",
            )
    return list(values)


def _is_parameter(key: str) -> bool:
    # It becomes part of a variable's name, FLEETFORM_MATRIX_LR.
    return key.isascii() and key.isidentifier() and len(key) <= 40


class Task(Document):
    """
    Commands that run to their end.

    Example:
        type: task
        name: train
        commands:
          - python train.py
        resources:
          gpu: A100:80GB:1
    """

    left_out: ClassVar[frozenset[str]] = frozenset({"name", "array", "matrix", "key", "files"})

    type: Literal["task"]
    """The kind of the document: `task`."""

    commands: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        Field(min_length=1),
        BeforeValidator(_commands, json_schema_input_type=str | list[str | int | float | bool]),
    ]
    """
    Shell commands, one after another; the first that fails ends the job.
    Example: `["python train.py --lr ${{ matrix.lr }}"]`.
    """

    shell: Annotated[str, AfterValidator(_shell)] | None = None
    """`sh`, `bash`, or an absolute path. Example: `bash`."""

    env: Variables | None = None
    """Environment variables, as a list or a mapping. Example: `[LR=0.1]`, `{LR: 0.1}`."""

    working_dir: Annotated[str, Field(min_length=1), AfterValidator(_working_dir)] | None = None
    """
    Where commands run: a fresh directory of the job's own if not said, one below it if
    relative. Example: `code`.
    """

    files: Files | None = None
    """
    Files and directories of the tree that lie in the working directory when the job starts.
    Example: `[./train.py, ./configs:conf]`, `{local_path: ./a.py, path: b.py}`.
    """

    volumes: Mounts | None = None
    """Volumes the job sees. Example: `[checkpoints:/checkpoints]`, `{name: data, path: /data, read_only: true}`."""

    resources: Resources | None = None
    """What each node needs of its host. Example: `{cpu: 2.., memory: 8GB.., gpu: A100:80GB:1}`."""

    nodes: Annotated[Whole, Field(ge=1, le=100_000)] | None = None
    """How many hosts at once; all start, or none. Example: `4`."""

    array: ArraySpec | None = None
    """
    Make an element of each index, and behind `%` how many run at a time. The index is
    `$FLEETFORM_ARRAY_INDEX` and `${{ run.index }}`. Example: `1-100:2%10`.
    """

    matrix: (
        Annotated[
            dict[str, list[Scalar]],
            BeforeValidator(_matrix, json_schema_input_type=dict[str, Scalar | list[Scalar]]),
        ]
        | None
    ) = None
    """
    Make an element of each combination of values. Another value makes more elements and leaves
    the others alone. Example: `{lr: [0.1, 0.01], batch: [32, 64]}`.
    """

    key: (
        Annotated[
            tuple[str, ...],
            Field(min_length=1),
            BeforeValidator(one_or_many, json_schema_input_type=str | list[str]),
            AfterValidator(each_once("parameter")),
        ]
        | None
    ) = None
    """
    The parameters of `matrix` that make up an element's name, where not all of them do. What is
    left out may change its value, and the element stays the same. Example: `[lr, seed]`.
    """

    fleets: (
        Annotated[
            tuple[Name, ...],
            Field(min_length=1),
            BeforeValidator(one_or_many, json_schema_input_type=str | list[str]),
            AfterValidator(each_once("fleet")),
        ]
        | None
    ) = None
    """The fleets it may run on; any if not said. Example: `[local]`."""

    priority: Annotated[Whole, Field(ge=0, le=100)] | None = None
    """From 0 to 100; higher first. Example: `50`."""

    max_duration: Limit | None = None
    """How long an attempt may run before it is ended, or `off`. Example: `2h`."""

    stop_duration: Duration | None = None
    """How long it may take to end after it was told to, before it is killed. Example: `30s`."""

    checkpoint: Checkpoint | None = None
    """A signal ahead of the end, for programs that save their state. Example: `{signal: USR1, lead: 5m}`."""

    retry: RetrySpec | None = None
    """When a failed attempt is followed by another. Example: `true`, `{on: [error], max_attempts: 3}`."""

    depends_on: DependsOnSpec | None = None
    """
    Runs to wait for. Example: `train`, `[train, {run: evaluate, when: finished}]`,
    `{when: any, runs: [one, two]}`.
    """

    concurrency: ConcurrencySpec | None = None
    """How many run at a time. Example: `{group: gpu-tests, limit: 1}`."""

    runtime: Literal["process"] | None = None
    """How commands run: as processes of the host. Example: `process`."""

    state: Literal["running", "stopped"] | None = None
    """Whether it shall run. `stopped` ends it, and keeps its record. Example: `stopped`."""

    on_change: Literal["hold", "restart", "after-finish"] | None = None
    """
    What a change of its execution does while it runs: it is held back, ends the run, or waits
    for its end. Example: `after-finish`.
    """

    rerun: Whole | None = None
    """Run again when this number goes above the highest it ever was. Example: `1`."""

    def to_canonical(self) -> dict[str, Any]:
        """
        The task as every element has it: without its element's values, and without `files`,
        whose digests are the tree's to say.
        """
        canonical = super().to_canonical()
        if "volumes" in canonical:
            # A mount inside another one has to come after it, and nothing else is said by order.
            canonical["volumes"].sort(key=lambda mount: mount["path"])
        throttle = self.array.throttle if self.array else None
        if throttle is not None:
            canonical["concurrency"] = {"limit": throttle, **canonical.get("concurrency", {})}
        return canonical

    def problems(self) -> Iterator[Problem]:
        if self.array is not None and self.matrix is not None:
            yield Problem(
                "contradiction",
                ("array",),
                "A task is an array or a sweep, not both.",
                "Make the index a parameter of `matrix`, or remove one of the two.",
                at_key=True,
            )
        yield from self._key_problems()
        yield from self._throttle_problems()
        yield from self._mount_problems()
        if self.checkpoint and self.max_duration and self.checkpoint.lead >= self.max_duration:
            yield Problem(
                "contradiction",
                ("checkpoint", "lead"),
                "The signal would be sent before the run starts: `lead` is not shorter than `max_duration`.",
                "Shorten `lead`.",
            )

    def _key_problems(self) -> Iterator[Problem]:
        parameters = self.matrix or {}
        for name in self.key or ():
            if name not in parameters:
                listed = ", ".join(f"`{key}`" for key in sorted(parameters)) or "none"
                yield Problem(
                    "unknown-parameter",
                    ("key",),
                    f"`matrix` has no parameter {shown(name)}.",
                    f"Its parameters: {listed}.",
                )

    def _throttle_problems(self) -> Iterator[Problem]:
        throttle = self.array.throttle if self.array else None
        limit = self.concurrency.limit if self.concurrency else None
        if throttle is not None and limit is not None and throttle != limit:
            yield Problem(
                "contradiction",
                ("concurrency", "limit"),
                f"`array` lets {throttle} run at a time, and `concurrency` {limit}.",
                "Say it once.",
            )

    def _mount_problems(self) -> Iterator[Problem]:
        seen: set[str] = set()
        for number, mount in enumerate(self.volumes or ()):
            if mount.path in seen:
                yield Problem(
                    "said-twice",
                    ("volumes", number),
                    f"Two volumes are mounted at {shown(mount.path)}; a job could see only one.",
                    "Mount one of them elsewhere.",
                )
            seen.add(mount.path)
