"""
What a supervisor is to do: a `StartJob` after the host has decided everything it leaves open.

It lies in the job's directory as JSON, so that the supervisor needs no message, no agent and
no memory of one. A named tuple rather than a dataclass: `dataclasses` pulls in `inspect`, and
every megabyte in the spawner is copied page table by page table into each supervisor.
"""

from __future__ import annotations

import json
from typing import NamedTuple


class Bind(NamedTuple):
    """A directory of the host that the job sees at the absolute path `target`."""

    source: str
    target: str
    read_only: bool


class Account(NamedTuple):
    """
    A Unix account with all that its processes need of the user database.

    Looked up once, when the job is prepared: a supervisor asks no database.
    """

    name: str
    uid: int
    gid: int
    groups: list[int]
    home: str
    umask: int


class Launch(NamedTuple):
    """
    One job, ready to be executed.

    The first six say whose result it is, in case the agent has lost its memory. `executable`
    is the path of what `argv` calls. Durations are milliseconds. A new field has a default.
    """

    job_uid: str
    run_uid: str
    attempt: int
    rank: int
    gen: int
    digest: str
    executable: str
    argv: list[str]
    env: dict[str, str]
    directory: str
    """Where the command starts; relative ones lie in the job's directory."""
    binds: list[Bind]
    memory_bytes: int | None
    memory_limit: str
    """How `memory_bytes` is enforced: a name of `limits`."""
    max_duration_ms: int | None
    grace_ms: int
    checkpoint_signal: int | None
    checkpoint_lead_ms: int
    log_head_bytes: int
    log_tail_bytes: int
    account: Account | None = None
    """Whose processes the job's are; None: those of the agent's own account."""
    silence_ms: int | None = None
    """How long the controller may be silent before the job is stopped; None: for ever."""


def dump(launch: Launch) -> bytes:
    """Return the first line of the file; the supervisor adds the second."""
    # The agent of an earlier release, which may take over after a downgrade, does not know those that
    # have a default.
    defaults = Launch._field_defaults
    fields = {
        name: value
        for name, value in launch._asdict().items()
        if name not in defaults or value != defaults[name]
    }
    return _encode(fields).encode("ascii") + b"\n"


def load(data: bytes) -> Launch:
    """Read what `dump` wrote; raises ValueError, KeyError or TypeError for anything else."""
    fields = json.loads(data.partition(b"\n")[0])
    binds = [Bind(*bind) for bind in fields.pop("binds")]
    account = fields.pop("account", None)
    return Launch(binds=binds, account=None if account is None else Account(*account), **fields)


def load_pid(data: bytes) -> int | None:
    """Read the supervisor's pid; None when it has not been written, as on a full disk."""
    second = data.partition(b"\n")[2]
    pid = second[:-1]
    return int(pid) if second.endswith(b"\n") and pid.isdigit() else None


_encode = json.JSONEncoder(separators=(",", ":")).encode
