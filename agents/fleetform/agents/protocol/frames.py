"""
Messages as bytes: the one place where either end meets what the other really sent.

A frame is a length of four bytes, big-endian, and that many bytes of JSON: an object whose
`type` names a class of `messages`. What arrives is not trusted. A frame that is too long, is
no such object, or has a field of the wrong kind raises `FrameError`, and the connection is of
no further use. Two releases understand each other all the same: an unknown field is ignored, a
missing one takes its default, and a message with an unknown type or enum value is `Unknown`, which
its receiver refuses by name.

How a class is read follows from its annotations, whose text is looked up rather than evaluated:
Python 3.9, which this has to run on, cannot evaluate `int | None`. Standard library only.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar, Union, get_args

from fleetform.agents.protocol.host_report import GpuProcess, GpuReport, HostReport
from fleetform.agents.protocol.messages import (
    CAPABILITY_OF_FIELD,
    Cursor,
    FileEntry,
    JobKey,
    JobRecord,
    Mount,
    StartJob,
    ToAgent,
    ToController,
    Unknown,
)
from fleetform.agents.protocol.states import Cause, JobState

__all__ = ["FRAME_BYTES_MAX", "Decoder", "FrameError", "Message", "decode", "encode", "ignored_fields",
           "job_digest", "read_value"]  # fmt: skip

FRAME_BYTES_MAX = 16 << 20
"""A snapshot of 20 000 records has 8 MB; a length beyond this is noise or an attack."""

_LENGTH_BYTES = 4

# What SQLite stores, and so what a ledger could take in.
_INTEGER_MIN, _INTEGER_MAX = -(1 << 63), (1 << 63) - 1

Message = Union[ToAgent, ToController]
T = TypeVar("T")
Reader = Callable[[Any], Any]


class FrameError(ValueError):
    """What arrived is not a message; says in one sentence what is wrong with it."""


class _UnknownValue(FrameError):
    """A value that another release may have added to an enum; the rest of the message is whole."""


# -- out ----------------------------------------------------------------------------------


def encode(message: Message) -> bytes:
    """
    Return the frame of a message.

    Raises:
        FrameError: It is longer than `FRAME_BYTES_MAX`.
    """
    body = _to_bytes({"type": type(message).__name__, **vars(message)})
    if len(body) > FRAME_BYTES_MAX:
        raise FrameError(f"a {type(message).__name__} of {len(body)} bytes is too long for a frame")
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


def job_digest(job: StartJob) -> str:
    """
    Name what a job is, apart from how often its row was committed: SHA-256 in hex.

    Ledger and agent compare by it: the same key with another digest is a conflict. `gen` and
    `go` are left out. So is every field that has its default, and with that a field which one
    of two releases does not know yet.
    """
    said = {
        name: value
        for name, value in vars(job).items()
        if name not in {"gen", "go"} and value != _JOB_DEFAULTS.get(name, _NO_DEFAULT)
    }
    return hashlib.sha256(_to_bytes(said)).hexdigest()


def ignored_fields(job: StartJob, capabilities: Collection[str]) -> list[str]:
    """Name the fields of a job that say something which an agent with these capabilities ignores."""
    return [
        name
        for name, capability in CAPABILITY_OF_FIELD.items()
        if capability not in capabilities and getattr(job, name) != _JOB_DEFAULTS[name]
    ]


def _to_bytes(value: Mapping[str, Any]) -> bytes:
    # ASCII with escapes: a lone surrogate, which is how Python shows a file name that is not
    # UTF-8, survives the way there and back.
    text = json.dumps(
        value, default=_nested_fields, separators=(",", ":"), sort_keys=True, allow_nan=False
    )
    return text.encode("ascii")


def _nested_fields(value: Any) -> Any:
    """Tell `json` what is in a value that it does not know; enums and keys it does."""
    if type(value) is StartJob:
        # A field that an earlier release does not know is sent only where it says something.
        return {
            name: item
            for name, item in vars(value).items()
            if name not in CAPABILITY_OF_FIELD or item != _JOB_DEFAULTS[name]
        }
    if type(value) in _VALUES:
        return vars(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


# -- in -----------------------------------------------------------------------------------


class Decoder:
    """
    Turns pieces of a stream, cut anywhere, into messages.

    Once it has raised, it raises the same again: nobody knows where the next frame begins.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._failure: FrameError | None = None

    def feed(self, data: bytes) -> list[Message | Unknown]:
        """
        Read a piece and return the messages that it completes, in order.

        Raises:
            FrameError: What arrived is not a message; those before it in the piece are lost.
        """
        if self._failure is not None:
            raise self._failure
        self._buffer += data
        try:
            return self._take_messages()
        except FrameError as failure:
            self._failure = failure
            self._buffer.clear()
            raise

    @property
    def within_frame(self) -> bool:
        """Tell whether the stream would end in the middle of a frame."""
        return bool(self._buffer)

    def _take_messages(self) -> list[Message | Unknown]:
        messages: list[Message | Unknown] = []
        begin = 0
        while len(self._buffer) - begin >= _LENGTH_BYTES:
            body = begin + _LENGTH_BYTES
            length = int.from_bytes(self._buffer[begin:body], "big")
            if length > FRAME_BYTES_MAX:
                raise FrameError(
                    f"a frame claims {length} bytes, more than the {FRAME_BYTES_MAX} allowed"
                )
            if len(self._buffer) - body < length:
                break
            begin = body + length
            messages.append(decode(bytes(self._buffer[body:begin])))
        # Once a piece rather than once a message: many small ones come in one piece.
        del self._buffer[:begin]
        return messages


def decode(body: bytes) -> Message | Unknown:
    """
    Read one message from the bytes of a frame without their length.

    Raises:
        FrameError: They are no message.
    """
    try:
        value = json.loads(str(body, "utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a frame is not JSON: {error or 'nested too deeply'}") from error
    kind = value.get("type") if type(value) is dict else None
    if type(kind) is not str:
        raise FrameError(f"a frame has the unknown type {_shown(kind)}")
    reader = _MESSAGES.get(kind)
    if reader is None:
        return Unknown(_request_id(value), f"the message {_shown(kind)} is unknown")
    try:
        message: Message = reader(value)
    except _UnknownValue as problem:
        return Unknown(_request_id(value), str(problem))
    return message


def _request_id(value: Mapping[str, Any]) -> int | None:
    """Return the number that the reply has to bear; None for what is not answered."""
    number = value.get("id")
    return None if number is None else _integer(number)


def read_value(kind: type[T], value: Any) -> T:
    """
    Read a value that travels inside a `Reply`'s body, such as a `HostReport`.

    Raises:
        FrameError: `value` is not one.
    """
    result: T = _VALUES[kind](value)
    return result


def _refuse_constant(name: str) -> None:
    raise FrameError(f"{name} is not a number of JSON")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:40] + "…"


# -- readers of single values -------------------------------------------------------------


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    raise FrameError(f"must be a string, not {_shown(value)}")


def _integer(value: Any) -> int:
    # `type`, not `isinstance`: True is an int to Python.
    if type(value) is int and _INTEGER_MIN <= value <= _INTEGER_MAX:
        return value
    raise FrameError(f"must be a whole number of 64 bits, not {_shown(value)}")


def _flag(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise FrameError(f"must be true or false, not {_shown(value)}")


def _mapping(value: Any) -> dict[str, Any]:
    if type(value) is dict:
        return value
    raise FrameError(f"must be an object, not {_shown(value)}")


def _texts_by_name(value: Any) -> dict[str, str]:
    return {name: _text(item) for name, item in _mapping(value).items()}


def _key(value: Any) -> JobKey:
    if type(value) is not list or len(value) != 3:
        raise FrameError(f"must be [run uid, attempt, rank], not {_shown(value)}")
    return JobKey(_text(value[0]), _integer(value[1]), _integer(value[2]))


def _maybe(reader: Reader) -> Reader:
    return lambda value: None if value is None else reader(value)


def _many(reader: Reader) -> Reader:
    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise FrameError(f"must be a list, not {_shown(value)}")
        return tuple([reader(item) for item in value])

    return read


def _one_of(kind: type[enum.Enum]) -> Reader:
    members = {member.value: member for member in kind}

    def read(value: Any) -> enum.Enum:
        member = members.get(value) if type(value) is str else None
        if member is None:
            problem = _UnknownValue if type(value) is str else FrameError
            raise problem(f"must be one of {', '.join(members)}, not {_shown(value)}")
        return member

    return read


# -- readers of classes -------------------------------------------------------------------

_NO_DEFAULT = object()

_READERS: dict[str, Reader] = {
    "str": _text,
    "int": _integer,
    "bool": _flag,
    "dict[str, Any]": _mapping,
    "dict[str, str]": _texts_by_name,
    "JobKey": _key,
    "JobState": _one_of(JobState),
    "Cause": _one_of(Cause),
}
"""By annotation, as `messages` writes it; the classes that are parts of others come below."""


def _reader_of(annotation: str) -> Reader:
    if annotation.endswith(" | None"):
        return _maybe(_reader_of(annotation[: -len(" | None")]))
    if annotation.startswith("tuple[") and annotation.endswith(", ...]"):
        return _many(_reader_of(annotation[len("tuple[") : -len(", ...]")]))
    return _READERS[annotation]


def _fields_of(kind: type[T]) -> Reader:
    """Make the reader of a dataclass; an annotation that it cannot read fails the import."""
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]  # T is a dataclass in each call
    table = tuple(
        (field.name, _reader_of(str(field.type)), *_default_of(field)) for field in fields
    )

    def read(value: Any) -> T:
        if type(value) is not dict:
            raise FrameError(f"must be an object, not {_shown(value)}")
        arguments = []
        for name, reader, default, factory in table:
            item = value.get(name, _NO_DEFAULT)
            if item is not _NO_DEFAULT:
                try:
                    arguments.append(reader(item))
                except FrameError as error:
                    raise type(error)(f"{kind.__name__}.{name} {error}") from None
            elif factory is not None:
                arguments.append(factory())
            elif default is not _NO_DEFAULT:
                arguments.append(default)
            else:
                raise FrameError(f"{kind.__name__}.{name} is missing")
        return kind(*arguments)

    return read


def _default_of(field: dataclasses.Field[Any]) -> tuple[Any, Callable[[], Any] | None]:
    """Return the default and the maker of one; `_NO_DEFAULT` and None where there is none."""
    missing = dataclasses.MISSING
    default = _NO_DEFAULT if field.default is missing else field.default
    return default, None if field.default_factory is missing else field.default_factory


def _defaults_of(kind: type[Any]) -> dict[str, Any]:
    made = {field.name: _default_of(field) for field in dataclasses.fields(kind)}
    return {name: maker() if maker else default for name, (default, maker) in made.items()}


_JOB_DEFAULTS = _defaults_of(StartJob)

_VALUES: dict[type[Any], Reader] = {}
"""The parts of messages; each before those that contain it."""

for _kind in (Cursor, FileEntry, Mount, StartJob, JobRecord, GpuProcess, GpuReport, HostReport):
    _VALUES[_kind] = _READERS[_kind.__name__] = _fields_of(_kind)

_MESSAGES: dict[str, Reader] = {
    _kind.__name__: _fields_of(_kind) for _kind in get_args(Union[ToAgent, ToController])
}
