"""
What every run may say, whether it ends by itself, is worked in, or serves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.amounts import Duration, Limit
from fleetform.spec.kinds.base import Document, Name, Whole, each_once, one_or_many, refuse
from fleetform.spec.kinds.resources import Resources
from fleetform.spec.kinds.run_parts import (
    Checkpoint,
    ConcurrencySpec,
    DependsOnSpec,
    Files,
    Mounts,
    RetrySpec,
    Variables,
)
from fleetform.spec.quantities.ranges import shown


def _shell(value: str) -> str:
    if value in {"sh", "bash"} or (value.startswith("/") and len(value) > 1):
        return value
    raise refuse("bad-value", f"{shown(value)} is not `sh`, `bash` or an absolute path.")


def _working_dir(value: str) -> str:
    if ".." in value.split("/"):
        raise refuse("bad-path", f"{shown(value)} contains `..`.", "Write the path it leads to.")
    return value


class Run(Document):
    """
    What tasks, dev environments and services have in common.

    They are one kind of resource with one space of names, because a run may wait for any of them
    and they share the fleets.
    """

    left_out: ClassVar[frozenset[str]] = frozenset({"name", "files"})

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
    """How commands run. `process`: as processes of the host. Example: `process`."""

    state: Literal["running", "stopped"] | None = None
    """
    Whether it shall run. `running`: run to its end. `stopped`: ended if it runs, its record
    kept. Example: `stopped`.
    """

    on_change: Literal["hold", "restart", "after-finish"] | None = None
    """
    What a change of its execution does while it runs. `hold`: nothing before somebody allows
    it. `restart`: ends it and runs it again. `after-finish`: runs it again once it has ended.
    Example: `after-finish`.
    """

    rerun: Whole | None = None
    """Run again when this number goes above the highest it ever was. Example: `1`."""

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
        yield from self._mount_problems()
        if self.checkpoint and self.max_duration and self.checkpoint.lead >= self.max_duration:
            yield Problem(
                "contradiction",
                ("checkpoint", "lead"),
                "The signal would be sent before the run starts: `lead` is not shorter than `max_duration`.",
                "Shorten `lead`.",
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
