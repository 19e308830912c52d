"""
Which changes of a preview were asked for, as nothing else of a stack of hosts may change, and how they are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fleetform.providers.contract.hosts import CreatedHost, Report
from fleetform.providers.pulumi.aws.batch_record import BatchRecord
from fleetform.providers.pulumi.aws.program import ADDRESS, host_uid
from fleetform.providers.pulumi.aws.settled_hosts import INSTANCE
from fleetform.providers.pulumi.engine.changes import Action, Change, Phase
from fleetform.providers.pulumi.engine.failures import FailureKind, error_of, failure

__all__ = ["require_only", "teller", "without_unused"]

_ROOT_TAGS = "rootBlockDevice.tags"


def require_only(
    stack: str,
    planned: Sequence[Change],
    action: Action,
    names: frozenset[str],
    *more: Action,
) -> None:
    """
    Make sure that a preview has the changes that were asked for, and those that finish earlier creates, and no other.

    Raises:
        PermanentError: It names the others.
    """
    others = [
        f"{one.action} {one.name}"
        for one in planned
        if (one.action not in {action, *more} or one.name not in names) and not _finishes(one)
    ]
    if others:
        unplanned = failure(FailureKind.UNPLANNED, where=stack, why=", ".join(others))
        raise error_of(unplanned)


def _finishes(change: Change) -> bool:
    """Tell whether a change finishes a create that was cut off: the plugin tags the root disk once the instance runs."""
    paths = [one.path for one in change.properties]
    is_update = change.action is Action.UPDATE and change.type == INSTANCE
    return is_update and bool(paths) and all(path.startswith(_ROOT_TAGS) for path in paths)


def without_unused(planned: Sequence[Change], there: Mapping[str, CreatedHost]) -> list[Change]:
    """Leave out the deletion of addresses whose hosts are gone: nothing uses them."""
    return [
        one
        for one in planned
        if not (
            one.action is Action.DELETE and one.type == ADDRESS and host_uid(one.name) not in there
        )
    ]


def teller(record: BatchRecord, report: Report) -> Callable[[Change], None]:
    """Return what turns changes of instances into sentences."""
    words = {
        (Action.CREATE, Phase.STARTED): "is being created",
        (Action.CREATE, Phase.DONE): "is created",
        (Action.DELETE, Phase.STARTED): "is being deleted",
        (Action.DELETE, Phase.DONE): "is deleted",
    }

    def tell(change: Change) -> None:
        word = words.get((change.action, change.phase))
        if word is not None and change.type == INSTANCE:
            cloud_id = f" ({change.id})" if change.id else ""
            report(f"host {record.hosts.get(change.name, change.name)}{cloud_id} {word}")

    return tell
