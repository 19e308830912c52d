"""What a plan notes about runs that it does not change: unknown ones, and ones that stay aborted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from fleetform.model import figures
from fleetform.model.drift import expected_and_seen
from fleetform.model.figures import counted, first_of
from fleetform.model.plan import Action, Change, HeldBy, Impact, Plan, Reason, Settled
from fleetform.model.run_state import RunState
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import natural_order, split_element
from fleetform.views.element_names import shorten_elements
from fleetform.views.lines import printable
from fleetform.views.moments import age
from fleetform.views.plan.costs import cost_text, disk_cost_text, run_cost_text
from fleetform.views.plan.groups import NAMES_MAX, Group
from fleetform.views.plan.offers import (
    hosts_created,
    hosts_created_text,
    new_hosts_facts,
    next_offers_text,
    offer_warning,
    refused_offers_text,
    refused_until,
    scaling_text,
)
from fleetform.views.plan.preview import preview_failure_text, preview_text
from fleetform.views.plan.rollouts import hosts_replaced_text


def progressing(plan: Plan) -> tuple[ResourceKey, ...]:
    """Name the work in progress of which something is known."""
    unknown = {one["name"] for one in plan.annex.get("unknown", ())}
    return tuple(key for key in plan.progressing if not (key.kind == "run" and key.name in unknown))


def unknown_texts(plan: Plan) -> tuple[str, ...]:
    """Write `run/train is unknown: host local-0 does not answer`, one sentence for equal hosts."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for one in plan.annex.get("unknown", ()):
        alike.setdefault(tuple(one["hosts"]), []).append(one["name"])
    return tuple(_unknown_text(hosts, names) for hosts, names in alike.items())


def _unknown_text(hosts: tuple[str, ...], names: list[str]) -> str:
    are = "is" if len(names) == 1 else "are"
    which = f"{names_text(ResourceKey('run', name) for name in names)} {are} unknown"
    if not hosts:
        return f"{which}: `fleetform why {names[0] if len(names) == 1 else 'NAME'}`"
    if len(hosts) == 1:
        return f"{which}: host {printable(hosts[0])} does not answer"
    return f"{which}: hosts {_host_names(hosts)} do not answer"


def still_aborted_text(plan: Plan) -> str:
    """Write `run/down stays aborted unless it is run again: …`; empty where no run does."""
    names = plan.annex.get("still_aborted", ())
    if not names:
        return ""
    which = names_text(ResourceKey("run", name) for name in names)
    if len(names) == 1:
        return f"{which} stays aborted unless it is run again: `fleetform rerun {names[0]}`"
    return f"{which} stay aborted unless they are run again: `fleetform rerun NAME`"


def names_text(keys: Iterable[ResourceKey]) -> str:
    """List resources, with the elements of an array in one name."""
    elements: dict[str, list[str]] = {}
    for key in keys:
        name, element = split_element(key.name)
        elements.setdefault(f"{key.kind}/{name}", []).extend([element] if element else [])
    names = [
        printable(name + (shorten_elements(inside).text if inside else ""))
        for name, inside in sorted(elements.items(), key=lambda one: natural_order(one[0]))
    ]
    return first_of(names, NAMES_MAX)


# With what a plan compares the configuration, and how old that is.

FRESH_MS = 60_000
"""
Up to this age no note is shown.

The manager of an environment asks its hosts every few seconds; what is a minute old was heard by
an apply that has just ended.
"""


def depth_text(plan: Plan) -> str:
    """Write `compared with the ledger, which last heard of its hosts 2h07m ago`."""
    annex = plan.annex
    if annex.get("depth") == "refresh":
        age = _age(plan, annex.get("observed_at_ms"))
        return "compared with the actual state" + (f" of {figures.span(age)} ago" if age else "")
    age = 0 if annex.get("watched_by") else _age(plan, annex.get("hosts", {}).get("seen_at_ms"))
    text = "compared with the ledger"
    if age:
        text = f"{text}, which last heard of its hosts {figures.span(age)} ago"
    if annex.get("depth") != "preview":
        return text
    failed = len(annex.get("preview_failed", ()))
    where = f", where {counted(failed, 'preview')} failed" if failed else ""
    return f"{text}, and previewed in the clouds{where}"


def _age(plan: Plan, seen_at_ms: int | None) -> int:
    """Milliseconds, or 0 for what is fresh or unknown."""
    planned = plan.annex.get("planned_at_ms")
    if seen_at_ms is None or planned is None:
        return 0
    age: int = planned - seen_at_ms
    return age if age >= FRESH_MS else 0


# Drift that a plan knows of and does not correct: what looks found, and when.

SEEN_EARLIER = "Drift seen earlier; `fleetform plan --refresh` looks again and plans corrections:"


def remaining_drift(plan: Plan) -> list[Mapping[str, Any]]:
    """What differs from what was applied, less the fields that this plan corrects or blocks."""
    handled = {
        (str(change.key), one.path)
        for change in (
            *(one for one in plan.changes if Reason.DRIFTED in one.reasons),
            *(one.change for one in plan.held if one.by is HeldBy.DRIFT),
        )
        for one in change.fields
    }
    return [
        one for one in plan.annex.get("drift", ()) if (one["resource"], one["path"]) not in handled
    ]


def earlier_drift(plan: Plan) -> list[Mapping[str, Any]]:
    """Those of `remaining_drift` that this plan has not looked for itself."""
    looked_ms = plan.annex.get("observed_at_ms")
    return [
        one
        for one in remaining_drift(plan)
        if one.get("seen_at_ms") is not None and one["seen_at_ms"] != looked_ms
    ]


def drift_text(plan: Plan, one: Mapping[str, Any]) -> str:
    """Write `volume data  directory: there (expected) → gone (seen 3m ago)`."""
    kind, _, name = one["resource"].partition("/")
    ago = age(one["seen_at_ms"], plan.annex.get("planned_at_ms", one["seen_at_ms"]))
    what = expected_and_seen(one["path"], one["before"], one["after"], f"{ago} ago")
    return printable(f"{kind} {name}  {what}")


def count_text(plan: Plan) -> str:
    """Write `2 fields differ from what was applied`; empty where no drift remains."""
    count = len(remaining_drift(plan))
    verb = "differs" if count == 1 else "differ"
    return f"{counted(count, 'field')} {verb} from what was applied" if count else ""


# Runs that ended earlier other than `done`, by what a person does about them.


class EarlierRuns(NamedTuple):
    """Those of one sort. `summary` fits into a plan's last line, `headline` stands above the list."""

    summary: str
    headline: str
    runs: tuple[Settled, ...]


def earlier_runs(plan: Plan) -> Iterator[EarlierRuns]:
    """Tell the failed, the unknown and the stopped apart, in this order; what is empty is left out."""
    settled = sorted(plan.settled, key=lambda one: natural_order(one.key.name))
    unknown = tuple(one for one in settled if one.state == RunState.UNKNOWN)
    stopped = tuple(one for one in settled if not one.is_failure)
    failed = tuple(one for one in settled if one not in {*unknown, *stopped})
    for runs, summary, what, cure in (
        (failed, "failed earlier", "failed earlier", _FAILED),
        (unknown, "unknown", "may have run, and no host knows", _AGAIN),
        (stopped, "stopped earlier", "stopped before the end", _AGAIN),
    ):
        if runs:
            headline = f"{counted(len(runs), 'run')} {what}; {cure}"
            yield EarlierRuns(f"{len(runs)} {summary}", headline, runs)


_AGAIN = "`fleetform rerun NAME`"
_FAILED = f"{_AGAIN}, or change the configuration"

# What a plan would come to at once, in a few lines: only where something would not start.

LIST_MAX = 3


def forecast_lines(plan: Plan) -> tuple[str, ...]:
    """
    Sentences, first the one that sums up; none where everything would start at once.

    That is what people expect, and one line less to read in every plan. Where a run may start on
    hosts that the plan creates and whose size they report only then, nothing is said of waiting.
    """
    found = plan.annex.get("forecast") or {}
    if found.get("unknown", {}).get("total"):
        nothing = {"total": 0, "first": []}
        found = {**found, "waits": nothing, "starts": {**nothing, "total": None}}
    waits, impossible = found.get("waits", {}), found.get("impossible", {})
    if not waits.get("total") and not impossible.get("total"):
        return ()
    return tuple(_lines(found))


def _lines(found: dict[str, dict[str, object]]) -> Iterator[str]:
    starts = found["starts"]["total"]
    lists = (("would wait", found["waits"]), ("would be unschedulable", found["impossible"]))
    for word, part in lists:
        total, first = part["total"], part["first"]
        assert isinstance(total, int)
        assert isinstance(first, list)
        if not total:
            continue
        beside = "" if starts is None else f", and {starts or 'none'} would start now"
        # Said once: the runs that start are the same below.
        starts = None
        yield f"{figures.counted(total, 'run')} {word}{beside}:"
        for one in first[:LIST_MAX]:
            reasons = one["reasons"]
            more = (
                f" (and {figures.counted(len(reasons) - 1, 'more reason')})" if reasons[1:] else ""
            )
            yield f"  {printable(one['run'])}: {printable(reasons[0]) if reasons else ''}{more}"
        if total > LIST_MAX:
            yield f"  and {total - LIST_MAX} more"


# What running work a change would end, in words: whose, how much, for how long.

RUNS_MAX = 3


def impact_text(plan: Plan, change: Change) -> str:
    """
    Write `2 hosts with the jobs of train on 8 GPUs, 2h13m so far, 17.7 GPU-hours`.

    Empty for a change that would end nothing. Times come from the annex.
    """
    since = plan.annex.get("at_stake")
    if not since and not change.at_stake and change.stake is None:
        return ""
    parts = [change.at_stake] if change.at_stake else []
    # Of a run, what is at stake is its own work, and said where it is destructive.
    if change.stake is not None and (change.key.kind != "run" or not parts):
        parts.append(f"{_whose(change, change.stake)}{_on(change.stake.gpus)}")
    is_removed = change.key.kind == "fleet" and change.action is not Action.UPDATE
    joint = " with the jobs of " if is_removed else ": "
    return joint.join(parts) + _so_far((since or {}).get(str(change.key)))


def group_impact_text(plan: Plan, group: Group) -> str:
    """Write the stake of a block; of many elements their number and the first of them."""
    change = group.first
    text = impact_text(plan, change)
    if text and group.is_many:
        return f"{len(group.changes)} times, such as {change.at_stake or text}"
    return text


def block_facts(plan: Plan, group: Group, *, ceiling: bool = False) -> Iterator[tuple[str, str]]:
    """
    Yield what a block says below its title: the name of each fact and its text.

    `ceiling`: The change is not supported yet, so its cost is not known, only the most it can be.
    """
    change = group.first
    facts = (
        ("impact", group_impact_text(plan, group)),
        ("hosts removed", hosts_removed_text(plan, change)),
        ("sets up", hosts_set_up_text(plan, change)),
        ("creates", hosts_created_text(plan, change)),
        ("replaces", hosts_replaced_text(plan, change)),
        ("scales", scaling_text(plan, change)),
        *new_hosts_facts(plan, change),
        ("next offers", next_offers_text(plan, change)),
        ("warning", offer_warning(plan, change)),
        ("refused lately", refused_offers_text(plan, change)),
        ("preview", preview_text(plan, change)),
        ("preview failed", preview_failure_text(plan, change)),
        (
            "cost",
            run_cost_text(plan, group)
            or disk_cost_text(change)
            or ("" if group.is_many else _fleet_cost_text(plan, change, ceiling=ceiling)),
        ),
    )
    return ((name, text) for name, text in facts if text)


def _fleet_cost_text(plan: Plan, change: Change, *, ceiling: bool) -> str:
    """Write the cost, and from when on it can be that where no host can be created now."""
    cost = cost_text(plan, change, ceiling=ceiling)
    free = refused_until(plan, change) if hosts_created(plan, change) else ""
    return f"{cost}, not before {free}" if cost and free else cost


def hosts_removed(plan: Plan, change: Change) -> tuple[str, ...]:
    """Name the hosts that the change of a fleet removes."""
    if change.key.kind != "fleet":
        return ()
    return tuple(plan.annex.get("hosts_removed", {}).get(change.key.name, ()))


def hosts_removed_text(plan: Plan, change: Change) -> str:
    """
    Write `local-2, gpus-3 (not created); when run train has ended`; empty for a change that removes no host.

    A change that ends the jobs there says so as its impact.
    """
    uncreated = plan.annex.get("hosts_uncreated", ())
    removed = hosts_removed(plan, change)
    names = _host_names([f"{one} (not created)" if one in uncreated else one for one in removed])
    runs = plan.annex.get("removal_waits_for", {}).get(change.key.name, ())
    if not names or not runs or change.at_stake or change.stake is not None:
        return names
    listed = printable(first_of(runs, _RUNS_SHOWN))
    subject = f"run {listed} has" if len(runs) == 1 else f"runs {listed} have"
    return f"{names}; when {subject} ended"


_RUNS_SHOWN = 3
"""Names in a line; the rest is counted."""


AGENT_DIR = "~/.local/state/fleetform"
"""Where agents are unless the fleet says another folder: `providers.ssh.host_program`."""


def hosts_set_up(plan: Plan, change: Change) -> tuple[str, ...]:
    """Name the hosts of other machines that the change of a fleet brings in."""
    if change.key.kind != "fleet":
        return ()
    return tuple(plan.annex.get("hosts_set_up", {}).get(change.key.name, ()))


def hosts_set_up_text(plan: Plan, change: Change) -> str:
    """Write `node1, node2`, and what is done there; empty for a change that brings in no host."""
    new = hosts_set_up(plan, change)
    if not new:
        return ""
    endpoints = [
        place["endpoint"]
        for step in change.steps
        for place in step.arguments.get("instances", ())
        if place["name"] in new and place.get("provider") == "ssh"
    ]
    if not endpoints:
        return ""
    folder = next((one["agent_dir"] for one in endpoints if "agent_dir" in one), AGENT_DIR)
    # An account that is not declared is that of the person's OpenSSH configuration, which no plan reads.
    plain = sorted({one["user"] for one in endpoints if one.get("user") not in {None, "root"}})
    linger = "".join(
        f"; where systemd does not let {printable(user)} linger, an administrator must run"
        f" `loginctl enable-linger {printable(user)}`, or jobs end at logout if `KillUserProcesses=yes`"
        for user in plain
    )
    return (
        f"{_host_names(new)} (copies the agent to {printable(folder)} and starts it, with systemd or"
        f" cron where the host has them{linger})"
    )


class AbsentHost(NamedTuple):
    """A host that its fleet works without for now, and why; the reason may be empty."""

    fleet: str
    host: str
    reason: str


def joining_hosts(plan: Plan) -> tuple[AbsentHost, ...]:
    """Return the hosts that are not set up yet, in fleets that the plan does not change."""
    return _absent_hosts(plan, "hosts_joining")


def waiting_hosts(plan: Plan) -> tuple[AbsentHost, ...]:
    """Return the hosts of which the cloud has refused all offers, in fleets that the plan does not change."""
    return _absent_hosts(plan, "hosts_waiting")


def silent_hosts(plan: Plan) -> tuple[AbsentHost, ...]:
    """Return the hosts that were set up and are unreachable now."""
    return _absent_hosts(plan, "hosts_silent")


def _absent_hosts(plan: Plan, kind: str) -> tuple[AbsentHost, ...]:
    return tuple(
        AbsentHost(fleet, host, reason)
        for fleet, hosts in plan.annex.get(kind, {}).items()
        for host, reason in hosts.items()
    )


def late_texts(plan: Plan) -> list[str]:
    """
    Say of hosts that their fleets work without why they are not there, and what tells more; and of runs that no host can take.

    One sentence for one reason.
    """
    return [*_joining_texts(plan), *_waiting_texts(plan), *_without_hosts_texts(plan)]


def _without_hosts_texts(plan: Plan) -> Iterator[str]:
    alike: dict[str, list[ResourceKey]] = {}
    for name, reason in plan.annex.get("without_hosts", {}).items():
        alike.setdefault(reason, []).append(ResourceKey("run", name))
    for reason, keys in alike.items():
        yield f"{names_text(keys)} cannot start: {printable(reason)}"


def _waiting_texts(plan: Plan) -> Iterator[str]:
    alike: dict[tuple[str, str], list[str]] = {}
    for one in (*filter(partial(_is_uncreated, plan), joining_hosts(plan)), *waiting_hosts(plan)):
        alike.setdefault((one.fleet, one.reason), []).append(one.host)
    for (fleet, reason), hosts in alike.items():
        are = f"host {_host_names(hosts)} of fleet {fleet} is"
        if len(hosts) > 1:
            are = f"hosts {_host_names(hosts)} of fleet {fleet} are"
        yield f"{are} not created: {reason} (`fleetform why fleet/{fleet}`)"


def _joining_texts(plan: Plan) -> list[str]:
    return [
        f"host {printable(one.host)} of fleet {one.fleet} is not set up: {one.reason}; it is asked again"
        f" until it answers (`fleetform fleet check {one.fleet}`)"
        for one in joining_hosts(plan)
        if not _is_uncreated(plan, one)
    ]


def _is_uncreated(plan: Plan, host: AbsentHost) -> bool:
    """Tell whether its cloud has not created a host that is not set up: nothing is there that could answer."""
    return host.host in plan.annex.get("hosts_uncreated", ())


def silent_texts(plan: Plan) -> list[str]:
    """Say of each host that was set up and cannot be reached why, and what tells more."""
    return [
        f"host {printable(one.host)} of fleet {one.fleet} is unreachable"
        f"{f': {one.reason}' if one.reason else ''} (`fleetform fleet check {one.fleet}`)"
        for one in silent_hosts(plan)
    ]


def _host_names(names: Sequence[str]) -> str:
    return first_of([printable(name) for name in names], NAMES_MAX)


def _whose(change: Change, impact: Impact) -> str:
    if change.key.kind == "run":
        return "its work"
    return first_of([printable(name) for name in sorted(impact.runs, key=natural_order)], RUNS_MAX)


def _on(gpus: int) -> str:
    return f" on {figures.counted(gpus, 'GPU')}" if gpus else ""


def _so_far(known: dict[str, Any] | None) -> str:
    if not known:
        return ""
    since = "since the last checkpoint" if known.get("since") == "checkpoint" else "so far"
    hours = figures.decimal(known["gpu_ms"], 3_600_000) if known.get("gpu_ms") else ""
    cost = f", {hours} GPU-hours" if hours else ""
    return f", {figures.span(known['ms'])} {since}{cost}"


# Commands that a run will not find, though the person who plans has them: a line each.


def command_lines(plan: Plan) -> tuple[str, ...]:
    """Return the sentences, and how to go on; none where every command is found."""
    rows = plan.annex.get("only_on_callers_path", ())
    if not rows:
        return ()
    lines = [
        printable(
            f"{one['run']}: `{one['program']}` is only on your PATH ({one['found']}), not on the job's"
        )
        for one in rows
    ]
    return (*lines, "use its absolute path in `commands`, or set `env: {PATH: …}`")
