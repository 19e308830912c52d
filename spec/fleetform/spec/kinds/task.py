"""
A task: commands that run to their end, once, on one host or several, or as a sweep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.field_facts import control, execution, identity
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.array import ArraySpec
from fleetform.spec.kinds.base import Entries, Whole, each_once, one_or_many, refuse, storable
from fleetform.spec.kinds.commands import Commands, without_nul
from fleetform.spec.kinds.groups import NodeGroups, name_problems, only_in_groups
from fleetform.spec.kinds.offers import Text
from fleetform.spec.kinds.ports import Ports
from fleetform.spec.kinds.run import Run
from fleetform.spec.kinds.variables import warn_of_secret_parameters
from fleetform.spec.quantities.ranges import shown, unfit

Scalar = str | int | float | bool


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
                f"A value of `{key}`: {unfit(item, 'a string, a number or a boolean')}",
            )
        if isinstance(item, str):
            storable(item)
    return list(values)


def _is_parameter(key: str) -> bool:
    # It becomes part of a variable's name, FLEETFORM_MATRIX_LR.
    return key.isascii() and key.isidentifier() and len(key) <= 40


class Task(Run):
    """
    Commands that run to their end: a batch job, an array or a sweep.

    Example:
        type: task
        name: train
        commands:
          - python train.py
        resources:
          gpu: A100:80GB:1
    """

    left_out: ClassVar[frozenset[str]] = Run.left_out | {"array", "matrix", "key"}

    type: Literal["task"]
    """The kind of the document: `task`."""

    commands: Annotated[Commands | None, execution("agents.host")] = None
    """
    Shell commands, run in order. The first command that fails ends the job. Required unless `image`
    is set, whose own command runs then. Example: `["python train.py --lr ${{ matrix.lr }}"]`.
    """

    entrypoint: Annotated[Text, AfterValidator(without_nul), execution()] | None = None
    """
    The entry point of the container, in place of the one of the image. Default: the entry point of
    the image. Example: `/bin/bash`.
    """

    # A job listens on its host, whoever is let through to it.
    ports: Annotated[Ports | None, control(essential=False)] = None
    """
    Ports on which the programs listen. `LOCAL:REMOTE` also names the local port that is forwarded
    to it. Example: `[6006, "8080:80"]`.
    """

    nodes: Annotated[Whole, Field(ge=1, le=100_000), execution("schedule", default=1)] | None = None
    """Number of hosts. All nodes start together, or none does. Example: `4`."""

    groups: Annotated[NodeGroups | None, execution()] = None
    """
    Groups of nodes with different commands or resources, in place of `nodes`, `commands` and
    `ports`. Example: `[{name: learner, commands: [python learn.py]}, {name: actors, nodes: 8,
    commands: [python act.py]}]`.
    """

    array: Annotated[ArraySpec | None, identity("spec.expand")] = None
    """
    Indices of an array: each index is an element, which is a run of its own. A number behind `%`
    limits how many elements run at a time. Commands read the index as `$FLEETFORM_ARRAY_INDEX` or
    `${{ run.index }}`. Example: `1-100:2%10`.
    """

    matrix: (
        Annotated[
            dict[str, list[Scalar]],
            BeforeValidator(_matrix, json_schema_input_type=dict[str, Scalar | list[Scalar]]),
            execution("agents.host"),
        ]
        | None
    ) = None
    """
    Parameters of a sweep: each combination of values is an element, which is a run of its own.
    Another value adds elements and changes no existing element. `0.10` is the same value as `0.1`,
    and `1` the same as `"1"`; `1` and `1.0` are different values, because a program can tell them
    apart. Put no secrets here: values of parameters whose names mean a secret, such as `api_token`,
    appear as `sealed-…` in names of elements. Example: `{lr: [0.1, 0.01], batch: [32, 64]}`.
    """

    key: (
        Annotated[
            tuple[str, ...],
            Field(min_length=1),
            BeforeValidator(one_or_many, json_schema_input_type=str | Entries[str]),
            AfterValidator(each_once("parameter")),
            identity("spec.expand"),
        ]
        | None
    ) = None
    """
    The parameters of `matrix` that form the name of an element. The other parameters may change
    without making it another element. Default: all parameters. Example: `[lr, seed]`.
    """

    def to_canonical(self) -> dict[str, Any]:
        canonical = super().to_canonical()
        throttle = self.array.throttle if self.array else None
        if throttle is not None:
            canonical["concurrency"] = {"limit": throttle, **canonical.get("concurrency", {})}
        return canonical

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.groups is None:
            yield from self._needs_commands()
        if self.array is not None and self.matrix is not None:
            yield Problem(
                "contradiction",
                ("array",),
                "A task is an array or a sweep, not both.",
                "Make the index a parameter of `matrix`, or remove one of the two.",
                at_key=True,
            )
        yield from warn_of_secret_parameters(self.matrix or ())
        yield from self._group_problems()
        yield from self._key_problems()
        yield from self._throttle_problems()

    def _group_problems(self) -> Iterator[Problem]:
        groups = self.groups or ()
        yield from only_in_groups(
            self.is_set, ("nodes", "commands", "ports", "entrypoint"), "each group has its own"
        )
        yield from name_problems(groups)
        for number, group in enumerate(groups):
            if not group.commands and self.image is None:
                yield Problem(
                    "missing-field",
                    ("groups", number),
                    "The group has no `commands`, and the task has no `image`.",
                    "Add `commands:` with a list of shell commands.",
                    for_lack_of=("image",),
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
                f"`array` limits the elements at a time to {throttle}, and `concurrency` to {limit}.",
                "Keep one of the two.",
            )
