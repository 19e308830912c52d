"""
Messages as bytes: the one place where either end meets what the other really sent.

A frame is a length of four bytes, big-endian, and that many bytes of JSON: an object whose
`type` names a class of `messages`. What arrives is not trusted. A frame that is too long, is
no such object, or has a field of the wrong kind raises `FrameError`, and the connection is of
no further use; a field nobody knows is passed over and one that is missing takes its default,
so that two releases understand each other.

How each class is read stands in tables below rather than being derived from annotations:
Python 3.9, which this has to run on, cannot evaluate `int | None`. Standard library only.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, Union

from fleetform.agents.protocol.messages import (
    Acknowledge,
    Cursor,
    Event,
    FileEntry,
    FollowLog,
    Forget,
    GpuReport,
    Hello,
    HostReport,
    JobKey,
    JobRecord,
    LogData,
    MakeVolume,
    MissingBlobs,
    Mount,
    Prepare,
    Probe,
    PutBlob,
    Rejected,
    RemoveVolume,
    Reply,
    Shutdown,
    SnapshotVolume,
    Start,
    StartJob,
    Stop,
    ToAgent,
    ToController,
    Welcome,
)
from fleetform.agents.protocol.states import Cause, JobState

__all__ = ["FRAME_BYTES_MAX", "Decoder", "FrameError", "Message", "decode", "encode", "job_digest",
           "read_value"]  # fmt: skip

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


def _to_bytes(value: Mapping[str, Any]) -> bytes:
    # ASCII with escapes: a lone surrogate, which is how Python shows a file name that is not
    # UTF-8, survives the way there and back.
    text = json.dumps(
        value, default=_nested_fields, separators=(",", ":"), sort_keys=True, allow_nan=False
    )
    return text.encode("ascii")


def _nested_fields(value: Any) -> Any:
    """Tell `json` what is in a value that it does not know; enums and keys it does."""
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

    def feed(self, data: bytes) -> list[Message]:
        """
        Take in a piece and return the messages that it completes, in order.

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

    def _take_messages(self) -> list[Message]:
        messages: list[Message] = []
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


def decode(body: bytes) -> Message:
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
    reader = _MESSAGES.get(kind) if type(kind) is str else None
    if reader is None:
        raise FrameError(f"a frame has the unknown type {_shown(kind)}")
    message: Message = reader(value)
    return message


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
            raise FrameError(f"must be one of {', '.join(members)}, not {_shown(value)}")
        return member

    return read


# -- readers of classes -------------------------------------------------------------------

_NO_DEFAULT = object()


def _fields_of(kind: type[T], **readers: Reader) -> Reader:
    """
    Make the reader of a dataclass; `readers` names each of its fields in their order.

    That none is forgotten is checked here, as the module is imported.
    """
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]  # T is a dataclass in each call
    assert list(readers) == [field.name for field in fields], kind
    table = tuple((field.name, readers[field.name], *_default_of(field)) for field in fields)

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
                    raise FrameError(f"{kind.__name__}.{name} {error}") from None
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

_cursor = _fields_of(Cursor, log_id=_text, number=_integer)
_file = _fields_of(FileEntry, path=_text, sha256=_text, size_bytes=_integer, mode=_integer)
_mount = _fields_of(Mount, name=_text, source=_text, path=_text, read_only=_flag)
_job = _fields_of(
    StartJob,
    job_uid=_text,
    key=_key,
    gen=_integer,
    boot_id=_text,
    run_name=_text,
    commands=_many(_text),
    shell=_text,
    env=_texts_by_name,
    working_dir=_text,
    files=_many(_file),
    mounts=_many(_mount),
    gpus=_many(_text),
    cpu_millicores=_integer,
    memory_bytes=_maybe(_integer),
    max_duration_seconds=_maybe(_integer),
    stop_grace_seconds=_integer,
    checkpoint_signal=_maybe(_text),
    checkpoint_lead_seconds=_integer,
    log_head_bytes=_integer,
    log_tail_bytes=_integer,
    runtime=_text,
    go=_flag,
    bundle=_text,
    execution_digest=_text,
    compat=_many(_text),
)
_record = _fields_of(
    JobRecord,
    key=_key,
    job_uid=_text,
    gen=_integer,
    digest=_text,
    state=_one_of(JobState),
    cause=_maybe(_one_of(Cause)),
    exit_code=_maybe(_integer),
    signal=_maybe(_integer),
    message=_text,
    started_at_ms=_maybe(_integer),
    finished_at_ms=_maybe(_integer),
    peak_memory_bytes=_maybe(_integer),
    cpu_time_ms=_maybe(_integer),
    log_bytes=_integer,
    tombstone=_flag,
    run_name=_text,
    execution_digest=_text,
)
_gpu = _fields_of(
    GpuReport, index=_integer, uuid=_text, name=_text, memory_bytes=_integer, vendor=_text
)
_host = _fields_of(
    HostReport,
    hostname=_text,
    cpu_millicores=_integer,
    memory_bytes=_integer,
    disk_bytes=_integer,
    disk_free_bytes=_integer,
    memory_free_bytes=_integer,
    load_1m_milli=_integer,
    gpus=_many(_gpu),
    python=_text,
    kernel=_text,
    addresses=_many(_text),
    limits=_many(_text),
)

_VALUES: dict[type[Any], Reader] = {
    Cursor: _cursor,
    FileEntry: _file,
    Mount: _mount,
    StartJob: _job,
    JobRecord: _record,
    GpuReport: _gpu,
    HostReport: _host,
}

_MESSAGES: dict[str, Reader] = {
    # Controller to agent.
    "Hello": _fields_of(
        Hello,
        environment_uid=_text,
        ledger_id=_text,
        epoch=_integer,
        fence=_integer,
        cursor=_maybe(_cursor),
        protocol=_integer,
        look=_flag,
        environment_name=_text,
    ),
    "Prepare": _fields_of(Prepare, id=_integer, job=_job),
    "Start": _fields_of(Start, id=_integer, key=_key, gen=_integer, boot_id=_text),
    "Stop": _fields_of(
        Stop,
        id=_integer,
        key=_key,
        job_uid=_text,
        gen=_integer,
        cause=_one_of(Cause),
        grace_seconds=_maybe(_integer),
    ),
    "Forget": _fields_of(Forget, id=_integer, keys=_many(_key)),
    "Acknowledge": _fields_of(Acknowledge, cursor=_cursor),
    "MissingBlobs": _fields_of(MissingBlobs, id=_integer, digests=_many(_text)),
    "PutBlob": _fields_of(
        PutBlob, id=_integer, sha256=_text, offset=_integer, data=_text, last=_flag
    ),
    "MakeVolume": _fields_of(
        MakeVolume,
        id=_integer,
        operation_uid=_text,
        volume_uid=_text,
        name=_text,
        path=_text,
        take=_text,
    ),
    "RemoveVolume": _fields_of(
        RemoveVolume,
        id=_integer,
        operation_uid=_text,
        volume_uid=_text,
        path=_text,
        delete_data=_flag,
    ),
    "SnapshotVolume": _fields_of(
        SnapshotVolume,
        id=_integer,
        operation_uid=_text,
        volume_uid=_text,
        name=_text,
        path=_text,
        into=_text,
    ),
    "FollowLog": _fields_of(FollowLog, job_uid=_text, offset=_integer),
    "Probe": _fields_of(Probe, id=_integer),
    "Shutdown": _fields_of(Shutdown, id=_integer, force=_flag),
    # Agent to controller.
    "Welcome": _fields_of(
        Welcome,
        owner=_maybe(_text),
        ledger_id=_text,
        epoch=_integer,
        install_id=_text,
        boot_id=_text,
        machine_id=_text,
        log_id=_text,
        oldest=_integer,
        newest=_integer,
        records=_maybe(_many(_record)),
        version=_text,
        protocol=_integer,
    ),
    "Rejected": _fields_of(
        Rejected, code=_text, message=_text, owner=_maybe(_text), ledger_id=_text, epoch=_integer
    ),
    "Event": _fields_of(Event, number=_integer, record=_record),
    "LogData": _fields_of(LogData, job_uid=_text, offset=_integer, data=_text, complete=_flag),
    "Reply": _fields_of(Reply, id=_integer, ok=_flag, code=_text, message=_text, body=_mapping),
}
