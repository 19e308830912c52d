"""
What an environment keeps of its stacks, and where the engine has their state.

A provider of a cloud writes down what a stack contains before it asks the cloud. One machine keeps that in files. Controllers on several
machines keep it in the database of their ledger, where only the controller that has the manager lease writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["OF_ENVIRONMENT", "StackBackend", "StackRecords"]

OF_ENVIRONMENT = ""
"""In place of the name of a stack: the record is of the whole environment."""


@dataclass(frozen=True, slots=True)
class StackBackend:
    """
    Where the engine has the state of the stacks.

    Attributes:
        url: For the engine, without a password.
        variables: Environment variables of the engine, which may be secret.
        breaks_locks: The state accepts no write of an earlier controller, so a lock that one has left in it may be deleted.
    """

    url: str
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    breaks_locks: bool = False


class StackRecords(Protocol):
    """
    Records of the stacks of one environment, each a text by its stack and its kind.

    Where a record cannot be read or written because the database does not answer, or another process has become the
    controller, a method raises what the ledger raises.
    """

    def read(self, stack: str, kind: str) -> str | None:
        """Return a record; None: there is none."""
        ...

    def read_all(self, kind: str) -> Mapping[str, str]:
        """Return all records of one kind by the name of their stack, in order."""
        ...

    def write(self, stack: str, kind: str, text: str) -> None:
        """Replace a record in one step; it outlives a power cut when this returns."""
        ...

    def remove(self, stack: str) -> None:
        """Remove all records of a stack."""
        ...

    def act_under(self, fence: int) -> None:
        """Write under this fence from now on: that of the manager lease of this process."""
        ...

    def backend(self) -> StackBackend:
        """Return where the state of the stacks is, for a change of one."""
        ...
