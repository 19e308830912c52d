"""What a run waits for before it starts: other runs, and a limit on runs at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.field_facts import Facts, default
from fleetform.spec.kinds.base import Entries, Flag, Model, Name, Whole, one_or_many, refuse
from fleetform.spec.names import name_problem, split_element
from fleetform.spec.quantities.ranges import shown, unfit


def _run_reference(value: str) -> str:
    problem = name_problem(split_element(value)[0])
    if problem is None:
        return value
    kind, colon, jobs = value.partition(":")
    if colon and kind in _OF_SLURM:
        raise refuse(
            "bad-name",
            f"{shown(value)} is Slurm's way to wait for jobs by number. fleetform waits for runs by name, and `when` is the state to wait for.",
            " ".join(_in_our_words(kind, job) for job in jobs.split(":")[:_SUGGESTED_MAX]),
        )
    raise refuse("bad-name", problem)


_OF_SLURM = {
    "after": "started",
    "afterany": "finished",
    "aftercorr": "succeeded",
    "afternotok": "failed",
    "afterok": "succeeded",
}
"""What each of Slurm's dependencies is as `when` (sbatch, `--dependency`)."""

_SUGGESTED_MAX = 3


def _in_our_words(kind: str, job: str) -> str:
    name = job.partition("+")[0]
    is_name = name_problem(name) is None
    run = name if is_name else "NAME"
    ours = run if kind == "afterok" else f"{{run: {run}, when: {_OF_SLURM[kind]}}}"
    if kind == "aftercorr":
        ours = f"{{run: {run}, each: true}}"
    return f"Write `{ours}`." if is_name else f"Write `{ours}` with the name of run {shown(name)}."


class Dependency(Model):
    """A run to wait for, or all elements of a sweep or an array."""

    run: Annotated[str, AfterValidator(_run_reference)]
    """
    The name of the run. A name with brackets is one element of a sweep or an array; without
    brackets, all its elements. Example: `train`, `sweep[lr=0.1]`.
    """

    when: Literal["succeeded", "failed", "finished", "started"] | None = None
    """
    The state to wait for. Default: `succeeded`. `succeeded`: the run succeeded. `failed`: the run
    failed. `finished`: the run ended, in success or failure. `started`: the run has started.
    Example: `finished`.
    """

    each: Flag | None = None
    """
    Whether each element waits only for the element with the same index or parameters, as Slurm's
    `aftercorr`. Example: `true`.
    """


def _dependencies(value: Any) -> Any:
    entries = one_or_many(value)
    if not isinstance(entries, list | tuple):
        raise refuse("wrong-type", str(unfit(value, "a run's name, or a list of names")))
    return [{"run": entry} if isinstance(entry, str) else entry for entry in entries]


class DependsOn(Model):
    """The runs that a run waits for."""

    # Of a single run in place of this mapping.
    other_facts: ClassVar[Mapping[str, tuple[Facts, ...]]] = {"each": (default(False),)}

    when: Literal["any", "all"] | None = None
    """
    How many of `runs` must reach their state. Default: `all`. `any`: one is enough. `all`: each of
    them. Example: `any`.
    """

    runs: Annotated[
        tuple[Dependency, ...],
        Field(min_length=1),
        BeforeValidator(
            _dependencies, json_schema_input_type=str | Dependency | Entries[str | Dependency]
        ),
    ]
    """
    The runs to wait for: names, or mappings with `run` and `when`. Example: `[train, {run:
    evaluate, when: finished}]`.
    """

    def to_canonical(self) -> dict[str, Any]:
        canonical: dict[str, Any] = {} if self.when is None else {"all": self.when == "all"}
        runs = [dependency.to_canonical() for dependency in self.runs]
        # A set: what is waited for does not depend on the order it is written in.
        canonical["runs"] = sorted(
            runs, key=lambda run: (run["run"], run.get("when", ""), run.get("each", False))
        )
        return canonical


def _depends_on(value: Any) -> Any:
    if isinstance(value, DependsOn) or value is None:
        return value
    is_whole = isinstance(value, Mapping) and "run" not in value
    return value if is_whole else {"runs": value}


DependsOnSpec = Annotated[
    DependsOn | None,
    BeforeValidator(
        _depends_on,
        json_schema_input_type=str | Dependency | DependsOn | list[str | Dependency],
    ),
]


class Concurrency(Model):
    """A limit on the number of runs or elements that run at a time."""

    group: Name | None = None
    """
    The name of the group of runs that share the limit. Default: the elements of this document.
    Example: `gpu-tests`.
    """

    limit: Annotated[Whole, Field(ge=1)]
    """The number of runs or elements that may run at a time. Example: `1`."""


def _concurrency(value: Any) -> Any:
    return {"limit": value} if isinstance(value, int | str) else value


ConcurrencySpec = Annotated[
    Concurrency, BeforeValidator(_concurrency, json_schema_input_type=int | Concurrency)
]
