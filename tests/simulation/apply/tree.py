"""
A tree that somebody edits, commit by commit, as their own files would say it.

Small on purpose: three to eight resources meet each other more often than three hundred do. An
edit leaves no dangling reference, since loading would refuse a tree that has one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from fleetform.spec.desired import (
    Declared,
    Desired,
    Environment,
    FreezeWindow,
    ResourceKey,
    Rules,
)
from simulation.apply.documents import (
    declare_element,
    declare_fleet,
    declare_run,
    declare_volume,
)
from simulation.host import WALL_START_MS

__all__ = ["ENVIRONMENT_UID", "Tree"]

ENVIRONMENT_UID = "6" * 32
_FLEETS = ("pool", "spare")
_VOLUMES = ("data", "cache", "scratch")
_RUNS = ("train", "eval", "prep", "note")
_RATES = ("0.1", "0.2", "0.3", "0.4")

_Edit = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Left:
    """A volume that is declared no more: under which name it was, and with which options."""

    name: str
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Copy:
    """What a commit declared, for one that takes the next back."""

    fleets: dict[str, tuple[int, dict[str, Any]]]
    volumes: dict[str, tuple[str, str, dict[str, Any]]]
    runs: dict[str, dict[str, Any]]
    sweep: tuple[str, ...]


@dataclass(slots=True)
class Tree:
    """
    What people mean, by name; `desired` says it as loading would.

    Attributes:
        volumes: Fleet, path and options.
        runs: Own documents.
        sweep: Elements' values; `sweep_version` is what all of them run.
        base: What every run inherits.
        broken: Names of runs whose document has an error just now.
        unread: A file cannot be read just now.
        moved: Pairs that the last commit brought; likewise `removed` and `imports`.
        left: Volumes that went, as they were declared, by the path where there may be data.
        is_restless: What is there goes and comes back more than it changes.
        has_successors: Runs give way to others of their name that use other things.
        without_hosts: Names of fleets that were let go, and whose hosts may be up.
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
    moved: list[tuple[ResourceKey, ResourceKey]] = field(default_factory=list)
    removed: list[ResourceKey] = field(default_factory=list)
    imports: list[ResourceKey] = field(default_factory=list)
    left: dict[str, Left] = field(default_factory=dict)
    is_restless: bool = False
    has_successors: bool = False
    without_hosts: set[str] = field(default_factory=set)
    commits: int = 0
    _paths: int = 0
    _before: _Copy | None = None

    @classmethod
    def draw(cls, source: random.Random, *, has_successors: bool = False) -> Tree:
        tree = cls(source)
        tree.fleets["pool"] = (source.randint(1, 2), {})
        if has_successors:
            tree._begin_successions()
            return tree
        if source.random() < 0.5:
            tree.rules = _draw_rules(source)
        tree.is_restless = source.random() < 0.28
        if tree.is_restless:
            tree._add_fleet()
            tree._add_volume()
            tree._add_volume()
        for _ in range(source.randint(2, 6)):
            source.choice((tree._add_run, tree._add_run, tree._add_volume, tree._add_sweep))()
        return tree

    def _begin_successions(self) -> None:
        """Two fleets, two or three volumes, and runs that use some of them and may be replaced."""
        self.has_successors = True
        self.rules = Rules(allow_destroy=True, delete_percent=100)
        self.fleets["spare"] = (1, {})
        for _ in range(self.source.randint(2, 3)):
            self._add_volume()
        for _ in range(self.source.randint(1, 3)):
            self._add_run()
        for name in list(self.runs):
            self._succeed(name)

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
            moved=tuple(sorted(self.moved)),
            removed=tuple(sorted(self.removed)),
            imports=tuple(sorted(self.imports)),
        )

    def _without_unread(self, declared: list[Declared]) -> list[Declared]:
        """A file that cannot be read says nothing: what it declares seems to be gone."""
        if not self.unread:
            return declared
        return [one for one in declared if one.key.kind != "run"]

    # -- edits ----------------------------------------------------------------------------

    def edit(self) -> None:
        """Make one commit of one to three edits."""
        self._begin_commit()
        before = _Copy(dict(self.fleets), dict(self.volumes), dict(self.runs), self.sweep)
        if self._before is not None and self.source.random() < (0.4 if self.is_restless else 0.1):
            self._revert(self._before)
        else:
            for _ in range(self.source.choice((1, 1, 2, 3))):
                edits, weights = zip(*self._edits(), strict=True)
                self.source.choices(edits, weights)[0]()
        self._before = before
        if self.left and self.source.random() < 0.2:
            self._bring_back()
        self._mend()
        if self.runs and self.source.random() < 0.1:
            self.broken = (self.source.choice(list(self.runs)),)
        self.unread = self.source.random() < 0.05

    def settle(self, there: Collection[str], released_hosts: Collection[str]) -> None:
        """
        Make the last commit: everything can be read, and whatever runs has a place to run.

        `there` are the directories that exist: who left data in one takes it in again; `released_hosts`
        are fleets of which hosts are up. What went may come back as well.
        """
        self._begin_commit()
        if self.source.random() < 0.7:
            self._bring_back()
        if self.source.random() < 0.7:
            for name in sorted({*released_hosts} - self.fleets.keys()):
                self.fleets[name] = (1, {})
        nodes, options = self.fleets.get("pool", (1, {}))
        self.fleets["pool"] = (max(nodes, 1), options)
        for name, (nodes, options) in self.fleets.items():
            self.fleets[name] = (max(nodes, 1), options)
        self._mend()
        self.take_in((path for path in there if not self._is_own(path)), released_hosts)

    def take_in(self, there: Iterable[str], let_go: Collection[str]) -> None:
        """Import what lies in directories that exist, and the hosts of fleets that were let go."""
        places = frozenset(there)
        self.imports = [
            ResourceKey("volume", name)
            for name, (_, path, _) in self.volumes.items()
            if path in places
        ]
        self.imports += [ResourceKey("fleet", name) for name in self.fleets if name in let_go]

    def _is_own(self, path: str) -> bool:
        """Tell whether a volume is declared where it was let go from: it comes back unasked."""
        went = self.left.get(path)
        there = self.volumes.get(went.name) if went is not None else None
        return there is not None and there[1] == path

    def _begin_commit(self) -> None:
        self.commits += 1
        self.broken, self.unread = (), False
        self.moved, self.removed, self.imports = [], [], []

    def _edits(self) -> list[tuple[_Edit, int]]:
        if self.has_successors:
            return [
                (self._replace_run, 8),
                (self._drop_unused, 6),
                (self._change_volume, 2),
                (self._change_fleet, 3),
                (self._add_volume, 2),
                (self._add_fleet, 1),
                (self._add_run, 1),
                (self._remove_run, 1),
                (self._rename, 2),
            ]
        if self.is_restless and self.source.random() < 0.7:
            return [
                (self._remove_volume, 4),
                (self._change_volume, 3),
                (self._rename, 2),
                (self._let_go, 4),
                (self._add_fleet, 1),
                (self._add_volume, 1),
            ]
        return [
            (self._add_run, 3),
            (self._add_volume, 2),
            (self._add_fleet, 1),
            (self._add_sweep, 2),
            (self._change_run, 6),
            (self._change_volume, 3),
            (self._change_fleet, 3),
            (self._change_sweep, 2),
            (self._change_rules, 2),
            (self._change_base, 1),
            (self._remove_run, 3),
            (self._remove_volume, 2),
            (self._remove_fleet, 1),
            (self._rename, 2),
            (self._let_go, 1),
        ]

    # -- what comes -----------------------------------------------------------------------

    def _add_run(self) -> None:
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

    def _add_volume(self) -> None:
        name = self._free(_VOLUMES, self.volumes)
        if name is None:
            return
        options: dict[str, Any] = {}
        if self.source.random() < 0.6:
            options["deletion_policy"] = self._policy()
        if self.source.random() < 0.2:
            options["protect"] = True
        path = self._path()
        if self.left and self.source.random() < 0.4:
            path = self.source.choice(list(self.left))
            # Without it, whatever was left there is in the way.
            if self._is_free(path) and self.source.random() < 0.8:
                self.imports.append(ResourceKey("volume", name))
        if self._is_free(path):
            self.volumes[name] = (self.source.choice(list(self.fleets)), path, options)

    def _add_fleet(self) -> None:
        name = self._free(_FLEETS, self.fleets)
        if name is not None:
            options = {"protect": True} if self.source.random() < 0.2 else {}
            self.fleets[name] = (self.source.randint(1, 2), options)
            self._ask_for_hosts(name)

    def _ask_for_hosts(self, fleet: str) -> None:
        """Import the hosts of a fleet that was let go; who forgets to is told."""
        if fleet in self.without_hosts and self.source.random() < 0.7:
            self.imports.append(ResourceKey("fleet", fleet))

    def _add_sweep(self) -> None:
        self.sweep = tuple(sorted({*self.sweep, self.source.choice(_RATES)}))

    # -- what changes ---------------------------------------------------------------------

    def _change_run(self) -> None:
        if not self.runs:
            return
        name = self.source.choice(list(self.runs))
        own = dict(self.runs[name])
        changes = [self._command, self._command, self._prioritise, self._rerun, self._state]
        changes += [self._on_change, self._protect, self._describe]
        self.source.choice(changes)(own)
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

    def _replace_run(self) -> None:
        """Have a run use other things, and what it used go with the same commit, or stay for now."""
        if not self.runs:
            return
        name = self.source.choice(list(self.runs))
        self._succeed(name)
        if self.source.random() < 0.5:
            self._drop_unused()

    def _succeed(self, name: str) -> None:
        own = {**self.runs[name], "on_change": "after-finish"}
        self._command(own)
        for field_name in ("fleets", "volumes"):
            own.pop(field_name, None)
        fleets = list(self.fleets)
        if self.volumes and self.source.random() < 0.8:
            volume = self.source.choice(list(self.volumes))
            own["volumes"] = [{"name": volume, "path": "/in"}]
            # Elsewhere it would wait for ever.
            fleets = [self.volumes[volume][0]]
        if self.source.random() < 0.6:
            own["fleets"] = [self.source.choice(fleets)]
        self.runs[name] = own

    def _drop_unused(self) -> None:
        """Remove or let go what no document mentions any more; who is at work may have it still."""
        mounted = {one["name"] for own in self.runs.values() for one in own.get("volumes", ())}
        named = {one for own in self.runs.values() for one in own.get("fleets", ())}
        named |= {fleet for fleet, _, _ in self.volumes.values()}
        unused = [("volume", name) for name in self.volumes if name not in mounted]
        if len(self.fleets) > 1:
            unused += [("fleet", name) for name in self.fleets if name not in named]
        if not unused:
            return
        kind, name = self.source.choice(unused)
        is_let_go = self.source.random() < 0.4
        if kind == "volume":
            self._leave(name)
            del self.volumes[name]
        else:
            if is_let_go:
                self.without_hosts.add(name)
            del self.fleets[name]
        if is_let_go:
            self.removed.append(ResourceKey(kind, name))

    def _change_volume(self) -> None:
        if not self.volumes:
            return
        name = self.source.choice(list(self.volumes))
        fleet, path, options = self.volumes[name]
        options = dict(options)
        kind = self.source.random()
        if kind < 0.4:
            self._leave(name)
            mine = [one for one, went in self.left.items() if went.name == name and one != path]
            free = [one for one in mine if self._is_free(one)]
            # Where it has been, or somewhere new.
            is_back = bool(free) and self.source.random() < 0.5
            path = self.source.choice(free) if is_back else self._path()
        elif kind < 0.7:
            options["deletion_policy"] = self._policy()
        else:
            options["protect"] = self.source.random() < 0.4
        self.volumes[name] = (fleet, path, options)

    def _change_fleet(self) -> None:
        name = self.source.choice(list(self.fleets))
        nodes, options = self.fleets[name]
        kind = self.source.random()
        if kind < 0.5:
            nodes = self.source.randint(0, 3)
        elif kind < 0.6:
            options = {**options, "protect": self.source.random() < 0.4}
        else:
            options = {**options, **self._template()}
        self.fleets[name] = (nodes, options)

    def _template(self) -> dict[str, Any]:
        """Another division of each host, and how hosts are exchanged for it."""
        strategy = self.source.choice(("drain", "surge", "recreate"))
        return {
            **self.source.choice(({"sharing": "exact"}, {"sharing": "blocks", "blocks": 4})),
            "update": {"strategy": strategy, "max_unavailable": self.source.randint(1, 2)},
        }

    def _change_sweep(self) -> None:
        if not self.sweep:
            return
        if self.source.random() < 0.3:
            self.sweep_version += 1
            return
        gone = self.source.choice(self.sweep)
        self.sweep = tuple(one for one in self.sweep if one != gone)
        if self.source.random() < 0.7:
            self._add_sweep()

    def _change_rules(self) -> None:
        self.rules = _draw_rules(self.source)

    def _change_base(self) -> None:
        self.base += 1

    def _rename(self) -> None:
        """Give a run, a volume or the spare fleet a name that was free, and say so."""
        kinds: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
            ("run", self.runs, _RUNS),
            ("volume", self.volumes, _VOLUMES),
        ]
        kind, named, names = self.source.choice(kinds)
        after = self._free(names, named)
        if not named or after is None or self.moved:
            return
        before = self.source.choice(list(named))
        named[after] = named.pop(before)
        self.moved.append((ResourceKey(kind, before), ResourceKey(kind, after)))
        if kind == "volume":
            # What it left elsewhere is its own under its new name as well.
            for path, went in self.left.items():
                if went.name == before:
                    self.left[path] = replace(went, name=after)
            for name, own in self.runs.items():
                mounts = [
                    {**one, "name": after if one["name"] == before else one["name"]}
                    for one in own.get("volumes", ())
                ]
                if mounts:
                    self.runs[name] = {**own, "volumes": mounts}

    # -- what goes ------------------------------------------------------------------------

    def _remove_run(self) -> None:
        if self.runs:
            del self.runs[self.source.choice(list(self.runs))]

    def _remove_volume(self) -> None:
        if self.volumes:
            name = self.source.choice(list(self.volumes))
            self._leave(name)
            del self.volumes[name]

    def _remove_fleet(self) -> None:
        if len(self.fleets) > 1:
            del self.fleets[self.source.choice(list(self.fleets))]

    def _let_go(self) -> None:
        """Forget something without deleting it."""
        named: list[tuple[str, dict[str, Any]]] = [("run", self.runs), ("volume", self.volumes)]
        if len(self.fleets) > 1:
            named.append(("fleet", self.fleets))
            named += [named[-1]] * (2 if self.is_restless else 0)
        kind, there = self.source.choice(named)
        if not there:
            return
        name = self.source.choice(list(there))
        if kind == "volume":
            self._leave(name)
        elif kind == "fleet":
            self.without_hosts.add(name)
        del there[name]
        self.removed.append(ResourceKey(kind, name))

    # -- what comes back --------------------------------------------------------------------

    def _bring_back(self) -> None:
        """Declare a volume again as it was, or let one that is there have its earlier place."""
        some = [
            path
            for path, went in self.left.items()
            if self._is_free(path) and went.name not in self.volumes
        ]
        if some:
            path = self.source.choice(some)
            went = self.left[path]
            self.volumes[went.name] = (self.source.choice(list(self.fleets)), path, went.options)

    def _revert(self, copy: _Copy) -> None:
        """Take the last commit back."""
        for name, (_, path, _) in list(self.volumes.items()):
            if name not in copy.volumes or copy.volumes[name][1] != path:
                self._leave(name)
        for name in sorted(copy.fleets.keys() - self.fleets.keys()):
            self._ask_for_hosts(name)
        self.fleets, self.volumes = dict(copy.fleets), dict(copy.volumes)
        self.runs, self.sweep = dict(copy.runs), copy.sweep

    def _leave(self, name: str) -> None:
        """What a volume has in its place may stay there when it goes."""
        _, path, options = self.volumes[name]
        self.left[path] = Left(name, options)

    def _is_free(self, path: str) -> bool:
        return all(path != other for _, other, _ in self.volumes.values())

    # -- odds and ends --------------------------------------------------------------------

    def _mend(self) -> None:
        """Drop what refers to something that went, as its author would have to."""
        for name, (fleet, _, _) in list(self.volumes.items()):
            if fleet not in self.fleets:
                self._leave(name)
                del self.volumes[name]
        for name, before in list(self.runs.items()):
            own = dict(before)
            fleets = [one for one in own.pop("fleets", ()) if one in self.fleets]
            mounts = [one for one in own.pop("volumes", ()) if one["name"] in self.volumes]
            if fleets:
                own["fleets"] = fleets
            if mounts:
                own["volumes"] = mounts
            if own != before:
                self.runs[name] = own
        if "pool" not in self.fleets:
            self.sweep = ()
        declared = self.desired().resources
        self.moved = [
            (old, new) for old, new in self.moved if new in declared and old not in declared
        ]
        self.removed = [key for key in self.removed if key not in declared]
        self.imports = [key for key in dict.fromkeys(self.imports) if key in declared]

    def _free(self, names: tuple[str, ...], used: dict[str, Any]) -> str | None:
        free = [name for name in names if name not in used]
        return self.source.choice(free) if free else None

    def _policy(self) -> str:
        return self.source.choice(("delete", "retain", "snapshot"))

    def _path(self) -> str:
        self._paths += 1
        return f"/volumes/{self._paths}"


def _draw_rules(source: random.Random) -> Rules:
    return Rules(
        allow_destroy=source.random() < 0.5,
        delete_percent=source.choice((0, 10, 50, 100)),
        delete_count=source.choice((0, 1, 5)),
        freeze=(_draw_window(source),) if source.random() < 0.3 else (),
    )


def _draw_window(source: random.Random) -> FreezeWindow:
    """A time within the first minute or so of a seed, or the beginning of every minute."""
    only = source.choice(("all", "destructive"))
    if source.random() < 0.3:
        return FreezeWindow("at full minutes", cron="* * * * *", duration=20, only=only)
    begin = WALL_START_MS // 1000 + source.randint(0, 30)
    return FreezeWindow("for a while", begin=begin, end=begin + source.randint(3, 30), only=only)
