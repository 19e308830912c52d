"""Notices: what a controller says to people and logs, with the event that programs look for."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

__all__ = ["LogLevel", "Notice", "NoticeFacts"]


class LogLevel(enum.StrEnum):
    """INFO: work as intended. WARNING: a person should look. ERROR: something failed."""

    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class NoticeFacts(TypedDict, total=False):
    """
    What programs that read a log get with a sentence; people read the sentence alone.

    `event` is a constant, `notice` by default; `level` is INFO by default; `details` are values.
    """

    event: str
    level: LogLevel
    details: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Notice:
    """
    One sentence about a state that lasts, such as a blocked change.

    Attributes:
        key: Names the state: a notice with the same key and text is said once while the state lasts.
        text: The sentence.
        over: What is said when the state is over; empty: nothing.
        event: Constant, for programs: `change.blocked`. The end of the state is `change.blocked.over`.
        details: Values for programs.
    """

    key: str
    text: str
    over: str = ""
    event: str = "notice"
    level: LogLevel = LogLevel.WARNING
    details: Mapping[str, str] = field(default_factory=dict)
