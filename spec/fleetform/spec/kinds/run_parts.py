"""
The parts of a run: mounts, files, retry, dependencies, limits.

Each accepts dstack's short spelling and its own mapping, and is a value of one meaning from
then on.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
)

from fleetform.spec.kinds.amounts import Duration
from fleetform.spec.kinds.base import (
    Flag,
    Model,
    Name,
    Whole,
    each_once,
    one_or_many,
    refuse,
    text_of,
)
from fleetform.spec.kinds.volume import Directory
from fleetform.spec.names import name_problem, nearest, split_element
from fleetform.spec.quantities.ranges import shown, unfit


def environment_variables(value: Any) -> dict[str, str]:
    """`[K=V]` and `{K: V}`, as a mapping of text to text."""
    if isinstance(value, Mapping):
        pairs = [(str(key), text_of(item, f"The variable `{key}`")) for key, item in value.items()]
    elif isinstance(value, list | tuple):
        pairs = [_assignment(item) for item in value]
    else:
        raise refuse("wrong-type", str(unfit(value, "a list, `- LR=0.1`, or a mapping")))
    variables: dict[str, str] = {}
    for name, text in pairs:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII):
            raise refuse(
                "bad-variable",
                f"{shown(name)} cannot be the name of an environment variable.",
                "Use letters, digits and `_`, with no digit in front.",
            )
        if name in variables:
            raise refuse("said-twice", f"The variable `{name}` is set twice.")
        if "\0" in text:
            raise refuse("bad-variable", f"The variable `{name}` contains a null character.")
        variables[name] = text
    return variables


def _assignment(item: Any) -> tuple[str, str]:
    if not isinstance(item, str):
        raise refuse("wrong-type", str(unfit(item, "an assignment, such as `LR=0.1`")))
    name, equals, text = item.partition("=")
    if not equals:
        raise refuse(
            "not-carried-out",
            f"{shown(item)} has no value. Taking one over from whoever applies is not carried"
            " out by this version of fleetform.",
            f"Write `{name.strip() or 'NAME'}=VALUE`.",
        )
    return name, text


Variables = Annotated[
    dict[str, str],
    PlainValidator(environment_variables),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "array",
                    "items": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*="},
                },
                {
                    "type": "object",
                    "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
                    "additionalProperties": {"type": ["string", "number"]},
                },
            ]
        }
    ),
]


class VolumeMount(Model):
    """A volume, and where a job sees it."""

    name: Name
    """The volume. Example: `checkpoints`."""

    path: Directory
    """
    Where the job sees it: absolute, or relative for a link in its working directory.
    Example: `/checkpoints`, `data`.
    """

    read_only: Flag | None = None
    """Whether the job may only read it. Example: `true`."""


def _mount(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    name, colon, path = value.partition(":")
    if name.startswith("/"):
        raise refuse(
            "not-carried-out",
            f"{shown(value)} mounts a directory of the host, which is not carried out by this"
            " version of fleetform.",
            "Declare a volume with that `path:` and mount it by its name.",
        )
    if not colon or not path:
        raise refuse(
            "bad-value",
            f"{shown(value)} does not say where the volume is mounted.",
            f"Write `{name or 'NAME'}:/path`.",
        )
    return {"name": name, "path": path}


class FileEntry(Model):
    """A file or directory beside the document, and where a job finds it."""

    local_path: Annotated[str, Field(min_length=1, max_length=4000)]
    """In the tree, relative to the document's folder. Example: `./train.py`."""

    path: Annotated[str, Field(min_length=1, max_length=4000)] | None = None
    """In the job's working directory; the same as `local_path` if not said. Example: `code`."""

    @property
    def destination(self) -> str:
        return posixpath.normpath(self.path if self.path is not None else self.local_path)


def _file(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    local_path, colon, path = value.partition(":")
    return {"local_path": local_path, "path": path} if colon else {"local_path": local_path}


def _check_file(value: FileEntry) -> FileEntry:
    path = value.destination
    if path.startswith(("/", "~")) or path.split("/")[0] == "..":
        raise refuse(
            "bad-path",
            f"{shown(path)} is not inside the job's working directory.",
            f"Say where it lies there: `{value.local_path}:{posixpath.basename(path) or 'NAME'}`.",
        )
    return value


_EVENTS = ("error", "interruption", "no-capacity", "node-failure", "preemption", "time-limit")
# `retry: true` of dstack is everything that may pass by itself. A time limit does not: the next
# attempt would meet it as well.
_TRUE = tuple(event for event in _EVENTS if event != "time-limit")

Event = Literal["error", "interruption", "no-capacity", "node-failure", "preemption", "time-limit"]


def _add_alias(schema: dict[str, Any]) -> None:
    schema["properties"]["on_events"] = {**schema["properties"]["on"], "x-same-as": "on"}


class Retry(Model):
    """When a failed attempt is followed by another."""

    model_config = ConfigDict(json_schema_extra=_add_alias)

    on: (
        Annotated[
            tuple[Event, ...],
            Field(min_length=1),
            BeforeValidator(one_or_many, json_schema_input_type=Event | list[Event]),
            AfterValidator(each_once("event")),
        ]
        | None
    ) = None
    """
    The events, also spelled `on_events`. If not said: all but `time-limit`, and without
    `error` where `requeue_exit_codes` say which errors count. `error`: its commands failed.
    `interruption`: whatever it ran on was taken away. `no-capacity`: there was no host for it.
    `node-failure`: its host failed. `preemption`: it made room for another run. `time-limit`:
    it met its `max_duration`. Example: `[error, preemption]`.
    """

    max_attempts: Annotated[Whole, Field(ge=1, le=10_000)] | None = None
    """Attempts in all, the first included. Example: `3`."""

    duration: Duration | None = None
    """For how long after submission a new attempt may begin. Example: `48h`."""

    delay: Duration | None = None
    """Pause before the second attempt; it doubles with each further one. Example: `30s`."""

    requeue_exit_codes: (
        Annotated[
            tuple[Annotated[Whole, Field(ge=1, le=255)], ...],
            AfterValidator(each_once("exit code")),
        ]
        | None
    ) = None
    """Exit codes that ask for another attempt. Example: `[75, 130]`."""

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


def _run_reference(value: str) -> str:
    problem = name_problem(split_element(value)[0])
    if problem is not None:
        raise refuse("bad-name", problem)
    return value


class Dependency(Model):
    """One run to wait for, or all elements of a sweep or an array."""

    run: Annotated[str, AfterValidator(_run_reference)]
    """Its name; of one element with its element. Example: `train`, `sweep[lr=0.1]`."""

    when: Literal["succeeded", "failed", "finished", "started"] | None = None
    """
    The state waited for; `succeeded` if not said. `succeeded`: ended well. `failed`: ended
    badly. `finished`: ended, one way or the other. `started`: runs, or has run.
    Example: `finished`.
    """

    each: Flag | None = None
    """Element for element: 3 waits for the other's 3 only. Example: `true`."""


def _dependencies(value: Any) -> Any:
    entries = one_or_many(value)
    if not isinstance(entries, list | tuple):
        raise refuse("wrong-type", str(unfit(value, "a run's name, or a list of names")))
    return [{"run": entry} if isinstance(entry, str) else entry for entry in entries]


class DependsOn(Model):
    """What a run waits for."""

    when: Literal["any", "all"] | None = None
    """
    How many of `runs` are needed; all if not said. `any`: one is enough. `all`: each of them.
    Example: `any`.
    """

    runs: Annotated[
        tuple[Dependency, ...],
        Field(min_length=1),
        BeforeValidator(
            _dependencies, json_schema_input_type=str | Dependency | list[str | Dependency]
        ),
    ]
    """The runs waited for. Example: `[train, {run: evaluate, when: finished}]`."""

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


class Concurrency(Model):
    """How many runs of a group, or elements of this document, run at a time."""

    group: Name | None = None
    """Runs that name the same group share the limit; this document alone if not said. Example: `gpu-tests`."""

    limit: Annotated[Whole, Field(ge=1)]
    """How many at a time. Example: `1`."""


def _concurrency(value: Any) -> Any:
    return {"limit": value} if isinstance(value, int | str) else value


# The signals a program may use to save its state. KILL and STOP cannot be caught.
_SIGNALS = ("ALRM", "CONT", "HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "WINCH", "XCPU")


def _signal(value: str) -> str:
    name = value.upper().removeprefix("SIG")
    if name not in _SIGNALS:
        close = nearest(name, _SIGNALS)
        raise refuse(
            "bad-value",
            f"{shown(value)} is not a signal that a program can be told to save its state by.",
            (f"Did you mean `{close}`? " if close else "") + f"There is {', '.join(_SIGNALS)}.",
        )
    return name


class Checkpoint(Model):
    """A warning before the end, to processes that catch the signal."""

    signal: Annotated[str, AfterValidator(_signal)]
    """The signal, with or without `SIG`. Example: `USR1`."""

    lead: Duration
    """How long before the end it is sent. Example: `5m`."""


Mounts = Annotated[
    tuple[Annotated[VolumeMount, BeforeValidator(_mount)], ...],
    BeforeValidator(
        one_or_many, json_schema_input_type=str | VolumeMount | list[str | VolumeMount]
    ),
]
Files = Annotated[
    tuple[Annotated[FileEntry, BeforeValidator(_file), AfterValidator(_check_file)], ...],
    BeforeValidator(one_or_many, json_schema_input_type=str | FileEntry | list[str | FileEntry]),
]
RetrySpec = Annotated[Retry | None, BeforeValidator(_retry, json_schema_input_type=bool | Retry)]
DependsOnSpec = Annotated[
    DependsOn | None,
    BeforeValidator(
        _depends_on,
        json_schema_input_type=str | Dependency | DependsOn | list[str | Dependency],
    ),
]
ConcurrencySpec = Annotated[
    Concurrency, BeforeValidator(_concurrency, json_schema_input_type=int | Concurrency)
]
