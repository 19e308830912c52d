"""What a provider of a cloud needs on this machine, and whether it is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

__all__ = ["ToolCheck", "ToolChecker"]


@dataclass(frozen=True, slots=True)
class ToolCheck:
    """
    One thing that is needed: a program, a library, credentials.

    `text` says which one was found, or what is wrong. `advice` is empty where nothing is wrong.
    """

    name: str
    is_ok: bool
    text: str
    advice: str = ""


@runtime_checkable
class ToolChecker(Protocol):
    """The part of a provider of a cloud that says what it needs, and installs what it can."""

    def require_tools(self) -> None:
        """
        Make sure that this machine has what a controller needs to create and release hosts; nothing is contacted.

        Raises:
            PermanentError: It says what is missing.
        """
        ...

    async def check_tools(self, places: Sequence[Mapping[str, Any]]) -> Sequence[ToolCheck]:
        """
        Look at the programs and libraries, then ask the cloud for the account of the credentials.

        Args:
            places: Accounts and regions of the fleets, as in the endpoint of a request.
        """
        ...

    async def install_tools(self, report: Callable[[str], None]) -> None:
        """
        Install the programs that are missing, for this user.

        Raises:
            ProviderError: They cannot be downloaded or installed; the message says why.
        """
        ...
