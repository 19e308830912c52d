"""
That data goes only where the policy that was applied last lets it, is found again where it is
kept, and is missed where it is gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from fleetform.checker.context import Reading
from fleetform.checker.invariant import Invariant, Violation
from fleetform.model.live import LiveResource
from fleetform.model.selection import Selection

_GOES = frozenset({"volume.remove", "volume.forget", "volume.snapshot"})


def check_policy_obeyed(reading: Reading) -> Iterator[Violation]:
    """Deleted is what both documents want deleted, and put aside what the ledger's says so of."""
    for change, step in reading.steps:
        row = reading.row(step.resource)
        if step.verb not in _GOES or row is None:
            continue
        policy = _policy(row)
        declared = reading.declared(step.resource)
        wanted = policy if declared is None else declared.document.get("deletion_policy", "retain")
        let_go = step.resource in reading.desired.removed and not reading.permissions.destroy
        if step.verb == "volume.remove" and (policy, wanted) != ("delete", "delete"):
            yield Violation(
                Invariant.POLICY_OBEYED,
                f"the data of {step.resource} would be deleted, and its policy is `{policy}`",
            )
        if (step.verb == "volume.snapshot") != (policy == "snapshot" and not let_go):
            yield Violation(
                Invariant.POLICY_OBEYED,
                f"{step.verb} is planned for {change.key}, and its policy is `{policy}`",
            )


def check_snapshot_beside(reading: Reading) -> Iterator[Violation]:
    """What is put aside gets a name of its own beside where it lay, or it could not be a rename."""
    for _, step in reading.steps:
        row = reading.row(step.resource)
        if step.verb != "volume.snapshot" or row is None:
            continue
        path, into = str(step.arguments.get("path", "")), str(step.arguments.get("into", ""))
        beside = into.rpartition("/")[0] == path.rpartition("/")[0] and into.startswith(path)
        own = row.uid[:12] in into.rpartition("/")[2]
        if path != json.loads(row.document).get("path") or not beside or not own or into == path:
            yield Violation(
                Invariant.SNAPSHOT_BESIDE,
                f"the snapshot of {step.resource} at {path} would be {into}",
            )


def check_loss_seen(reading: Reading) -> Iterator[Violation]:
    """An empty directory in the place of one that is gone looks well and hides that its data is."""
    asked = Selection(reading.scope.replaces)
    gone = {one.resource for one in reading.live.drift if one.field == "directory"}
    for _, step in reading.steps:
        row = reading.row(step.resource)
        if step.verb != "volume.update" or "take" not in step.arguments or row is None:
            continue
        known_as = reading.earlier_names.get(step.resource, step.resource)
        if row.digest and not (known_as in gone and asked.selects(step.resource, "")):
            yield Violation(
                Invariant.LOSS_SEEN, f"{step.key} would create a directory that is missing"
            )


def _policy(row: LiveResource) -> str:
    # One that was never made in whole has no document: nothing is known to be deletable.
    document = json.loads(row.document) if row.document else {}
    return str(document.get("deletion_policy", "retain"))
