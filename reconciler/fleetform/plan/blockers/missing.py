"""
Nothing starts on a volume whose directory was seen to be gone.

Its job could not mount it, and each retry would fail in the same way. The recorded drift is evidence enough:
what was seen stays in force until a look finds the directory, or a person begins with an empty one.
"""

from __future__ import annotations

from fleetform.model.drift import GONE
from fleetform.model.mounts import mounts
from fleetform.model.plan import Action, HeldBy, Reason
from fleetform.plan.draft import Sheet
from fleetform.spec.desired import ResourceKey

_CURE = (
    "put the data back and check it with `fleetform drift`, or start with an empty volume:"
    " `fleetform apply --refresh --replace {key}`"
)


def hold_on_missing_volumes(sheet: Sheet) -> None:
    gone = _missing_volumes(sheet)
    if not gone:
        return
    for key in sorted(sheet.changes):
        declared = sheet.wanted.get(key)
        if declared is None or not any(
            step.verb == "run.submit" for step in sheet.changes[key].steps
        ):
            continue
        for names in mounts(declared.document):
            # Of alternatives, one that is there is enough.
            if names and gone.issuperset(names):
                volume = ResourceKey("volume", names[0])
                detail = f"it mounts {volume}, whose directory is gone"
                sheet.hold(key, HeldBy.DRIFT, detail, _CURE.format(key=volume))
                break


def _missing_volumes(sheet: Sheet) -> set[str]:
    """Name the volumes without a directory, less those that this plan makes again."""
    return {
        one.drift.resource.name
        for one in sheet.live.recorded_drift
        if one.drift.resource.kind == "volume"
        and one.drift.field == "directory"
        and one.drift.seen == GONE
        and not _is_made_again(sheet, one.drift.resource)
    }


def _is_made_again(sheet: Sheet, key: ResourceKey) -> bool:
    change = sheet.changes.get(key)
    return change is not None and (
        change.action is not Action.UPDATE or Reason.REPLACE_ASKED in change.reasons
    )
