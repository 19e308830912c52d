"""
Recognises a ledger that is older than what this machine has seen of it, or another one.

Hosts prove that as well, where they remember more. They do not where their folders were put back
along with the ledger, so this machine notes, outside the state folder, how far the ledger has come:
when a process begins to manage the environment, and before a host hears that what it said is
written down. What a host has heard of may have run.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.paths import CONFIG_VARIABLE, config_home
from fleetform.model.ledger import LedgerStatus
from fleetform.store.generations import (
    DamagedGenerationError,
    Generation,
    read_generation,
    write_generation,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleetform.model.ledger import Standing
    from fleetform.model.live import Live
    from fleetform.model.ports import Reader
    from fleetform.providers.contract.observed import InstanceSeen
    from fleetform.store.ledger import StoredLedger


def generation_file(environment_uid: str) -> Path | None:
    """Say where the note about an environment is; None where no folder is kept for it."""
    home = config_home()
    return None if home is None else home / "generations" / environment_uid


def known_generation(environment_uid: str) -> Generation | None:
    """Return what this machine knows of an environment's ledger; a damaged note proves nothing."""
    path = generation_file(environment_uid)
    if path is None:
        return None
    try:
        return read_generation(path)
    except DamagedGenerationError:
        return None


# -- recognising --------------------------------------------------------------------------------


_START_EMPTY = " (to start with an empty ledger, remove that file)"


def lost(environment_uid: str) -> str:
    """Return the sentence that says that there was a ledger, where there is none; else nothing."""
    known = known_generation(environment_uid)
    return (
        "" if known is None else f"{_said(environment_uid, known)}, and there is none{_START_EMPTY}"
    )


def behind(standing: Standing | Live, known: Generation | None) -> str:
    """
    Return the sentence that proves that a newer ledger of the environment existed, or nothing.

    Args:
        standing: What the ledger says of itself.
        known: What this machine knew before that was read: the controller goes on meanwhile.
    """
    if known is None:
        return ""
    if standing.ledger_id == known.ledger_id:
        if (standing.epoch, standing.serial) >= known.age:
            return ""
        here = f"this one is at commit {standing.serial} of epoch {standing.epoch}"
    elif standing.epoch > known.epoch:
        # Who rebuilds takes an epoch above all that hosts and this machine have heard of.
        return ""
    else:
        here = f"this is ledger {standing.ledger_id[:8]} of epoch {standing.epoch}{_START_EMPTY}"
    return f"{_said(standing.environment_uid, known)}, and {here}"


def _said(environment_uid: str, known: Generation) -> str:
    return (
        f"{generation_file(environment_uid)} records that ledger {known.ledger_id[:8]} was at commit"
        f" {known.commits} of epoch {known.epoch}"
    )


def with_generation(live: Live, known: Generation | None) -> Live:
    """Return what was read of a ledger, as recovering where it is older than what was known of it."""
    if live.status is LedgerStatus.RECOVERING or not (proof := behind(live, known)):
        return live
    return replace(live, status=LedgerStatus.RECOVERING, notes=(proof,))


def doubts(reader: Reader, known: Generation | None) -> str:
    """Return the sentence that says why what a ledger says may be old, or nothing; see `behind`."""
    standing = reader.read_standing()
    if standing.status is LedgerStatus.RECOVERING:
        return standing.note
    return behind(standing, known)


def mark_if_behind(ledger: StoredLedger, environment_uid: str) -> None:
    """
    Mark a ledger that is older as recovering, before anything else is written into it.

    Each further commit would bring it nearer to the number that gives it away.
    """
    known = known_generation(environment_uid)
    if known is None:
        return
    standing = ledger.read_standing()
    if standing.status != LedgerStatus.RECOVERING and (proof := behind(standing, known)):
        ledger.begin_recovery(proof)


def hosts_know_all(known: Generation | None, instances: Iterable[InstanceSeen]) -> bool:
    """
    Tell whether the hosts remember as much as was reported to them; else their folders were put back too.

    Then what they have no record of may have run.
    """
    if known is None or not known.told_epoch:
        return True
    return max(((one.epoch, one.commits) for one in instances), default=(0, 0)) >= known.reported


# -- noting -------------------------------------------------------------------------------------


class GenerationNotes:
    """Notes how far one ledger has come, for as long as a process manages the environment."""

    def __init__(self, environment_uid: str, ledger_id: str, epoch: int) -> None:
        self._path = generation_file(environment_uid)
        known = known_generation(environment_uid)
        self._newest = Generation(
            ledger_id, epoch, 0, *((0, 0) if known is None else known.reported)
        )

    def note(self, commits: int) -> str:
        """Note where the ledger stands; returns the sentence that says why that cannot be done."""
        if self._path is None:
            return ""
        self._newest = replace(self._newest, commits=commits)
        try:
            write_generation(self._path, self._newest)
        except OSError as problem:
            return (
                f"{self._path} cannot be written ({(problem.strerror or str(problem)).lower()}), so"
                " fleetform would not recognise an older copy of the state folder;"
                f" set {CONFIG_VARIABLE} to another folder, or to nothing to skip this check"
            )
        return ""

    def note_told(self, commits: int) -> None:
        """Note it before it is reported to a host; a disk that is full takes no proof, and ends no work."""
        self._newest = replace(self._newest, told_epoch=self._newest.epoch, told_commits=commits)
        self.note(commits)


def note_generation(ledger: StoredLedger) -> str:
    """Note where a ledger stands that was put together again; returns what `note` does."""
    standing = ledger.read_standing()
    notes = GenerationNotes(standing.environment_uid, standing.ledger_id, standing.epoch)
    return notes.note(standing.serial)
