"""
The fields of the actual state that are compared, by kind, with the class of each.

`drift` and `docs/drift.md` use this table. A correction that would destroy something never happens by
itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fleetform.model.drift import DriftClass, Remedy

__all__ = ["NOT_DRIFT", "TABLE", "DriftRow"]


class DriftRow(NamedTuple):
    """
    One field. `declared_by` is the field of the document that asks for it, empty where none does.

    `claim` says what holds when nothing has drifted, `done` what happens otherwise, and `cure`
    what a person does where one must decide; `NAME` in it stands for the resource's name.
    """

    drift_class: DriftClass
    remedy: Remedy
    declared_by: str
    claim: str
    done: str
    cure: str = ""


_ENFORCED, _FLOOR, _OBSERVED = DriftClass.ENFORCED, DriftClass.FLOOR, DriftClass.OBSERVED

TABLE: Mapping[tuple[str, str], DriftRow] = {
    ("fleet", "host"): DriftRow(
        _ENFORCED, Remedy.APPLY, "nodes",
        "each host that was created exists",
        "the host is created again; jobs of the missing host are lost",
    ),
    ("fleet", "agent"): DriftRow(
        _ENFORCED, Remedy.APPLY, "",
        "the agent of a host answers, unless it has ended because it had no work",
        "the agent is started again, and finds the jobs that still run",
    ),
    ("fleet", "ledger"): DriftRow(
        _ENFORCED, Remedy.DECIDE, "",
        "a host follows this ledger, and knows no newer state",
        "nothing is started or removed",
        "put the newest ledger back, or run `fleetform state rebuild`, which asks the hosts",
    ),
    ("fleet", "cpu"): DriftRow(
        _FLOOR, Remedy.GREETING, "local.cpu",
        "a host has the CPUs that placements rely on",
        "the next connection of a controller records it; running jobs continue",
    ),
    ("fleet", "memory"): DriftRow(
        _FLOOR, Remedy.GREETING, "local.memory",
        "a host has the memory that placements rely on",
        "the next connection of a controller records it; running jobs continue",
    ),
    ("fleet", "gpus"): DriftRow(
        _FLOOR, Remedy.GREETING, "local.gpu",
        "a host has the GPUs that placements rely on, by their UUIDs",
        "the next connection of a controller records it; running jobs continue",
    ),
    ("fleet", "boot"): DriftRow(
        _OBSERVED, Remedy.GREETING, "",
        "a host has not rebooted since the last connection",
        "the next connection of a controller records it: jobs of the earlier boot have ended, and"
        " that is the outcome of their attempts",
    ),
    ("fleet", "install"): DriftRow(
        _OBSERVED, Remedy.GREETING, "",
        "the agent of a host has its records",
        "the next connection of a controller records it: jobs of the earlier install are lost",
    ),
    ("fleet", "unknown"): DriftRow(
        _OBSERVED, Remedy.DECIDE, "",
        "every host with the uid of the environment is in the ledger",
        "the host is not changed",
        "`fleetform state rebuild` adopts it with its running jobs",
    ),
    ("volume", "directory"): DriftRow(
        _ENFORCED, Remedy.DECIDE, "path",
        "the directory that was created exists, and is the same one",
        "the volume is blocked, because an empty directory would hide the loss of the data",
        "put the data back, or start empty with `fleetform apply --refresh --replace volume/NAME`",
    ),
    ("volume", "mark"): DriftRow(
        _ENFORCED, Remedy.APPLY, "",
        "the directory contains the marker of its owner",
        "the marker is written again; the data is unchanged",
    ),
    ("volume", "claim"): DriftRow(
        _ENFORCED, Remedy.DECIDE, "",
        "no other environment has marked the directory",
        "the volume is blocked: the marker names the other owner",
        "give the volume another path, or release it in the other environment",
    ),
    ("volume", "path"): DriftRow(
        _ENFORCED, Remedy.DECIDE, "path",
        "the volume is at its declared path",
        "the volume is blocked, because a second volume would be created",
        "move it back, or declare its current path",
    ),
    ("volume", "owner"): DriftRow(
        _OBSERVED, Remedy.ACCEPT, "",
        "the owner of the directory has not changed",
        "it is reported until it is accepted",
        "`fleetform apply --refresh-only` accepts it",
    ),
    ("volume", "mode"): DriftRow(
        _OBSERVED, Remedy.ACCEPT, "",
        "the permissions of the directory have not changed",
        "it is reported until it is accepted",
        "`fleetform apply --refresh-only` accepts it",
    ),
    ("run", "record"): DriftRow(
        _OBSERVED, Remedy.DECIDE, "",
        "every job that a host knows is in the ledger",
        "the job is shown and never ended",
        "`fleetform state rebuild` adopts it",
    ),
}  # fmt: skip

NOT_DRIFT: Mapping[tuple[str, str], str] = {
    ("run", "state"): "a job that was killed, lost or ended early is the outcome of its"
    " attempt: `retry` decides what follows, and `fleetform why` shows how it ended",
    ("run", "output"): "the output of a run is stored next to the ledger and not compared",
    ("volume", "content"): "runs may write into their volumes",
}
"""Differences that are not drift, with the reason."""
