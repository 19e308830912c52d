"""
Stacks of the real Pulumi engine for tests, whose resources are files: see `shelf/plugin.py`.

    def test_it(tmp_path):
        shelf = Shelf(tmp_path)
        async with shelf.open("one") as stack: ...
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cloud.pulumi_program import pulumi_program, reason_missing
from fleetform.providers.pulumi.engine.program import Program, Resource
from fleetform.providers.pulumi.engine.stack import open_stack
from fleetform.providers.pulumi.engine.stack_settings import StackSettings, passphrase_file
from fleetform.providers.pulumi.recovery.inventory import Existing
from required import need

PLUGIN_FOLDER = Path(__file__).parent / "shelf"
ITEM = "shelf:index:Item"


class Shelf:
    """A folder of items, and stacks over it."""

    def __init__(self, folder: Path) -> None:
        missing = reason_missing()
        need("pulumi", not missing, missing)
        self.folder = folder / "shelf"
        (self.folder / "items").mkdir(parents=True, exist_ok=True)
        self.state = folder / "environment"
        self.passphrase = passphrase_file(folder / "config", "e1")
        self.environment = {
            "PATH": f"{PLUGIN_FOLDER}:{pulumi_program().parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "PULUMI_HOME": str(folder / "pulumi-home"),
            "FLEETFORM_TEST_SHELF": str(self.folder),
            "FLEETFORM_TEST_PYTHON": sys.executable,
        }

    def settings(self, name: str = "one", **fields: Any) -> StackSettings:
        values: dict[str, Any] = {
            "name": name,
            "folder": self.state / "pulumi/stacks" / name,
            "backend": f"file://{self.state}/pulumi/state",
            "passphrase": self.passphrase,
        }
        return StackSettings(**values | fields)

    def open(self, name: str = "one", **fields: Any) -> Any:
        return open_stack(self.settings(name, **fields), environment=self.environment)

    def control(self, **values: Any) -> None:
        """Slow calls down or let them fail; see `plugin.control`."""
        new = self.folder / "control.new"
        new.write_text(json.dumps(values))
        new.rename(self.folder / "control.json")

    def items(self) -> dict[str, dict[str, Any]]:
        """Return what exists, by id."""
        return {
            path.stem: json.loads(path.read_text())
            for path in sorted((self.folder / "items").glob("*.json"))
        }

    def names(self) -> list[str]:
        """Return the names of what exists, sorted; one that exists twice is listed twice."""
        return sorted(item["name"] for item in self.items().values())

    def change(self, item: str, **properties: Any) -> None:
        """Change an item outside of the engine."""
        path = self.folder / "items" / f"{item}.json"
        value = json.loads(path.read_text())
        value["properties"] |= properties
        path.write_text(json.dumps(value))

    def double(self, name: str, **properties: Any) -> None:
        """Create an item again, as a cloud does whose answer was lost; it is the younger one."""
        (item,) = [one for one in self.items().values() if one["name"] == name]
        value = {**item, "properties": {**item["properties"], **properties}}
        (self.folder / "items" / f"item-z{uuid.uuid4().hex[:8]}.json").write_text(json.dumps(value))

    def inventory(self, *, late_looks: int = 0) -> ShelfInventory:
        return ShelfInventory(self, late_looks)

    @contextlib.contextmanager
    def checkpoint(self, stack: str) -> Iterator[dict[str, Any]]:
        """Edit the deployment in the state's file; `pulumi stack import` drops pending operations."""
        path = self.state / f"pulumi/state/.pulumi/stacks/fleetform/{stack}.json"
        value = json.loads(path.read_text())
        yield value["checkpoint"]["latest"]
        path.write_text(json.dumps(value))

    def leave_lock(self, stack: str, *, hostname: str = "") -> Path:
        """See `leave_lock`."""
        return leave_lock(self.state, stack, hostname=hostname)

    def remove(self, item: str) -> None:
        """Remove an item outside of the engine."""
        (self.folder / "items" / f"{item}.json").unlink()


def leave_lock(state: Path, stack: str, *, hostname: str = "") -> Path:
    """Leave a lock in the state of an environment as a process does that was killed; returns its file."""
    folder = state / f"pulumi/state/.pulumi/locks/organization/fleetform/{stack}"
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / f"{uuid.uuid4()}.json"
    owner = {"pid": 1, "username": "root", "hostname": hostname or socket.gethostname()}
    lock.write_text(json.dumps({**owner, "timestamp": "2026-01-01T00:00:00Z"}))
    return lock


class ShelfInventory:
    """Lists the items; in the first looks it is late and lists none."""

    def __init__(self, shelf: Shelf, late_looks: int) -> None:
        self._shelf = shelf
        self._late_looks = late_looks

    async def existing(self) -> list[Existing]:
        self._late_looks -= 1
        if self._late_looks >= 0:
            return []
        return [
            Existing(ITEM, key, item["properties"].get("tags", {}))
            for key, item in self._shelf.items().items()
        ]

    async def ended(self) -> list[Existing]:
        return []


def items(*names: str, **properties: Any) -> Program:
    """Return a program with the provider and an item for each name, tagged with its name."""
    provider = Resource("pulumi:providers:shelf", "shelf")
    return Program(
        (
            provider,
            *(
                Resource(
                    ITEM, name, {"tags": {"fleetform:uid": name}, **properties}, provider="shelf"
                )
                for name in names
            ),
        )
    )
