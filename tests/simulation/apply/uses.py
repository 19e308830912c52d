"""
What runs at work use: the directories that they have mounted, and the fleet that they are on.

From what hosts really do, and from the documents by which runs were submitted. One name may stand for
two of them: an earlier one that is at work, and its successor that waits and may use other things.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fleetform.spec.desired import ResourceKey
from fleetform.spec.renaming import Renames, rename_references
from simulation.apply.record import Record

__all__ = ["Uses"]


@dataclass(frozen=True, slots=True)
class _Use:
    """By one execution. A rename of its volumes leaves it where it is: what it has is a directory."""

    fleet: str
    paths: frozenset[str]


@dataclass(slots=True)
class Uses:
    """
    Keys are uids of runs; of one that is not known, no ledger can say what it uses either.

    `asked` are those that somebody has asked to end, by the ledger's rows: whoever agreed to that has
    agreed to lose what they do until then.
    """

    asked: frozenset[str] = frozenset()
    _documents: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _at_work: dict[str, _Use] = field(default_factory=dict)

    def submitted(self, run_uid: str, document: Mapping[str, Any]) -> None:
        """A run has this document from now on."""
        self._documents[run_uid] = document

    def renamed(self, before: ResourceKey, after: ResourceKey) -> None:
        """Documents go with the names that are in them."""
        renames = Renames({before: after})
        for uid, document in self._documents.items():
            self._documents[uid] = rename_references("run", document, renames)

    def begin(self, run_uid: str, fleet: str, record: Record) -> None:
        document = self._documents.get(run_uid, {})
        mounted = (
            record.resources.get(ResourceKey("volume", mount["name"]))
            for mount in document.get("volumes", ())
        )
        paths = frozenset(one.document["path"] for one in mounted if one is not None)
        self._at_work[run_uid] = _Use(fleet, paths)

    def end(self, run_uid: str) -> None:
        self._at_work.pop(run_uid, None)

    def forget_all_but(self, known: Container[str]) -> None:
        """The ledger is an earlier copy: only of these runs it still knows that they had begun."""
        for uid in [uid for uid in self._documents if uid not in known]:
            del self._documents[uid]
            self._at_work.pop(uid, None)

    def of_path(self, path: str) -> list[str]:
        """Uids of what is at work with this directory."""
        return self._unasked(uid for uid, use in self._at_work.items() if path in use.paths)

    def of_fleet(self, fleet: str) -> list[str]:
        """Uids of what is at work on this fleet."""
        return self._unasked(uid for uid, use in self._at_work.items() if use.fleet == fleet)

    def _unasked(self, run_uids: Iterable[str]) -> list[str]:
        return [uid for uid in run_uids if uid not in self.asked]
