"""
Channels: the messages that carry data of any length, in both directions and from version 2 on.

Which of them leaves first, and how much may be under way, is in `link`. Standard library only, Python 3.9.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class OpenChannel:
    """
    Open a channel under a number that its opener has not used on this connection.

    `kind` is one of `link.PRIORITY_OF_KIND`; `unsupported` refuses one that the agent does not
    have. Data may follow at once. Parameters of `blob`: `sha256`, and with `resume` the reply's
    `offset` says how much of the content is there already, from where the data then goes on.

    Parameters of `exec`: `key` (a `JobKey` as text) and `job_uid` of a job that runs, `argv`, and for
    a command with a terminal `rows`, `columns` and `term`. In place of `argv`, `subsystem` names a
    program that the agent has: `sftp`. Its data are pieces of `exec_pieces`.

    Parameters of `forward`: `key`, `job_uid`, and the `port` on the host's loopback; the reply comes
    when it is connected. Its data are the pieces `DATA` and `END_OF_INPUT` of `exec_pieces`, both ways.

    `rank` goes from the agent to a controller whose hello has the capability `channel.rank`: a job
    asks for a command in another rank of its attempt. Parameters: `key` and `job_uid` of the job that asks,
    `rank` and `argv`. Its data are those of `exec`, and either end says `ChannelEnded`.

    A connection which only looks may open channels of the kinds `exec` and `forward`, and no others.
    """

    id: int
    channel: int
    kind: str
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ChannelData:
    """The next piece, base64; `deflated` by zlib before that. Not answered but by `Credit`."""

    channel: int
    data: str
    deflated: bool = False


@dataclass(frozen=True)
class Credit:
    """
    So much more of a channel's data has been processed, counted as it travelled: `len(data)`.

    Sent for whatever arrives, also on a channel that has failed or is unknown.
    """

    channel: int
    size_bytes: int


@dataclass(frozen=True)
class CloseChannel:
    """
    End a channel; no data follows. The reply says whether all that was sent has been processed.

    outcome: `complete` (that was all of it), `interrupted` (the rest may be sent later, over
    another channel), `discard` (what was sent is of no use).
    """

    id: int
    channel: int
    outcome: str = "complete"


@dataclass(frozen=True)
class ChannelEnded:
    """
    The other end has ended a channel that is still open here: what follows on it is dropped.

    `code` and `message` as in `Reply`, empty where all is well; `body` is the kind's own. That of
    `exec` has `exit_code` or `signal`, and `job_ended` where the command was killed with its job.
    """

    channel: int
    code: str = ""
    message: str = ""
    body: dict[str, Any] = field(default_factory=dict)
