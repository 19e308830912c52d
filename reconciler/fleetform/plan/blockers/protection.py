"""
Protection, as the ledger has it: lifting it is a change that comes first.

A commit that lifts the protection and removes the resource at once is held: the two steps are
what makes a slip of the hand visible. So is one that ends a protected run at work, whatever it is
called. Forgetting is held too: what nobody knows of any more is protected by nobody. And a fleet
does not take its hosts from under a protected run.
"""

from __future__ import annotations

import json

from fleetform.model.plan import Action, Change, HeldBy, Reason
from fleetform.model.verbs import Verb
from fleetform.model.volume import mounted_volumes
from fleetform.plan.draft import PlanDraft
from fleetform.plan.impact import User, ends_with, hold_while_used, users
from fleetform.spec.desired import ResourceKey

ENDING = frozenset({Action.REPLACE, Action.DELETE, Action.FORGET, Action.ARCHIVE})
"""Actions after which the earlier resource no longer exists."""


def hold_protected(draft: PlanDraft) -> None:
    for key, change in list(draft.changes.items()):
        if not _ends(change):
            continue
        row = draft.live.resources.get(draft.row_key(change))
        if row is not None and row.protected:
            draft.hold(
                key,
                HeldBy.PROTECTION,
                "it was applied with `protect: true`",
                "first apply `protect: false` alone",
            )
        elif key.kind == "fleet" and (run := _sheltered(draft, change)):
            draft.hold(
                key,
                HeldBy.PROTECTION,
                f"run/{run} is running on it and was applied with `protect: true`",
                f"plan again once it has ended, or apply `protect: false` to run/{run} first",
            )


def _sheltered(draft: PlanDraft, fleet: Change) -> str:
    """The first protected run that would lose its hosts with the fleet's, or nothing."""
    # What has lost a host already has nothing left there that anybody could keep from it, and
    # would wait for ever where only this change finds out.
    gone = {one.part for one in draft.live.drift if one.field == "host"}
    for work in draft.live.work:
        row = draft.live.resources.get(ResourceKey("run", work.run))
        is_lost = not gone.isdisjoint(work.hosts)
        if ends_with(draft, fleet, work) and not is_lost and row is not None and row.protected:
            return work.run
    return ""


def _ends(change: Change) -> bool:
    # Nothing is left to protect, and lifting the protection first would be held for that.
    if Reason.DATA_LOST in change.reasons:
        return False
    # Of a fleet: `update` may have its hosts exchanged under what runs on them.
    return change.action in ENDING or change.destructive


# Deleting and ending running work need a permission: the rules last applied, or a flag.


def hold_destruction(draft: PlanDraft) -> None:
    if draft.permissions.allow_destroy or draft.rules.allow_destroy:
        return
    for key, change in list(draft.changes.items()):
        if change.destructive and not _restart_allowed(draft, change):
            draft.hold(
                key,
                HeldBy.DESTRUCTIVE,
                "it deletes data or hosts, or ends running work",
                _cure(draft),
            )


def _cure(draft: PlanDraft) -> str:
    if draft.desired.environment.rules.allow_destroy:
        return "--allow-destroy; the rule in environment.yaml applies from the next plan on"
    return "--allow-destroy, or `allow_destroy: true` in the environment's rules"


def _restart_allowed(draft: PlanDraft, change: Change) -> bool:
    """A restart in the same place has a permission of its own; the kind has asked for it."""
    return change.key.kind == "run" and change.action is Action.REPLACE and not change.replaces


# A fleet is not forgotten while somebody works on it: its jobs would be nobody's.

_WORKS = ("is running on it", "are running on it")
_MAY_WORK = ("may be running on it", "may be running on it")


def hold_forgotten_in_use(draft: PlanDraft) -> None:
    going = {
        key
        for key, change in draft.changes.items()
        if any(step.verb == Verb.FLEET_FORGET for step in change.steps)
    }
    if not going:
        return
    named: dict[ResourceKey, list[User]] = {}
    anywhere: list[User] = []
    for user in users(draft):
        fleets = json.loads(user[1].document).get("fleets")
        for name in fleets or ():
            named.setdefault(ResourceKey("fleet", name), []).append(user)
        if not fleets:
            # Who names no fleet may be at work on any of them.
            anywhere.append(user)
    for key in sorted(going):
        here = named.get(key, [])
        if here or anywhere:
            hold_while_used(draft, key, [*here, *anywhere], _WORKS if here else _MAY_WORK)


# What somebody else owns is neither taken nor written over, whatever flag is given, and neither is
# what lies around it or within: that would go with it, or take it along.
# A plan sees what the ledger says, and what whoever made it has looked up on this machine.

_WRITES = frozenset({Action.CREATE, Action.REPLACE, Action.ADOPT, Action.UPDATE})
_FINDS = frozenset({Action.ADOPT})


def hold_owned_elsewhere(draft: PlanDraft) -> None:
    for key, claim in draft.live.claims.items():
        change = draft.changes.get(key)
        if change is not None and change.action in (_FINDS if claim.missing else _WRITES):
            draft.hold(
                key,
                # A volume of ours is in the way as well as anybody else's, and so is what is no
                # directory.
                HeldBy.DEPENDENCY
                if claim.is_file or claim.missing or claim.owner_uid == draft.live.environment_uid
                else HeldBy.OWNER,
                claim.sentence,
                claim.cure,
            )


_MOUNTS = ("has it mounted", "have it mounted")


# A volume stays what and where it is while somebody at work has it mounted.
# Who is stopped by the same plan is no obstacle: the step that takes the data away waits for that end.
# Nothing else ends what is at work. What replaces a run once that has finished ends nothing, and what
# has left the tree while it was at work may go on for as long as its end takes.


def hold_volumes_in_use(draft: PlanDraft) -> None:
    moving = {
        key
        for key, change in draft.changes.items()
        if key.kind == "volume"
        and (
            change.action in ENDING or any(one.verb == Verb.VOLUME_WITHDRAW for one in change.steps)
        )
    }
    if not moving:
        return
    ended = {
        step.resource
        for change in draft.changes.values()
        for step in change.steps
        if step.verb == Verb.RUN_STOP
    }
    here: dict[ResourceKey, list[User]] = {}
    for row, execution in users(draft):
        if row.key not in ended:
            for name in mounted_volumes(execution.document):
                here.setdefault(ResourceKey("volume", name), []).append((row, execution))
    for key in sorted(moving & here.keys()):
        hold_while_used(draft, key, here[key], _MOUNTS)
