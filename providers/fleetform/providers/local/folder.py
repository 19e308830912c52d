"""
The folder of one local instance, and what of it is known without its agent.

    instance.json   who it is: uid, name, fleet, environment; before anything else is there
    owner.json      whom its agent obeys: ledger, epoch, highest fence; as soon as it has welcomed one
    heard           how far that ledger had come when the agent was told of it last
    agent.sock      where the agent listens

These files are written here; the rest is the agent's. This is how a lost ledger is told from a
new one, and an older copy from the newest: the folder outlives it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetform.providers.contract.errors import PermanentError
from fleetform.spec.private_folder import make_private_folder

VOLUME_MARK = ".fleetform-volume"
"""Written by the agent (`agents.host.volumes`), so that whose the data is goes where it goes."""

_RELEASED = ".released-"

# An agent has closed its connections a few milliseconds before its process ends.
_REMOVALS_MAX = 20
_REMOVAL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom an agent obeys; empty and 0 before anybody has said hello to it."""

    ledger_id: str = ""
    epoch: int = 0
    fence: int = 0


@dataclass(frozen=True, slots=True)
class Folder:
    """One instance's folder; it need not exist."""

    path: Path

    @property
    def socket(self) -> Path:
        return self.path / "agent.sock"

    @property
    def exists(self) -> bool:
        return self.path.is_dir()

    def identity(self) -> dict[str, Any]:
        """Return what `claim` wrote, or an empty mapping."""
        return _read_json(self.path / "instance.json")

    def owner(self) -> Owner:
        kept = _read_json(self.path / "owner.json")
        return Owner(
            str(kept.get("ledger_id", "")), int(kept.get("epoch", 0)), int(kept.get("fence", 0))
        )

    def note_owner(self, owner: Owner) -> None:
        """Remember whom the agent obeys; costs a read where that has not changed."""
        if self.owner() != owner:
            _write_json(self.path / "owner.json", {**self.identity(), **dataclasses.asdict(owner)})

    def commits(self) -> int:
        """Return how many commits the ledger had had that the agent obeys; 0: nobody noted it."""
        try:
            ledger_id, epoch, commits, again = (self.path / "heard").read_text("ascii").split()
            owner = self.owner()
            # Number by number, so that what is read in the middle of a write is not believed.
            if commits == again and (ledger_id, int(epoch)) == (owner.ledger_id, owner.epoch):
                return int(commits)
        except (OSError, ValueError):
            pass
        # Proof that is missing or spoilt proves nothing.
        return 0

    def note_commits(self, ledger_id: str, epoch: int, commits: int) -> None:
        """
        Remember how far the ledger has come, with each acknowledgement.

        Written in place and not synced, 10 us in all: a note that is lost is proof that is
        lost, and no note is ever ahead of its ledger.
        """
        line = f"{ledger_id} {epoch:020} {commits:020} {commits:020}\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        # A disk that is full takes no proof, and is no reason to stop listening.
        with contextlib.suppress(OSError):
            descriptor = os.open(self.path / "heard", flags, 0o600)
            try:
                os.pwrite(descriptor, line.encode(), 0)
            finally:
                os.close(descriptor)

    def claim(self, *, uid: str, name: str, fleet: str, environment_uid: str) -> None:
        """
        Make the folder this instance's; doing so twice is the same as once.

        Raises:
            PermanentError: It is another's, whose jobs may still run.
        """
        wanted = {"uid": uid, "name": name, "fleet": fleet, "environment_uid": environment_uid}
        found = self.identity()
        if found == wanted:
            return
        if found and found.get("uid") != uid:
            raise PermanentError(
                f"instance {name} exists on this machine as {found.get('uid')}, not as {uid}",
                advice="`fleetform state rebuild` adopts it with its running jobs",
            )
        # Only this user may reach the socket, and with it start processes.
        make_private_folder(self.path)
        _write_json(self.path / "instance.json", wanted)

    def remove(self) -> None:
        """
        Remove the folder with everything in it; nothing when it has gone.

        It leaves its name first: half a folder would otherwise pass for an instance.
        """
        leaving = self.path.with_name(_RELEASED + self.path.name)
        _remove_tree(leaving)
        with contextlib.suppress(FileNotFoundError):
            self.path.replace(leaving)
            _remove_tree(leaving)


def instance_folders(environment: Path) -> Iterator[Folder]:
    """Yield the folders of an environment's instances in order of name."""
    if environment.is_dir():
        for path in sorted(environment.iterdir()):
            if path.is_dir() and not path.name.startswith("."):
                yield Folder(path)


def read_mark(volume: Path) -> dict[str, Any]:
    """Return what an agent wrote into a directory that is a volume; empty where nothing is."""
    try:
        mark = json.loads((volume / VOLUME_MARK).read_bytes())
    except (OSError, ValueError):
        return {}
    return mark if isinstance(mark, dict) else {}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        # Where a file is in the way of the folder, nothing of ours is behind it.
        return {}
    except (OSError, ValueError) as error:
        raise PermanentError(
            f"{path} cannot be read: {error}",
            advice="restore it: it names the owner of the instance",
        ) from error
    if not isinstance(value, dict):
        raise PermanentError(
            f"{path} is not a JSON object", advice="restore it: it names the owner of the instance"
        )
    return value


def _remove_tree(path: Path) -> None:
    """Remove a tree in which somebody who is just ending may still remove and write."""
    for _ in range(_REMOVALS_MAX):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(_REMOVAL_SECONDS)
    # Once more, for the reason why it cannot be removed.
    shutil.rmtree(path)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".instance-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    Path(name).replace(path)
