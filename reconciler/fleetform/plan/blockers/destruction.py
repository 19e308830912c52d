"""Deleting and ending running work need a permission: the rules last applied, or a flag."""

from __future__ import annotations

from fleetform.model.plan import Action, Change, HeldBy
from fleetform.plan.draft import Sheet


def hold_destruction(sheet: Sheet) -> None:
    if sheet.permissions.allow_destroy or sheet.rules.allow_destroy:
        return
    for key, change in list(sheet.changes.items()):
        if change.destructive and not _restart_allowed(sheet, change):
            sheet.hold(
                key,
                HeldBy.DESTRUCTIVE,
                "it deletes data or hosts, or ends running work",
                _cure(sheet),
            )


def _cure(sheet: Sheet) -> str:
    if sheet.desired.environment.rules.allow_destroy:
        return "--allow-destroy; the rule in environment.yaml applies from the next plan on"
    return "--allow-destroy, or `allow_destroy: true` in the environment's rules"


def _restart_allowed(sheet: Sheet, change: Change) -> bool:
    """A restart in the same place has a permission of its own; the kind has asked for it."""
    return change.key.kind == "run" and change.action is Action.REPLACE and not change.replaces
