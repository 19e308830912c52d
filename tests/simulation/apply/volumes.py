"""Directories as the judge knows them: whose each is, and what was done to it for which operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet

from simulation.apply.evidence import Evidence
from simulation.apply.rule import Rule

__all__ = ["Volumes"]


class Volumes:
    """Each deed is one operation's, and done once; uids of volumes by path."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._uids: dict[str, str] = {}
        self._made_by: dict[str, str] = {}
        self._marked_by: dict[str, str] = {}
        self._unmarked: set[str] = set()
        self._deeds: Counter[tuple[str, str]] = Counter()

    def at(self, path: str) -> str:
        """The uid of the volume that is there, if any."""
        return self._uids.get(path, "")

    def paths(self) -> AbstractSet[str]:
        return self._uids.keys()

    def is_marked(self, path: str, volume_uid: str) -> bool:
        """Tell whether this volume's directory is there, and says so."""
        return path not in self._unmarked and self._uids.get(path) == volume_uid

    # -- what is done -----------------------------------------------------------------------

    def made(self, path: str, volume_uid: str, operation_uid: str) -> None:
        self._done("made", path, volume_uid, operation_uid)
        self._made_by[path] = operation_uid
        self._check_same(path, self._uids.setdefault(path, volume_uid), volume_uid)

    def marked(self, path: str, volume_uid: str, operation_uid: str) -> None:
        """A directory bears the mark again that it had."""
        self._done("marked", path, volume_uid, operation_uid)
        self._marked_by[path] = operation_uid
        self._unmarked.discard(path)
        self._check_same(path, self._uids.get(path, volume_uid), volume_uid)

    def adopted(self, path: str, volume_uid: str, operation_uid: str) -> None:
        """A directory that was there is this volume from now on."""
        self._done("adopted", path, volume_uid, operation_uid, needs="volume.adopt")
        self._uids[path] = volume_uid
        self._unmarked.discard(path)

    def removed(self, path: str, volume_uid: str, operation_uid: str) -> None:
        seen = self._evidence
        self._done("removed", path, volume_uid, operation_uid, needs="volume.remove")
        step = seen.operations.get(operation_uid)
        before = seen.record.resources.get(step.resource) if step is not None else None
        if before is not None:
            policy = before.document.get("deletion_policy", "retain")
            seen.require(Rule.KEPT, policy == "delete", f"{path} was removed under {policy!r}")
        seen.require_unused(seen.uses.of_path(path), f"{path} was removed")
        left = seen.record.left.get(path, ("", ""))
        seen.require(Rule.KEPT, left[1] != volume_uid, f"{path} of {left[0]} was removed")
        self._uids.pop(path, None)

    def put_aside(self, path: str, volume_uid: str, operation_uid: str) -> None:
        self._done("put aside", path, volume_uid, operation_uid, needs="volume.snapshot")
        seen = self._evidence
        seen.require_unused(seen.uses.of_path(path), f"{path} was put aside")
        self._uids.pop(path, None)

    # -- what is nobody's doing ---------------------------------------------------------------

    def lost_mark(self, path: str) -> None:
        """Its operation may be on its way still, and marks it once more."""
        self._unmarked.add(path)
        self._deeds.pop((self._marked_by.pop(path, ""), "marked"), None)

    def lost(self, path: str) -> None:
        """Its directory is gone, by nobody we know."""
        self._unmarked.discard(path)
        self._uids.pop(path, None)
        # Its operation may be on its way still, and makes it once more.
        self._deeds.pop((self._made_by.pop(path, ""), "made"), None)

    # -- whose it is --------------------------------------------------------------------------

    def _done(
        self, done: str, path: str, volume_uid: str, operation_uid: str, *, needs: str = ""
    ) -> None:
        """Each deed is one operation's, and once; what ends or takes data is that verb's alone."""
        seen = self._evidence
        seen.note(seen.now, f"{done}: volume {volume_uid[:8]} at {path}")
        seen.effect("volume", operation_uid, f"{path} was {done}")
        step = seen.operations.get(operation_uid)
        seen.require(Rule.INTENDED, step is not None, f"{path} was {done} for {operation_uid[:8]}")
        self._deeds[operation_uid, done] += 1
        times = self._deeds[operation_uid, done]
        seen.require(Rule.ONCE, times == 1, f"{path} was {done} {times} times")
        if needs:
            asked = step is not None and step.verb == needs
            seen.require(Rule.PERMITTED, asked, f"the data of {path} was {done}")

    def _check_same(self, path: str, there: str, volume_uid: str) -> None:
        self._evidence.require(Rule.ALONE, there == volume_uid, f"{path} is two volumes")
