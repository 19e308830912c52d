"""
Which fields of the world are compared, a kind, and how much each of them binds.

The one place that says it: `drift` makes its values from here, and `docs/drift.md` is written
from here. What is destroyed by being corrected is never corrected by itself.
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
        "each host that was made is there",
        "it is made again; what ran on the one that is gone is lost with it",
    ),
    ("fleet", "agent"): DriftRow(
        _ENFORCED, Remedy.APPLY, "",
        "a host's agent answers, unless it has ended for want of work",
        "it is started again, and finds the jobs that outlived it",
    ),
    ("fleet", "ledger"): DriftRow(
        _ENFORCED, Remedy.DECIDE, "",
        "a host obeys this ledger, and knows nothing newer",
        "nothing is started or removed",
        "put the newest ledger back, or run `fleetform state rebuild`, which asks the hosts",
    ),
    ("fleet", "cpu"): DriftRow(
        _FLOOR, Remedy.GREETING, "local.cpu",
        "a host has the CPUs that placements count on",
        "the next manager's greeting takes it in; what runs goes on",
    ),
    ("fleet", "memory"): DriftRow(
        _FLOOR, Remedy.GREETING, "local.memory",
        "a host has the memory that placements count on",
        "the next manager's greeting takes it in; what runs goes on",
    ),
    ("fleet", "gpus"): DriftRow(
        _FLOOR, Remedy.GREETING, "local.gpu",
        "a host has the GPUs that placements count on, by their UUIDs",
        "the next manager's greeting takes it in; what runs goes on",
    ),
    ("fleet", "boot"): DriftRow(
        _OBSERVED, Remedy.GREETING, "",
        "a host is in the boot in which it was greeted",
        "the next manager's greeting takes it in: jobs of the boot before have ended, and that is"
        " the outcome of their attempts",
    ),
    ("fleet", "install"): DriftRow(
        _OBSERVED, Remedy.GREETING, "",
        "a host's agent remembers what it did",
        "the next manager's greeting takes it in: jobs of the earlier install are lost",
    ),
    ("fleet", "unknown"): DriftRow(
        _OBSERVED, Remedy.DECIDE, "",
        "every host that bears the environment's uid is in the ledger",
        "it is left alone",
        "`fleetform state rebuild` takes it over with what runs on it",
    ),
    ("volume", "directory"): DriftRow(
        _ENFORCED, Remedy.DECIDE, "path",
        "the directory that was made is there, and is the same",
        "it is held, for an empty one in its place would hide that the data is gone",
        "put the data back, or begin anew with `fleetform apply --refresh --replace volume/NAME`",
    ),
    ("volume", "mark"): DriftRow(
        _ENFORCED, Remedy.APPLY, "",
        "the directory bears the mark that says whose it is",
        "it is marked again; the data is untouched",
    ),
    ("volume", "claim"): DriftRow(
        _ENFORCED, Remedy.DECIDE, "",
        "nobody else has marked the directory",
        "it is held: the mark names the other owner",
        "give the volume another path, or have the other owner let it go",
    ),
    ("volume", "path"): DriftRow(
        _ENFORCED, Remedy.DECIDE, "path",
        "the volume lies where it was declared",
        "it is held, for another one would be made beside it",
        "move it back, or declare the path at which it lies now",
    ),
    ("volume", "owner"): DriftRow(
        _OBSERVED, Remedy.ACCEPT, "",
        "the directory belongs to the account that it belonged to",
        "it is told until somebody takes note of it",
        "`fleetform apply --refresh-only` takes note of it",
    ),
    ("volume", "mode"): DriftRow(
        _OBSERVED, Remedy.ACCEPT, "",
        "the directory has the permissions that it had",
        "it is told until somebody takes note of it",
        "`fleetform apply --refresh-only` takes note of it",
    ),
    ("run", "record"): DriftRow(
        _OBSERVED, Remedy.DECIDE, "",
        "every job that a host of ours remembers is in the ledger",
        "it is shown and never ended",
        "`fleetform state rebuild` takes it over",
    ),
}  # fmt: skip

NOT_DRIFT: Mapping[tuple[str, str], str] = {
    ("run", "state"): "a job that was killed, lost or ended early is its attempt's outcome:"
    " `retry` says what follows, and `fleetform why` how it ended",
    ("run", "output"): "what a run printed is kept beside the ledger and compared with nothing",
    ("volume", "content"): "what runs write into a volume is theirs",
}
"""What might be taken for drift and is not, with the reason."""
