"""
A tree that somebody edits, commit by commit, as their own files would say it.

Small on purpose: three to eight resources meet each other more often than three hundred do. An
edit leaves no dangling reference, since loading would refuse a tree that has one.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fleetform.simulate.apply.documents import (
    declare_element,
    declare_fleet,
    declare_run,
    declare_volume,
)
from fleetform.spec.desired import Declared, Desired, Environment, ResourceKey, Rules

__all__ = ["ENVIRONMENT_UID", "Tree"]

ENVIRONMENT_UID = "6" * 32
_FLEETS = ("pool", "spare")
_VOLUMES = ("data", "cache")
_RUNS = ("train", "eval", "prep", "note")
_RATES = ("0.1", "0.2", "0.3", "0.4")


@dataclass(slots=True)
class Tree:
    """
    What people mean, by name; `desired` says it as loading would.

    Attributes:
        volumes: Fleet, path and options. A path is used once: what was kept there is still there.
        runs: Own documents.
        sweep: Elements' values, with what all of them run.
        base: What every run inherits.
        broken: Names of runs whose document has an error just now.
        unread: A file cannot be read just now.
    """

    source: random.Random
    fleets: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    volumes: dict[str, tuple[str, str, dict[str, Any]]] = field(default_factory=dict)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    sweep: tuple[str, ...] = ()
    sweep_version: int = 0
    base: int = 0
    rules: Rules = field(default_factory=Rules)
    broken: tuple[str, ...] = ()
    unread: bool = False
    commits: int = 0
    _paths: int = 0

    @classmethod
    def draw(cls, source: random.Random) -> Tree:
        tree = cls(source)
        tree.fleets["pool"] = (source.randint(1, 2), {})
        if source.random() < 0.5:
            tree.rules = _draw_rules(source)
        for _ in range(source.randint(2, 6)):
            source.choice((tree.add_run, tree.add_run, tree.add_volume, tree.add_sweep))()
        return tree

    # -- what it declares -----------------------------------------------------------------

    def desired(self) -> Desired:
        declared = [declare_fleet(name, *rest) for name, rest in self.fleets.items()]
        declared += [declare_volume(name, *rest) for name, rest in self.volumes.items()]
        inherited = {"env": {"BASE": str(self.base)}} if self.base else {}
        declared += [declare_run(name, own, inherited) for name, own in self.runs.items()]
        own = {"commands": [f"sweep {self.sweep_version}"], "fleets": ["pool"]}
        declared += [declare_element("sweep", lr, own) for lr in self.sweep]
        broken = frozenset(ResourceKey("run", name) for name in self.broken)
        kept = self._without_unread(declared)
        return Desired(
            environment=Environment("simulated", ENVIRONMENT_UID, self.rules),
            resources={
                one.key: one
                for one in sorted(kept, key=lambda one: one.key)
                if one.key not in broken
            },
            commit=f"{self.commits:07x}",
            digest=f"{self.commits:064x}",
            broken=broken,
            unread=("odd.yaml",) if self.unread else (),
        )

    def _without_unread(self, declared: list[Declared]) -> list[Declared]:
        """A file that cannot be read says nothing: what it declares seems to be gone."""
        if not self.unread:
            return declared
        return [one for one in declared if one.key.kind != "run" or one.key.name in self.broken]

    # -- edits ----------------------------------------------------------------------------

    def edit(self) -> None:
        """Make one commit of one to three edits."""
        self.commits += 1
        self.broken, self.unread = (), False
        for _ in range(self.source.choice((1, 1, 2, 3))):
            edits, weights = zip(*self._edits(), strict=True)
            self.source.choices(edits, weights)[0]()
        self._mend()
        if self.runs and self.source.random() < 0.1:
            self.broken = (self.source.choice(list(self.runs)),)
        self.unread = self.source.random() < 0.05

    def settle(self) -> None:
        """Make the last commit: everything can be read, and whatever runs has a place to run."""
        self.commits += 1
        self.broken, self.unread = (), False
        nodes, options = self.fleets.get("pool", (1, {}))
        self.fleets["pool"] = (max(nodes, 1), options)
        for name, (nodes, options) in self.fleets.items():
            self.fleets[name] = (max(nodes, 1), options)
        self._mend()

    def _edits(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self.add_run, 3),
            (self.add_volume, 2),
            (self.add_fleet, 1),
            (self.add_sweep, 2),
            (self._change_run, 6),
            (self._change_volume, 3),
            (self._change_fleet, 3),
            (self._change_sweep, 2),
            (self._change_rules, 2),
            (self._change_base, 1),
            (self._remove_run, 3),
            (self._remove_volume, 2),
            (self._remove_fleet, 1),
        ]

    def add_run(self) -> None:
        name = self._free(_RUNS, self.runs)
        if name is None:
            return
        own: dict[str, Any] = {"commands": [f"{name} {self.source.randint(0, 1)}"]}
        if self.source.random() < 0.6:
            own["fleets"] = [self.source.choice(list(self.fleets))]
        if self.volumes and self.source.random() < 0.4:
            own["volumes"] = [{"name": self.source.choice(list(self.volumes)), "path": "/in"}]
        for change in (self._protect, self._on_change, self._prioritise):
            if self.source.random() < 0.2:
                change(own)
        if self.source.random() < 0.5:
            own["retry"] = {"on": ["error"], "max_attempts": 2}
        self.runs[name] = own

    def add_volume(self) -> None:
        name = self._free(_VOLUMES, self.volumes)
        if name is None or not self.fleets:
            return
        options: dict[str, Any] = {}
        if self.source.random() < 0.5:
            options["deletion_policy"] = self.source.choice(("delete", "retain", "snapshot"))
        if self.source.random() < 0.2:
            options["protect"] = True
        self.volumes[name] = (self.source.choice(list(self.fleets)), self._path(), options)

    def add_fleet(self) -> None:
        name = self._free(_FLEETS, self.fleets)
        if name is not None:
            options = {"protect": True} if self.source.random() < 0.2 else {}
            self.fleets[name] = (self.source.randint(1, 2), options)

    def add_sweep(self) -> None:
        self.sweep = tuple(sorted({*self.sweep, self.source.choice(_RATES)}))

    def _change_run(self) -> None:
        if not self.runs:
            return
        name = self.source.choice(list(self.runs))
        own = dict(self.runs[name])
        change = self.source.choice(
            (self._command, self._command, self._prioritise, self._rerun, self._state)
            + (self._on_change, self._protect, self._describe)
        )
        change(own)
        self.runs[name] = own

    def _command(self, own: dict[str, Any]) -> None:
        word = own["commands"][0].split()[0]
        own["commands"] = [f"{word} {self.source.randint(0, 2)}"]

    def _prioritise(self, own: dict[str, Any]) -> None:
        own["priority"] = self.source.randint(0, 2)

    def _rerun(self, own: dict[str, Any]) -> None:
        own["rerun"] = self.source.randint(0, 2)

    def _state(self, own: dict[str, Any]) -> None:
        own["state"] = self.source.choice(("running", "stopped"))

    def _on_change(self, own: dict[str, Any]) -> None:
        own["on_change"] = self.source.choice(("hold", "restart", "after-finish"))

    def _protect(self, own: dict[str, Any]) -> None:
        own["protect"] = self.source.random() < 0.5

    def _describe(self, own: dict[str, Any]) -> None:
        own["description"] = f"words {self.source.randint(0, 2)}"

    def _change_volume(self) -> None:
        if not self.volumes:
            return
        name = self.source.choice(list(self.volumes))
        fleet, path, options = self.volumes[name]
        options = dict(options)
        kind = self.source.random()
        if kind < 0.3:
            path = self._path()
        elif kind < 0.7:
            options["deletion_policy"] = self.source.choice(("delete", "retain", "snapshot"))
        else:
            options["protect"] = self.source.random() < 0.4
        self.volumes[name] = (fleet, path, options)

    def _change_fleet(self) -> None:
        if not self.fleets:
            return
        name = self.source.choice(list(self.fleets))
        nodes, options = self.fleets[name]
        if self.source.random() < 0.8:
            nodes = self.source.randint(0, 3)
        else:
            options = {"protect": self.source.random() < 0.4}
        self.fleets[name] = (nodes, options)

    def _change_sweep(self) -> None:
        if not self.sweep:
            return
        if self.source.random() < 0.3:
            self.sweep_version += 1
            return
        gone = self.source.choice(self.sweep)
        self.sweep = tuple(one for one in self.sweep if one != gone)
        if self.source.random() < 0.7:
            self.add_sweep()

    def _change_rules(self) -> None:
        self.rules = _draw_rules(self.source)

    def _change_base(self) -> None:
        self.base += 1

    def _remove_run(self) -> None:
        if self.runs:
            del self.runs[self.source.choice(list(self.runs))]

    def _remove_volume(self) -> None:
        if self.volumes:
            del self.volumes[self.source.choice(list(self.volumes))]

    def _remove_fleet(self) -> None:
        if len(self.fleets) > 1:
            del self.fleets[self.source.choice(list(self.fleets))]

    # -- odds and ends --------------------------------------------------------------------

    def _mend(self) -> None:
        """Drop what refers to something that went, as its author would have to."""
        for name, (fleet, _, _) in list(self.volumes.items()):
            if fleet not in self.fleets:
                del self.volumes[name]
        for name, before in list(self.runs.items()):
            own = dict(before)
            for field_, known in (("fleets", self.fleets), ("volumes", self.volumes)):
                mounts = own.pop(field_, [])
                kept = [one for one in mounts if (one if field_ == "fleets" else one["name"]) in known]
                if kept:
                    own[field_] = kept
            if own != before:
                self.runs[name] = own
        if "pool" not in self.fleets:
            self.sweep = ()

    def _free(self, names: tuple[str, ...], used: dict[str, Any]) -> str | None:
        free = [name for name in names if name not in used]
        return self.source.choice(free) if free else None

    def _path(self) -> str:
        self._paths += 1
        return f"/volumes/{self._paths}"


def _draw_rules(source: random.Random) -> Rules:
    return Rules(
        allow_destroy=source.random() < 0.5,
        delete_percent=source.choice((0, 10, 50, 100)),
        delete_count=source.choice((0, 1, 5)),
    )
