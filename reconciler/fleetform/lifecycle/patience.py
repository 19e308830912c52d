"""
Which runs get nowhere until a host that is silent answers.

Somebody who waits for runs must be told, and let go in the end: a host may never come back. That
a run is kept proves nothing about it, and changes nothing: it goes on when the host does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from fleetform.model.instance import Instance, InstanceState
from fleetform.model.run import Attempt, Run, RunState, RunUid

__all__ = ["kept_by_silence"]

_COMES = frozenset({InstanceState.READY, InstanceState.PROVISIONING, InstanceState.SUSPECT})
"""Hosts on which a run may still find a place."""


class Rows(Protocol):
    """A book, or the manager's copy of one."""

    @property
    def runs(self) -> Mapping[RunUid, Run]: ...
    @property
    def attempts(self) -> Mapping[RunUid, Attempt]: ...
    @property
    def instances(self) -> Iterable[Instance]: ...


def kept_by_silence(rows: Rows) -> dict[str, tuple[str, ...]]:
    """
    Return the names of the silent hosts, sorted, by the name of each run that waits for them.

    A run waits for a host that is silent when it is on it, when no other host of the fleets that
    it may use could take it, or when it depends on a run that waits so.
    """
    silent = [one for one in rows.instances if one.state is InstanceState.UNREACHABLE]
    if not silent:
        return {}
    kept = {
        run.name: hosts
        for uid, run in rows.runs.items()
        if (hosts := _hosts_of(run, rows.attempts.get(uid), rows.instances, silent))
    }
    _add_dependants(rows.runs.values(), kept)
    return kept


def _hosts_of(
    run: Run, attempt: Attempt | None, instances: Iterable[Instance], silent: list[Instance]
) -> tuple[str, ...]:
    names = {one.uid: one.name for one in silent}
    placed = [job.instance_uid for job in attempt.jobs if job.instance_uid] if attempt else []
    if placed:
        return tuple(sorted({names[uid] for uid in placed if uid in names}))
    if run.state is RunState.UNKNOWN:
        return ()
    fleets = run.template.fleets
    usable = [one for one in instances if not fleets or one.fleet in fleets]
    # Before `pending` has met what it depends on, where it may run is not the question.
    if run.state is RunState.PENDING or any(one.state in _COMES for one in usable):
        return ()
    return tuple(sorted(one.name for one in usable if one.uid in names))


def _add_dependants(runs: Iterable[Run], kept: dict[str, tuple[str, ...]]) -> None:
    """Add what waits for a run that is kept; dependencies have no cycle, so this ends."""
    parents = {run.name: run.template.parent for run in runs}
    waiting = [run for run in runs if run.state is RunState.PENDING and run.name not in kept]
    found = True
    while found:
        found = False
        for run in waiting:
            if run.name in kept:
                continue
            wanted = {one.run for one in run.template.depends_on}
            upstream = [
                hosts
                for name, hosts in kept.items()
                if name in wanted or parents.get(name) in wanted
            ]
            if upstream:
                kept[run.name] = tuple(sorted({host for hosts in upstream for host in hosts}))
                found = True
