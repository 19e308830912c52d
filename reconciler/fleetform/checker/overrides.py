"""
That a plan keeps to what stands above it: overrides, freeze windows, and other people's property.

Both overrides and windows hold at times. A plan says when it was made; one of a file is asked for
the present time by whoever enters it, and not here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fleetform.checker.called import host_called
from fleetform.checker.context import Reading
from fleetform.checker.invariant import Invariant, Violation
from fleetform.model.override import Override, OverrideKind
from fleetform.model.plan import Change
from fleetform.model.windows import loosened, spell_at
from fleetform.spec.desired import ResourceKey, Rules
from fleetform.spec.renaming import Renames


def check_overrides_told(reading: Reading) -> Iterator[Violation]:
    """A plan lists every override that is in force, and no other."""
    if reading.plan.kept is not None:
        return
    listed, here = reading.plan.overrides, tuple(_in_force(reading))
    # One that is about what is renamed may be told of by either name.
    called = [_called_now(one, reading) for one in here]
    for one, now in zip(here, called, strict=True):
        if one not in listed and now not in listed:
            yield Violation(Invariant.OVERRIDES_TOLD, f"the plan does not list the {one.title}")
    for one in listed:
        if one not in here and one not in called:
            yield Violation(
                Invariant.OVERRIDES_TOLD, f"the plan lists the {one.title}, which is not in force"
            )


def check_overrides_kept(reading: Reading) -> Iterator[Violation]:
    """Nothing is changed under a freeze, and nothing begins that a stop keeps from it."""
    if reading.plan.kept is not None:
        return
    # It goes with what it is about: who renames a stopped run does not let it begin.
    here = tuple(_called_now(one, reading) for one in _in_force(reading))
    frozen = next((one for one in here if one.kind is OverrideKind.FREEZE), None)
    stops = [one for one in here if one.kind is OverrideKind.STOP]
    if frozen is not None:
        for change in reading.plan.changes:
            yield Violation(
                Invariant.OVERRIDES_KEPT, f"{change.key} would change during the {frozen.title}"
            )
    for change, step in reading.steps if stops else ():
        stop = next((one for one in stops if one.stops(step.resource.name, change.parent)), None)
        if step.verb == "run.submit" and stop is not None:
            yield Violation(
                Invariant.OVERRIDES_KEPT, f"{step.resource} would start during the {stop.title}"
            )


def _in_force(reading: Reading) -> Iterator[Override]:
    at_ms = int(reading.plan.annex["planned_at_ms"])
    return (one for one in reading.live.overrides if one.holds_at(at_ms))


def _called_now(override: Override, reading: Reading) -> Override:
    """The same override, about what is declared under another name by now."""
    kind, slash, name = override.target.partition("/")
    if not slash or not reading.desired.moved:
        return override
    if kind == "host":
        return _host_called_now(override, name, reading)
    after = Renames(dict(reading.desired.moved)).of(ResourceKey(kind, name))
    there = reading.live.resources.get(after)
    if there is not None and not there.archived:
        return override  # Nothing is renamed to what something else is called.
    return replace(override, target=str(after))


def _host_called_now(override: Override, name: str, reading: Reading) -> Override:
    for before, after in reading.desired.moved:
        now = host_called(name, before.name, after.name) if before.kind == "fleet" else name
        if now != name:
            return replace(override, target=f"host/{now}")
    return override


def check_windows_kept(reading: Reading) -> Iterator[Violation]:
    """Nothing is changed that an open window of the rules last applied holds."""
    windows = reading.rules.freeze
    if not windows or reading.plan.kept is not None:
        return
    if any(one.kind is OverrideKind.THAW for one in _in_force(reading)):
        return
    at_ms = int(reading.plan.annex["planned_at_ms"])
    for window in windows:
        if spell_at(window, at_ms) is None:
            continue
        for change in reading.plan.changes:
            kept = window.only == "all" or change.destructive
            if _loosens(reading, change) or (kept and change.key.kind != "environment"):
                yield Violation(
                    Invariant.WINDOWS_KEPT,
                    f"{change.key} would change in the freeze window ({window.reason})",
                )


def _loosens(reading: Reading, change: Change) -> bool:
    return any(
        step.verb == "rules.set"
        and bool(loosened(reading.rules, Rules.of(step.arguments["rules"])))
        for step in change.steps
    )


_MAKES_VOLUME = frozenset({"volume.make", "volume.adopt", "volume.update"})


def check_owners_kept(reading: Reading) -> Iterator[Violation]:
    """What bears another owner's mark is neither made nor written over; what is not there, not found."""
    for key, claim in reading.live.claims.items() if reading.live.claims else ():
        makes = {"volume.adopt"} if claim.missing else _MAKES_VOLUME
        for change, step in reading.steps:
            if change.key == key and step.verb in makes:
                yield Violation(
                    Invariant.OWNERS_KEPT, f"{step.key} is planned, and {claim.sentence}"
                )
