"""
Runs that no host could start as their owner: the account is missing there, or it would be root.

Judged by what hosts reported last. A host that has reported nothing is no obstacle: its agent refuses
a job whose account is missing before anything of it starts, and the run waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fleetform.model.account import ROOT, account_obstacle
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.plan import HeldBy
from fleetform.model.verbs import Verb
from fleetform.plan.draft import PlanDraft
from fleetform.plan.kinds.fleet import is_elsewhere
from fleetform.spec.desired import ResourceKey

__all__ = ["hold_ungranted_root", "hold_without_account"]

_GRANT = "write `grants: {root: true}` in environment.yaml, or remove `run_as: root`"
_UNGRANTED = "jobs of fleet {} would run as root, which the environment does not grant"
_CURE = "create the account on the host, or choose other `fleets`; `fleetform fleet check` shows what a host lacks"
_SHOWN_MAX = 3
_GONE = frozenset({InstanceState.TERMINATING, InstanceState.TERMINATED})


def hold_ungranted_root(draft: PlanDraft) -> None:
    """Hold fleets of shared hosts that would run jobs as root; a fleet of this machine needs no grant."""
    for key in sorted(draft.changes):
        declared = draft.wanted.get(key)
        if key.kind == "fleet" and declared is not None and _is_ungranted(draft, declared.document):
            draft.hold(key, HeldBy.ACCOUNT, _UNGRANTED.format(key.name), _GRANT)


def _is_ungranted(draft: PlanDraft, document: Mapping[str, Any]) -> bool:
    is_root = is_elsewhere(document) and document.get("run_as") == ROOT
    return is_root and not draft.desired.environment.grants_root


def hold_without_account(draft: PlanDraft) -> None:
    # Most environments have no host that judges owners, and thousands of runs.
    if not any(one.agent_account for one in draft.live.instances):
        return
    known: dict[object, str] = {}
    for key in sorted(draft.changes):
        declared = draft.wanted.get(key)
        submits = any(step.verb == Verb.RUN_SUBMIT for step in draft.changes[key].steps)
        if declared is None or not submits:
            continue
        document = declared.document
        choice = (
            tuple(document.get("fleets", ())),
            document.get("queue"),
            document.get("nodes", 1),
        )
        if choice not in known:
            known[choice] = _obstacle(draft, document)
        if known[choice]:
            draft.hold(key, HeldBy.ACCOUNT, known[choice], _CURE)


def _obstacle(draft: PlanDraft, document: Mapping[str, Any]) -> str:
    """Say why the run finds too few hosts for its owner; empty where it may find enough."""
    names = _fleets(draft, document)
    hosts = [
        _as_declared(draft, one)
        for one in draft.live.instances
        if one.state not in _GONE and (not names or one.fleet in names)
    ]
    there = {one.fleet for one in hosts}
    wanted = names or {key.name for key in draft.wanted if key.kind == "fleet"}
    if not hosts or wanted - there:
        # One that is about to be created may have the account.
        return ""
    obstacles = [why for one in hosts if (why := _obstacle_on(draft, one))]
    if len(hosts) - len(obstacles) >= document.get("nodes", 1):
        return ""
    shown = list(dict.fromkeys(obstacles))
    more = len(shown) - _SHOWN_MAX
    return "; ".join(shown[:_SHOWN_MAX]) + (f"; and {more} more" if more > 0 else "")


def _obstacle_on(draft: PlanDraft, instance: Instance) -> str:
    declared = draft.wanted.get(ResourceKey("fleet", instance.fleet))
    if declared is not None and _is_ungranted(draft, declared.document):
        return _UNGRANTED.format(instance.fleet)
    return account_obstacle(instance, draft.live.person)


def _fleets(draft: PlanDraft, document: Mapping[str, Any]) -> set[str]:
    """Name the fleets that a run may use; empty: all."""
    own = set(document.get("fleets", ()))
    queue = draft.wanted.get(ResourceKey("queue", document.get("queue") or ""))
    allowed = set() if queue is None else set(queue.document.get("fleets", ()))
    return own & allowed if own and allowed else own or allowed


def _as_declared(draft: PlanDraft, instance: Instance) -> Instance:
    declared = draft.wanted.get(ResourceKey("fleet", instance.fleet))
    if declared is None:
        return instance
    return replace(instance, run_as=declared.document.get("run_as", ""))
