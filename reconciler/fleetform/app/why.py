"""
Puts together what the ledger, the scheduler and the newest plan say of one resource.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleetform.api.waiting import waiting_reasons
from fleetform.model.run_state import RunState
from fleetform.spec.desired import ResourceKey
from fleetform.views.runs import run_detail
from fleetform.views.why import (
    Why,
    WhyElement,
    at_work_lines,
    explain,
    silence_limit,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Held
    from fleetform.model.ports import Reader, RunHistory
    from fleetform.views.resource_why import VolumeTrouble


def why_runs(
    reader: Reader, histories: Sequence[RunHistory], *, now_ms: int
) -> tuple[WhyElement, ...]:
    """Answer for runs of the ledger; the scheduler is asked once for all of them."""
    book = reader.read_book()
    reasons = waiting_reasons(book, now_ms=now_ms)
    answers = []
    for history in histories:
        run = history.run
        waiting = reasons.get(run.uid, ())
        detail = run_detail(history, instances=book.instances, waiting=waiting, now_ms=now_ms)
        # Events are about an end that was asked for, of this run or of the one before it.
        is_ending = run.uid in book.runs and bool(run.stop_requested or run.after_uid)
        key = ResourceKey("run", run.name)
        events = reader.read_resource_events(key) if is_ending else ()
        at_work = at_work_lines(run, book, events, now_ms=now_ms)
        volumes = _volume_troubles(reader, history, now_ms)
        answer = explain(
            detail,
            at_work=at_work,
            more=volumes,
            instances=book.instances,
            silence=silence_limit(run, book),
            now_ms=now_ms,
        )
        answers.append(WhyElement(detail.row, answer))
    return tuple(answers)


def why_resource(
    workspace: Workspace, reader: Reader, key: ResourceKey, *, now_ms: int
) -> Why | None:
    """Answer for a fleet or a volume; None for one that neither exists nor is blocked."""
    from fleetform.app.cut_off import read_cut_off, uncreated
    from fleetform.views.cut_off import hosts_cut_off
    from fleetform.views.resource_why import resource_why

    live = reader.read_live()
    row = live.resources.get(key)
    if row is None:
        return why_absent(reader, key)
    events = reader.read_resource_events(key)
    hosts = [one for one in live.instances if ResourceKey("fleet", one.fleet) == key]
    cut_off = read_cut_off(workspace, uncreated(hosts))
    live = replace(live, instances=hosts_cut_off(live.instances, cut_off, now_ms=now_ms))
    return resource_why(row, live, events=events, now_ms=now_ms)


def why_absent(reader: Reader, key: ResourceKey) -> Why | None:
    """Answer for what the ledger does not have, where the newest plan on record blocks it."""
    from fleetform.views.resource_why import blocked_why

    held = next((one for one in _held(reader) if one.change.key == key), None)
    return None if held is None else blocked_why(held)


def _volume_troubles(reader: Reader, history: RunHistory, now_ms: int) -> Sequence[VolumeTrouble]:
    mounted = [mount.name for mount in history.run.template.volumes]
    # Most runs mount none, and the rows of all resources are read for it.
    if not mounted or history.run.state is RunState.DONE:
        return ()
    from fleetform.views.resource_why import volume_troubles

    return tuple(
        volume_troubles(
            mounted,
            reader.read_live(),
            _held(reader),
            lacked=_refused_mounts(reader, history, mounted),
            now_ms=now_ms,
        )
    )


def _refused_mounts(
    reader: Reader, history: RunHistory, mounted: Sequence[str]
) -> Mapping[str, str]:
    """
    Say of volumes, by name, why the run's last try could not mount them.

    An apply or a look that found them right later outdates what the try says: the trouble is history.
    """
    from fleetform.model.drift import ATTACHMENT
    from fleetform.views.resource_why import refused_mount

    over = [one for one in history.attempts[-2:] if one.finished_at_ms is not None]
    if not over or history.run.state in _HAS_PLACE:
        return {}
    last = over[-1]
    found = {name: why for name in mounted if (why := refused_mount(last.message, name))}
    if not found:
        return found
    noted, changes = reader.read_noted(), reader.read_last_changes()
    at_ms = last.finished_at_ms or 0
    return {
        name: why
        for name, why in found.items()
        for key in (ResourceKey("volume", name),)
        for seen in (noted.get(key, {}),)
        if not any(
            one is not None and one.at_ms is not None and one.at_ms >= at_ms
            for one in (seen.get("directory"), seen.get(ATTACHMENT), changes.get(key))
        )
    }


_HAS_PLACE = frozenset(
    {RunState.PROVISIONING, RunState.PREPARING, RunState.RUNNING, RunState.FINISHING}
)
"""A new attempt has begun since, which says by itself what it lacks."""


def _held(reader: Reader) -> Sequence[Held]:
    # Most runs have a row, mount nothing, and need no plan to be explained.
    from fleetform.app.blocked import read_blocked

    found = read_blocked(reader)
    return () if found is None else found.held
