"""Policies of a run: retries, checkpoints, unreachable hosts, idle GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from fleetform.spec.field_facts import Facts, default, unit
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import (
    Entries,
    Flag,
    Model,
    Name,
    Whole,
    add_spellings,
    contradiction,
    each_once,
    listed,
    one_or_many,
    refuse,
)
from fleetform.spec.kinds.resources import Duration
from fleetform.spec.names import name_problem, nearest, split_element
from fleetform.spec.quantities import format_duration
from fleetform.spec.quantities.ranges import shown, unfit

_EVENTS = ("error", "interruption", "no-capacity", "node-failure", "preemption", "time-limit")
# `retry: true` of dstack is everything that may pass by itself. A time limit does not: the next
# attempt would meet it as well.
_TRUE = tuple(event for event in _EVENTS if event != "time-limit")

Event = Literal["error", "interruption", "no-capacity", "node-failure", "preemption", "time-limit"]


def _some_time(seconds: int) -> int:
    if seconds == 0:
        raise refuse(
            "bad-value",
            "No further attempt begins within a duration of 0.",
            "Write a longer one such as `2h`, or remove it for no limit.",
        )
    return seconds


class Retry(Model):
    """When and how often a failed run is attempted again."""

    model_config = ConfigDict(
        json_schema_extra=lambda schema: add_spellings(schema, on_events="on")
    )

    on: Annotated[tuple[Event, ...], *listed(Event, "event")] | None = None
    """
    The events after which the run is attempted again; `on_events` is the same field. Default: all
    except `time-limit`; also without `error` if `requeue_exit_codes` is set. `error`: a command
    failed. `interruption`: the host was taken away. `no-capacity`: no host was available.
    `node-failure`: the host failed. `preemption`: another run took its place. `time-limit`: the
    attempt exceeded `max_duration`. Example: `[error, preemption]`.
    """

    max_attempts: Annotated[Whole, Field(ge=1, le=10_000)] | None = None
    """The largest number of attempts, including the first. Default: no limit. Example: `3`."""

    duration: Annotated[Duration, AfterValidator(_some_time)] | None = None
    """
    The time after submission within which a new attempt may begin. Default: no limit. Example:
    `48h`.
    """

    delay: Duration | None = None
    """
    The delay before the second attempt; it doubles with each further attempt. Default: the second
    attempt starts at once, and the delay grows from 1 second. Example: `30s`.
    """

    requeue_exit_codes: (
        Annotated[
            tuple[Annotated[Whole, Field(ge=1, le=255)], ...],
            Field(min_length=1),
            AfterValidator(each_once("exit code")),
        ]
        | None
    ) = None
    """Exit codes, from 1 to 255, after which the run is attempted again. Example: `[75, 130]`."""

    def to_canonical(self) -> dict[str, Any]:
        canonical = super().to_canonical()
        if self.on is None:
            # What is meant has one spelling; nobody who reads the document has to know the rule.
            coded = self.requeue_exit_codes is not None
            canonical["on"] = [event for event in _TRUE if not (coded and event == "error")]
        return canonical


def _retry(value: Any) -> Any:
    if value is True:
        return {"on": list(_TRUE)}
    if isinstance(value, Mapping) and "on_events" in value:
        if "on" in value:
            raise refuse("said-twice", "`on` and `on_events` are the same field.", "Keep one.")
        return {"on" if key == "on_events" else key: item for key, item in value.items()}
    if isinstance(value, Mapping | Retry) or value is None:
        return value
    if value is False:
        return None
    raise refuse("wrong-type", str(unfit(value, "`true`, or a mapping such as `{on: [error]}`")))


def _check_retry(value: Retry | None) -> Retry | None:
    if value is None:
        return None
    if value.max_attempts == 1:
        raise refuse(
            "contradiction",
            "`max_attempts` counts the first attempt too, so `1` allows no further attempt.",
            "Write `2` or more, or remove `retry`.",
        )
    if value.duration is not None and value.delay and value.duration <= value.delay:
        raise refuse(
            "contradiction",
            "No further attempt begins within `duration`, which is not longer than `delay`.",
            "Write a longer `duration`, or remove it for no limit.",
        )
    return value


RetrySpec = Annotated[
    Retry | None,
    BeforeValidator(_retry, json_schema_input_type=bool | Retry),
    AfterValidator(_check_retry),
]

_HOSTS_ASKED_SECONDS = 600


def host_retry_problems(retry: Retry) -> Iterator[Problem]:
    """Conditions under which runs are attempted again, and the hosts of a fleet are not."""
    for name in ("max_attempts", "delay", "requeue_exit_codes"):
        if getattr(retry, name) is not None:
            yield contradiction(
                ("retry", name),
                "A fleet asks for its hosts again every ten minutes, whatever was tried before.",
                "Remove it; `duration` says for how long.",
            )
    if retry.on not in {None, _TRUE, ("no-capacity",)}:
        yield contradiction(
            ("retry", "on"),
            "A fleet asks for its hosts again after `no-capacity` alone.",
            "Write `on: [no-capacity]`.",
        )
    if retry.duration is not None and retry.duration < _HOSTS_ASKED_SECONDS:
        yield Problem(
            "bad-value",
            ("retry", "duration"),
            "A fleet asks for its hosts again every ten minutes, which is longer.",
            "Write `10m` or more, or remove `retry`.",
        )


# The signals a program may use to save its state. KILL and STOP cannot be caught.
_SIGNALS = ("ALRM", "CONT", "HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "WINCH", "XCPU")


def _signal(value: str) -> str:
    name = value.upper().removeprefix("SIG")
    if name not in _SIGNALS:
        close = nearest(name, _SIGNALS)
        raise refuse(
            "bad-value",
            f"{shown(value)} is not a signal for saving the state of a program.",
            (f"Did you mean `{close}`? " if close else "") + f"There is {', '.join(_SIGNALS)}.",
        )
    return name


class Checkpoint(Model):
    """A signal that is sent before an attempt is ended, so that the program can save its state."""

    signal: Annotated[str, AfterValidator(_signal)]
    """The signal, with or without `SIG`. Example: `USR1`."""

    lead: Duration
    """The time between the signal and the end of the attempt. Example: `5m`."""


# What becomes of a job whose host hears no controller for a while.
# Silence is no proof of an end: a job is waited for. A run may ask for the other choice, at its
# own risk: its host ends the job by itself, and another host may have it once that is certain.
_STOP = re.compile(r"stop\s+after\s+(.+)", re.IGNORECASE)


class Silence(Model):
    """What a job does while its host hears no controller."""

    action: Literal["wait", "stop"]
    """`wait`: the job continues to run. `stop`: the job ends after `after`. Example: `stop`."""

    after: Annotated[Duration, Field(ge=60)] | None = None
    """
    How long the host must have heard no controller, at least one minute. Only for `action: stop`.
    Example: `10m`.
    """


def _silence(value: Any) -> Any:
    if isinstance(value, Mapping | Silence):
        return value
    if not isinstance(value, str):
        raise refuse("wrong-type", str(unfit(value, "`wait`, or `stop after 10m`")))
    stop = _STOP.fullmatch(value.strip())
    if stop is not None:
        return {"action": "stop", "after": stop[1]}
    if value.strip() == "wait":
        return {"action": "wait"}
    raise refuse(
        "bad-value",
        f"{shown(value)} is neither `wait` nor `stop after` a time.",
        "Write for example `stop after 10m`.",
    )


def _check_silence(value: Silence) -> Silence:
    if (value.action == "stop") != (value.after is not None):
        raise refuse(
            "contradiction",
            "`after` sets when to stop, and requires `action: stop`.",
            "Write `stop after 10m`, or `wait`.",
        )
    return value


SilenceSpec = Annotated[
    Silence,
    BeforeValidator(_silence, json_schema_input_type=str | Silence),
    AfterValidator(_check_silence),
]

# Loading a checkpoint takes minutes in which no GPU does anything; dstack has the same bound.
WINDOW_SECONDS_MIN = 300


def _window(value: int) -> int:
    if value < WINDOW_SECONDS_MIN:
        least = format_duration(WINDOW_SECONDS_MIN)
        raise ValueError(
            f"`{format_duration(value)}` is too short: a run that loads its data would be mistaken for idle;"
            f" the least is `{least}`."
        )
    return value


class UtilizationPolicy(Model):
    """The least GPU utilization; a run below it is ended."""

    min_gpu_utilization: Annotated[Whole, Field(le=100), unit("percent")]
    """The least utilization of each GPU, in percent. Example: `10`."""

    time_window: Annotated[Duration, AfterValidator(_window)]
    """
    How long a GPU may stay below `min_gpu_utilization` before the run is ended. Example: `30m`.
    """


# What a run waits for before it starts: other runs, and a limit on runs at a time.


def _run_reference(value: str) -> str:
    problem = name_problem(split_element(value)[0])
    if problem is None:
        return value
    kind, colon, jobs = value.partition(":")
    if colon and kind in WHEN_OF_SLURM:
        raise refuse(
            "bad-name",
            f"{shown(value)} is Slurm's way to wait for jobs by number. fleetform waits for runs by name, and `when` is the state to wait for.",
            " ".join(_in_our_words(kind, job) for job in jobs.split(":")[:_SUGGESTED_MAX]),
        )
    raise refuse("bad-name", problem)


WHEN_OF_SLURM = {
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
    ours = run if kind == "afterok" else f"{{run: {run}, when: {WHEN_OF_SLURM[kind]}}}"
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
