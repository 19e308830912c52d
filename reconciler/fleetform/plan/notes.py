"""
Notes on a plan: what people must know that is no part of what was decided.

Times, ages and readings change from one minute to the next; outside the digest they do not make two
equal plans differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from fleetform.model.drift import Drift
from fleetform.model.figures import counted
from fleetform.model.instance import InstanceState
from fleetform.model.live import Live
from fleetform.model.offers import lacks_offer, offer_facts, terms_of
from fleetform.model.plan import Action, Change, Plan
from fleetform.model.rollout import EARLY
from fleetform.model.run_state import Outdated
from fleetform.model.verbs import Verb
from fleetform.model.volume import DISK
from fleetform.model.windows import loosened, next_spell, spell_at
from fleetform.plan.costs import cloud_costs
from fleetform.plan.draft import LEAVING, PlanDraft
from fleetform.plan.hosts import hosts_brought_in
from fleetform.plan.impact import work_impacted
from fleetform.plan.offers import asked_offers
from fleetform.plan.run_costs import run_costs
from fleetform.plan.status import outdated_by_plan, stale_results, still_aborted, unknown_runs
from fleetform.spec.desired import ResourceKey, Rules
from fleetform.spec.names import natural_order

__all__ = ["GOING_MIN", "annex_of", "cautions", "with_notes"]


def annex_of(draft: PlanDraft, now_ms: int) -> dict[str, Any]:
    """
    Depth, time, what was read, and how long the work that would end has been running.

    `hosts` says how old it is what the ledger knows of them. `drift` has what this look at the actual
    state found, and what earlier looks found that was not seen healed since, each with `seen_at_ms`.

    `at_stake` has, by address, running work that the plan or something held would end: `ms` that
    the longest of it has been going, `gpu_ms` of all of it, and `since` when that counts: `start`,
    because runs do not report their checkpoints yet. `hosts_removed` names, by fleet, the hosts
    that its change removes, `removal_waits_for` the runs with jobs there, `hosts_set_up` those on which its change installs and starts the agent,
    `hosts_created` those that its change buys from a cloud, and `hosts_replaced` has the offer and the image of each that another one replaces.
    `rollouts` says, by fleet, how far its rollout is. `hosts_joining` has, by fleet, the hosts that it works without until they answer, with the reason,
    `hosts_uncreated` the names of those among them, and of those that are removed, that their cloud has not created, `hosts_waiting` those for which no cloud has capacity, and `hosts_silent` those that were set up and cannot be reached now. `fleet_costs` are those of `cloud_costs`, and
    `run_costs` those of `run_costs`.
    `offers` has, by fleet that changes, its offers in the order in which they are asked for at the time of the plan; absent unless
    its cloud has refused one lately. `offer_warnings` has what people should know of them.
    """
    return {
        "depth": "ledger" if draft.live.observed_at_ms is None else "refresh",
        "observed_at_ms": draft.live.observed_at_ms,
        "drift": [
            {
                "resource": str(one.resource),
                "path": one.path,
                "class": one.drift_class.value,
                "before": one.expected,
                "after": one.seen,
                "right_at_ms": one.right_at_ms,
                "changed_at_ms": one.changed_at_ms,
                "by": one.by,
                "seen_at_ms": seen_at_ms,
            }
            for one, seen_at_ms in _drift(draft)
        ],
        "planned_at_ms": now_ms,
        "hosts": _hosts(draft),
        "serial": draft.live.serial,
        "ledger_status": draft.live.status.value,
        "resources": len(draft.wanted),
        "unchanged": _unchanged(draft),
        "at_stake": _impact(draft, now_ms),
        "notes": list(draft.live.notes),
        "windows": _windows(draft, now_ms),
        "stale": [
            {
                "name": one.key.name,
                "inherited": one.document is Outdated.INHERITED,
                "inputs": list(one.inputs),
                **({"edited": True} if one.document is Outdated.DOCUMENT else {}),
            }
            for one in stale_results(draft)
        ],
        "outdates": list(outdated_by_plan(draft)),
        # Absent where no host goes: the record of most plans stays as it was.
        **({"hosts_removed": removed} if (removed := _hosts_removed(draft)) else {}),
        **({"removal_waits_for": runs} if (runs := _removal_waits_for(draft, removed)) else {}),
        **({"hosts_set_up": new} if (new := _hosts_brought_in(draft, bought=False)) else {}),
        **({"hosts_created": new} if (new := _hosts_brought_in(draft, bought=True)) else {}),
        **({"hosts_replaced": old} if (old := _hosts_replaced(draft)) else {}),
        **({"pinned_images": images} if (images := _pinned_images(draft)) else {}),
        **({"rollouts": rollouts} if (rollouts := _rollouts(draft)) else {}),
        **({"hosts_joining": late} if (late := _hosts_late(draft, lack_offer=False)) else {}),
        **({"hosts_uncreated": names} if (names := _hosts_uncreated(draft, late, removed)) else {}),
        **({"hosts_waiting": late} if (late := _hosts_late(draft, lack_offer=True)) else {}),
        **({"hosts_silent": silent} if (silent := _hosts_silent(draft)) else {}),
        **({"offers": offers} if (offers := _refused_offers(draft)) else {}),
        **({"offer_warnings": said} if (said := _offer_warnings(draft)) else {}),
        **({"fleet_costs": hourly} if (hourly := cloud_costs(draft)) else {}),
        **({"run_costs": costs} if (costs := run_costs(draft)) else {}),
    }


def _drift(draft: PlanDraft) -> list[tuple[Drift, int | None]]:
    now = {(one.resource, one.path): one for one in draft.live.drift}
    earlier = [one for one in draft.live.recorded_drift if one.place not in now]
    return [
        *((one, draft.live.observed_at_ms) for one in now.values()),
        *((one.drift, one.seen_at_ms) for one in earlier),
    ]


def _windows(draft: PlanDraft, now_ms: int) -> list[dict[str, Any]]:
    """The freeze windows that are open, and when each of the others opens next."""
    spells = [
        spell
        for window in draft.rules.freeze
        if (spell := spell_at(window, now_ms) or next_spell(window, now_ms))
    ]
    return [
        {
            "reason": one.window.reason,
            "only": one.window.only,
            "open": one.begin_ms <= now_ms,
            "begin_ms": one.begin_ms,
            "end_ms": one.end_ms,
        }
        for one in sorted(spells, key=lambda one: (one.begin_ms, one.window.reason))
    ]


def _hosts(draft: PlanDraft) -> dict[str, Any]:
    """How many hosts there are, and since when nothing is written of the one heard longest ago."""
    seen = [one.seen_at_ms for one in draft.live.instances if one.seen_at_ms is not None]
    return {
        "count": len(draft.live.instances),
        "never_seen": len(draft.live.instances) - len(seen),
        "seen_at_ms": min(seen, default=None),
    }


def _hosts_brought_in(draft: PlanDraft, *, bought: bool) -> dict[str, list[str]]:
    """Name the hosts that changes of fleets bring in: instances of clouds, or other machines that exist."""
    found = {
        key.name: hosts_brought_in(draft, change, bought=bought)
        for key, change in sorted(draft.changes.items())
        if key.kind == "fleet"
    }
    return {name: hosts for name, hosts in found.items() if hosts}


def _hosts_replaced(draft: PlanDraft) -> dict[str, dict[str, dict[str, Any]]]:
    """Return, by fleet and host, what the hosts of clouds are that other ones replace."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for key, change in draft.changes.items():
        names = {
            name
            for step in change.steps
            for argument in ("unfit", "exchange")
            for name in step.arguments.get(argument, ())
        }
        for one in draft.live.instances if names else ():
            if one.is_bought and one.name in names and one.fleet == draft.row_key(change).name:
                image = {"image": one.endpoint["image"]} if "image" in one.endpoint else {}
                found.setdefault(key.name, {})[one.name] = {**terms_of(one.endpoint), **image}
    return dict(sorted(found.items()))


def _pinned_images(draft: PlanDraft) -> dict[str, list[dict[str, str]]]:
    """Return, by fleet, the images that hosts of clouds have and that new ones of such a region and type get too."""
    found: dict[str, list[dict[str, str]]] = {}
    for key, change in sorted(draft.changes.items()):
        is_looked_up = any(one.path in {"aws.image", "aws.image_renewal"} for one in change.fields)
        if (
            key.kind != "fleet"
            or is_looked_up
            or not any("offers" in one.arguments for one in change.steps)
        ):
            continue
        name = draft.row_key(change).name
        images = dict.fromkeys(
            tuple(str(one.endpoint[field]) for field in _IMAGE_OF)
            for one in draft.live.instances
            if one.fleet == name and one.is_bought and one.endpoint.keys() >= {*_IMAGE_OF}
        )
        if images:
            found[key.name] = [dict(zip(_IMAGE_OF, one, strict=True)) for one in images]
    return found


_IMAGE_OF = ("region", "instance_type", "image")


def _refused_offers(draft: PlanDraft) -> dict[str, list[dict[str, Any]]]:
    """Return the offers of fleets that change in the order in which they are asked for, where that is not the order of the step."""
    found: dict[str, list[dict[str, Any]]] = {}
    for key, change in draft.changes.items():
        if not any(step.arguments.get("offers") for step in change.steps):
            continue
        offers = asked_offers(draft, key.name)
        if any(one.is_refused(draft.now_ms) for one in offers):
            found[key.name] = [offer_facts(one, draft.now_ms) for one in offers]
    return dict(sorted(found.items()))


def _offer_warnings(draft: PlanDraft) -> dict[str, str]:
    """Return what people should know of the offers of fleets that change, by fleet."""
    found = {
        key.name: draft.live.offers[key.name].warning
        for key, change in sorted(draft.changes.items())
        if any(step.arguments.get("offers") for step in change.steps)
    }
    return {name: text for name, text in found.items() if text}


def _rollouts(draft: PlanDraft) -> dict[str, dict[str, int]]:
    """Say by fleet how far its rollout is."""
    return {name: asdict(one) for name, one in sorted(draft.live.exchanging.items())}


def _hosts_late(draft: PlanDraft, *, lack_offer: bool) -> dict[str, dict[str, str]]:
    """Name the hosts that could not be created, or else not be set up yet, and why; without those that a change is about."""
    found: dict[str, dict[str, str]] = {}
    touched = {key.name for key in draft.changes if key.kind == "fleet"}
    for one in draft.live.instances:
        if (
            one.is_joining
            and one.message
            and one.fleet not in touched
            and lacks_offer(one.endpoint) == lack_offer
        ):
            found.setdefault(one.fleet, {})[one.name] = one.message
    return dict(sorted(found.items()))


def _hosts_uncreated(draft: PlanDraft, *named: Mapping[str, Collection[str]]) -> list[str]:
    """Name the hosts among these that their cloud has not created: none of them can answer, or is deleted."""
    return [
        one.name
        for one in draft.live.instances
        if one.is_missing and any(one.name in hosts.get(one.fleet, ()) for hosts in named)
    ]


def _hosts_silent(draft: PlanDraft) -> dict[str, dict[str, str]]:
    """Name the hosts that cannot be reached, and why; a fleet that goes says that of its own itself."""
    found: dict[str, dict[str, str]] = {}
    for one in draft.live.instances:
        stays = ResourceKey("fleet", one.fleet) in draft.wanted
        if one.is_silent and one.state is InstanceState.UNREACHABLE and stays:
            asks = "`fleetform drift` asks its cloud whether it exists" if one.is_bought else ""
            found.setdefault(one.fleet, {})[one.name] = "; ".join(filter(None, (one.message, asks)))
    return dict(sorted(found.items()))


def _removal_waits_for(draft: PlanDraft, removed: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Name, by fleet, the runs that have jobs on the hosts that its change removes."""
    found: dict[str, set[str]] = {}
    for one in draft.live.work:
        if not set(removed.get(one.fleet, ())).isdisjoint(one.hosts):
            found.setdefault(one.fleet, set()).add(one.run)
    return {fleet: sorted(found[fleet], key=natural_order) for fleet in sorted(found)}


def _hosts_removed(draft: PlanDraft) -> dict[str, list[str]]:
    """Name the hosts that changes of fleets remove, blocked ones too; without those that leave already."""
    found: dict[str, list[str]] = {}
    for change in (*draft.changes.values(), *(one.change for one in draft.held.values())):
        if change.key.kind != "fleet" or not draft.live.instances:
            continue
        verbs = {step.verb for step in change.steps}
        stays = _places_taken(draft, change)
        names = [
            one.name
            for one in draft.live.instances
            if one.fleet == change.key.name
            and one.state is not InstanceState.TERMINATING
            and (
                Verb.FLEET_REMOVE in verbs or (Verb.FLEET_UPDATE in verbs and one.name not in stays)
            )
        ]
        if names:
            found[change.key.name] = sorted(names, key=natural_order)
    return dict(sorted(found.items()))


def _places_taken(draft: PlanDraft, change: Change) -> set[str]:
    """Name the hosts that an update leaves in the fleet, or replaces: one that came early too, unless its place has its host."""
    updates = [step.arguments for step in change.steps if step.verb == Verb.FLEET_UPDATE]
    names = {entry["name"] for one in updates for entry in one["instances"]}
    templates = {"", *(one.get("template", "") for one in updates)}
    there = {
        one.name
        for one in draft.live.instances
        if one.template_digest in templates and one.state is not InstanceState.TERMINATING
    }
    return names | {f"{name}{EARLY}" for name in names - there}


def _impact(draft: PlanDraft, now_ms: int) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    held = (one.change for one in draft.held.values())
    for change in (*draft.changes.values(), *held):
        if change.stake is None:
            continue
        spans = [
            (max(0, now_ms - one.started_at_ms), one.gpus)
            for one in work_impacted(draft, change)
            if one.started_at_ms is not None
        ]
        if spans:
            found[str(change.key)] = {
                "ms": max(span for span, _ in spans),
                "gpu_ms": sum(span * gpus for span, gpus in spans),
                "since": "start",
            }
    return dict(sorted(found.items()))


def _unchanged(draft: PlanDraft) -> int:
    """Declared resources that nothing happens to and nothing holds."""
    touched = draft.changes.keys() | draft.held.keys()
    return len(draft.wanted) - len(draft.wanted.keys() & touched)


# What a person should hear about a plan as a whole before reading what it does.
# That much goes, because a tree that was read in part looks like one from which much was taken out;
# that a plan goes back, because a pipeline that is run again says nothing of what came since; that
# nothing can start, because a run without a host waits and says nothing by itself; and that rules
# change, because they are not those by which this plan was judged.

GOING_MIN = 3
"""Of two resources one is half; a caution would say nothing."""


def cautions(draft: PlanDraft) -> tuple[str, ...]:
    """Return sentences, the gravest first."""
    return (
        *_much_goes(draft),
        *_goes_back(draft),
        *_rules_change(draft),
        *_nowhere_to_run(draft),
        *_new_disks(draft),
    )


def _much_goes(draft: PlanDraft) -> tuple[str, ...]:
    """Held or not: what the budget keeps today goes with the next flag."""
    # Somebody who asks for the removal of everything has been told so.
    if draft.permissions.destroy:
        return ()
    changes = (*draft.changes.values(), *(held.change for held in draft.held.values()))
    going = sum(change.action in LEAVING and _is_there(draft, change) for change in changes)
    there = len(draft.present)
    if going < GOING_MIN or going * 2 <= there:
        return ()
    return (
        (
            f"{going} of the {counted(there, 'resource')} that exist are removed from the"
            " configuration: that is more than half."
        ),
    )


def _goes_back(draft: PlanDraft) -> tuple[str, ...]:
    """An older commit over the one that it became: a revert is a commit of its own."""
    newer = draft.live.newer_commit
    if not newer or draft.permissions.destroy or not (draft.changes or draft.held):
        return ()
    return (
        (
            f"Commit {draft.desired.commit[:12]} is older than {newer[:12]}, which was applied last: this"
            " plan returns to the older configuration."
        ),
    )


def _nowhere_to_run(draft: PlanDraft) -> tuple[str, ...]:
    """Runs are submitted, and once this plan is carried out there is no fleet."""
    steps = [step for change in draft.changes.values() for step in change.steps]
    waiting = [step.resource.name for step in steps if step.verb == Verb.RUN_SUBMIT]
    if not waiting:
        return ()
    fleets = {key for key in draft.present if key.kind == "fleet"}
    fleets |= {step.resource for step in steps if step.verb in {Verb.FLEET_MAKE, Verb.FLEET_ADOPT}}
    fleets -= {
        step.resource for step in steps if step.verb in {Verb.FLEET_REMOVE, Verb.FLEET_FORGET}
    }
    if fleets:
        return ()
    first = min(waiting, key=natural_order)
    more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
    verb = "wait" if more else "waits"
    cure = "declare a fleet"
    if any(key.kind == "fleet" for key in (*draft.desired.resources, *draft.desired.beyond)):
        cure = "each declared fleet is blocked or left out of this plan"
    return ((f"There will be no fleet, so {first}{more} {verb}: {cure}."),)


def _new_disks(draft: PlanDraft) -> Iterator[str]:
    """A volume that was removed and is declared again has its name, and not its data."""
    for key, change in sorted(draft.changes.items()):
        retained = draft.live.retained_disks.get(draft.known_as(key).name)
        if key.kind != "volume" or change.action is not Action.CREATE or retained is None:
            continue
        disks = [step.arguments[DISK] for step in change.steps if DISK in step.arguments]
        if any(not one["registered"] and not one["place"]["snapshot"] for one in disks):
            yield (
                f"Volume {key.name} gets a new, empty disk: {retained}, the disk of an earlier volume of this name, was not"
                f" deleted. To use it with its data, write `volume_id: {retained}` instead of `size`."
            )


def _is_there(draft: PlanDraft, change: Change) -> bool:
    return draft.row_key(change) in draft.present


def _rules_change(draft: PlanDraft) -> tuple[str, ...]:
    if not draft.live.ledger_id:
        return ()  # Before the first apply there is nothing that they could have allowed.
    steps = (step for change in draft.changes.values() for step in change.steps)
    after = next(
        (Rules.of(step.arguments["rules"]) for step in steps if step.verb == Verb.RULES_SET), None
    )
    if after is None:
        return ()
    paths = loosened(draft.rules, after)
    if not paths:
        return (
            "The changed rules apply from the next plan on; this plan is judged by the rules applied last.",
        )
    verb = "allows" if len(paths) == 1 else "allow"
    return (
        (
            f"{' and '.join(paths)} {verb} more from the next plan on; this plan is judged by the rules"
            " applied last."
        ),
    )


# Adds to a finished plan what people must know of runs that it does not change.
# Each note is a view of the plan and of what it was made from, so it is in the annex, outside the digest.


def with_notes(plan: Plan, live: Live) -> Plan:
    """
    Add to the annex what there is to note; most plans stay as they are.

    `still_aborted` names the aborted runs that had waited for what this plan runs again. `unknown` has
    the runs at work of which nothing is known, each with its `hosts` that do not answer.
    """
    notes = {"still_aborted": list(still_aborted(plan, live)), "unknown": unknown_runs(plan, live)}
    found = {name: note for name, note in notes.items() if note}
    return replace(plan, annex={**plan.annex, **found}) if found else plan
