"""
What the judge believes was applied, from the steps that were written down as done.

It reads no row of the ledger: a ledger that forgets a protection is to be found out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fleetform.model.plan import Step
from fleetform.spec.desired import ResourceKey, Rules
from fleetform.spec.renaming import Renames, rename_references

__all__ = ["GONE", "Applied", "Record", "mentions"]


GONE = frozenset(
    {
        "fleet.remove",
        "fleet.forget",
        "volume.remove",
        "volume.forget",
        "volume.snapshot",
        "run.forget",
    }
)
"""After one of these nothing is left under the name."""


@dataclass(frozen=True, slots=True)
class Applied:
    """
    One resource as it was last applied.

    `mark` is the highest `rerun` that any of its documents has had. `run_uid` is of the run that
    was submitted last under this name. `former` are names that its document had and no longer has,
    because what they named was renamed: a document with one of these asks for something else.
    """

    document: Mapping[str, Any]
    execution_digest: str
    own_digest: str
    digest: str
    archived: bool = False
    mark: int = 0
    run_uid: str = ""
    former: frozenset[ResourceKey] = frozenset()

    @property
    def protected(self) -> bool:
        return bool(self.document.get("protect"))


@dataclass(slots=True)
class Record:
    """
    `version` goes up with each change of a resource, also with its removal. `left_paths` are of
    volumes that were let go with their data, or that no ledger knows of any more; `left` are those
    of which the ledger knows whose they are: name and uid by path.
    """

    rules: Rules = field(default_factory=Rules)
    resources: dict[ResourceKey, Applied] = field(default_factory=dict)
    left_paths: set[str] = field(default_factory=set)
    left: dict[str, tuple[str, str]] = field(default_factory=dict)
    version: dict[ResourceKey, int] = field(default_factory=dict)

    def copy(self) -> Record:
        return Record(
            self.rules,
            dict(self.resources),
            set(self.left_paths),
            dict(self.left),
            dict(self.version),
        )

    def take(self, step: Step, run_uid: str = "", volume_uid: str = "") -> None:
        """
        Take in a step that was written down as done.

        `run_uid` is of what it submitted, `volume_uid` of what its directory is.
        """
        key, said = step.resource, step.arguments
        if step.verb == "rules.set":
            self.rules = Rules.of(said["rules"])
            return
        self._changed(key)
        if step.verb in GONE:
            self.resources.pop(key, None)
            if step.verb == "volume.forget":
                self.left_paths.add(said["path"])
                if volume_uid:
                    self.left[said["path"]] = (key.name, volume_uid)
        elif step.verb == "resource.move":
            before = ResourceKey(key.kind, said["from"])
            self._changed(before)
            if before in self.resources:
                self.resources[key] = self.resources.pop(before)
            if key.kind == "volume":
                self._rename_left(before.name, key.name)
            self._follow(before, key)
        elif step.verb == "run.archive":
            if key in self.resources:
                self.resources[key] = replace(self.resources[key], archived=True)
        elif "document" in said:
            self.resources[key] = self._applied(key, said, run_uid)
            if step.verb in {"volume.make", "volume.adopt"}:
                self.left.pop(said["path"], None)

    def _follow(self, before: ResourceKey, after: ResourceKey) -> None:
        """Documents that mention it go with it."""
        renames = Renames({before: after})
        for key, one in self.resources.items():
            document = rename_references(key.kind, one.document, renames)
            if document is not one.document:
                former = one.former | {before}
                self.resources[key] = replace(one, document=document, former=former)

    def _rename_left(self, before: str, after: str) -> None:
        """What it left elsewhere goes with it."""
        for path, (name, uid) in self.left.items():
            if name == before:
                self.left[path] = (after, uid)

    def state_of(self, key: ResourceKey) -> int:
        """What a plan of it was made for; whatever is absent is as anything absent."""
        is_absent = key.kind != "environment" and key not in self.resources
        return -1 if is_absent else self.version.get(key, 0)

    def _changed(self, key: ResourceKey) -> None:
        self.version[key] = self.version.get(key, 0) + 1

    def _applied(self, key: ResourceKey, said: Mapping[str, Any], run_uid: str) -> Applied:
        before = self.resources.get(key)
        return Applied(
            document=said["document"],
            execution_digest=said["execution_digest"],
            own_digest=said["own_digest"],
            digest=said["digest"],
            run_uid=run_uid or (before.run_uid if before else ""),
            mark=max(said["document"].get("rerun", 0), before.mark if before else 0),
        )

    def present(self, kind: str) -> int:
        return sum(key.kind == kind and not one.archived for key, one in self.resources.items())


def mentions(document: Mapping[str, Any], names: Iterable[ResourceKey]) -> bool:
    """Tell whether a run's document means something by one of these names."""
    others = Renames({one: ResourceKey(one.kind, f"not {one.name}") for one in names})
    return bool(others) and rename_references("run", document, others) is not document
