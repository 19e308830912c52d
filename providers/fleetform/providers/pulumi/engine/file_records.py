"""Records of stacks in files of this machine; the kernel's locks of files exclude other processes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fleetform.providers.contract.stacks import StackBackend
from fleetform.providers.private_files import replace_private

__all__ = ["FileRecords"]


class FileRecords:
    """
    Implements `contract.stacks.StackRecords`.

    `folder` has all that Pulumi has of the environment: records of a stack lie in the stack's own folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, stack: str, kind: str) -> str | None:
        try:
            return self._path(stack, kind).read_text("utf-8")
        except FileNotFoundError:
            return None

    def read_all(self, kind: str) -> Mapping[str, str]:
        names = sorted(path.parent.name for path in self._folder.glob(f"stacks/*/{kind}.json"))
        found = {name: self.read(name, kind) for name in names}
        return {name: text for name, text in found.items() if text is not None}

    def write(self, stack: str, kind: str, text: str) -> None:
        replace_private(self._path(stack, kind), text.encode())

    def remove(self, stack: str) -> None:
        for path in (self._folder / "stacks" / stack).glob("*.json"):
            path.unlink()

    def act_under(self, fence: int) -> None:
        """Do nothing: the locks hold until their process ends, so no controller has an earlier fence."""

    def backend(self) -> StackBackend:
        return StackBackend(f"file://{self._folder / 'state'}")

    def _path(self, stack: str, kind: str) -> Path:
        folder = self._folder / "stacks" / stack if stack else self._folder
        return folder / f"{kind}.json"
