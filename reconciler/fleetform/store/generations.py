"""
How far the ledger of an environment has come, as this machine knows it: one small file an environment.

It lies outside the state folder, so that a folder that is put back whole, with the ledger and the
hosts' folders in it, is recognised: nothing inside such a folder could tell.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from fleetform.spec.private_folder import make_private_folder

__all__ = ["DamagedGenerationError", "Generation", "read_generation", "write_generation"]


class DamagedGenerationError(Exception):
    """The file is there, and does not say what was written into it."""


@dataclass(frozen=True, slots=True)
class Generation:
    """
    A state of a ledger.

    Attributes:
        ledger_id: Of the ledger.
        epoch: Restores and rebuilds raise it.
        commits: How many the ledger has had (its serial); never falls, not by a restore either.
        told_epoch: The epoch in which a host was last told that its events are written down; 0: never.
        told_commits: How many commits the ledger had had by then.
    """

    ledger_id: str
    epoch: int
    commits: int
    told_epoch: int = 0
    told_commits: int = 0

    @property
    def age(self) -> tuple[int, int]:
        """Orders the states of one ledger."""
        return self.epoch, self.commits

    @property
    def reported(self) -> tuple[int, int]:
        """Orders what has been reported to hosts."""
        return self.told_epoch, self.told_commits


def read_generation(path: Path) -> Generation | None:
    """
    Return what was written; None where nothing was, or it may not be read.

    Raises:
        DamagedGenerationError: It is something else.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return None
    try:
        value = json.loads(data)
        return Generation(
            str(value["ledger_id"]),
            *(int(value[name]) for name in ("epoch", "commits", "told_epoch", "told_commits")),
        )
    except (ValueError, KeyError, TypeError) as problem:
        raise DamagedGenerationError(str(path)) from problem


def write_generation(path: Path, generation: Generation) -> None:
    """
    Write it, whole or not at all.

    Raises:
        OSError: It cannot be written.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _write(partial, generation)
    except FileNotFoundError:
        make_private_folder(path.parent)
        _write(partial, generation)
    try:
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def _write(partial: Path, generation: Generation) -> None:
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, json.dumps(asdict(generation)).encode() + b"\n")
        # A name that is on the disk before its content would be a damaged file after a power cut.
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
