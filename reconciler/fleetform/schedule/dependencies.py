"""
Whether what a run depends on has come about, is still to come, or never will.

A sweep or an array named as a whole means all of its elements. With `each`, element i waits
for element i of the other alone.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fleetform.model.decision import Waiting
from fleetform.model.lineage import had_ended, has_result
from fleetform.model.run import FINAL, Dependency, Template, When
from fleetform.model.scheduler_state import Outcome

_PHRASES = {
    When.SUCCEEDED: ("to succeed", "have succeeded"),
    When.FAILED: ("to fail", "have failed"),
    When.FINISHED: ("to finish", "have finished"),
    When.STARTED: ("to start", "have started"),
}


class Standing(enum.Enum):
    MET = "met"
    OPEN = "open"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    Where a run stands with all of its dependencies.

    `reasons` has one entry for each that is open; `never` is the sentence of an abort, empty
    while the dependencies can still be met.
    """

    reasons: tuple[Waiting, ...] = ()
    never: str = ""


@dataclass(slots=True)
class Dependencies:
    """
    Judges dependencies within one round; runs that depend on the same share one answer.

    A thousand elements that wait for one run cost one look at it.
    """

    outcomes: Mapping[str, Outcome]
    _families: dict[str, list[tuple[str, Outcome]]] | None = None
    _standings: dict[tuple[Dependency, str], tuple[Standing, str]] = field(default_factory=dict)
    _judged: dict[tuple[tuple[Dependency, ...], bool, str], Verdict] = field(default_factory=dict)

    def judge(self, template: Template) -> Verdict:
        has_each = any(dependency.each for dependency in template.depends_on)
        element = template.element if has_each else ""
        key = (template.depends_on, template.depends_on_all, element)
        known = self._judged.get(key)
        if known is None:
            standings = [self._standing(one, element) for one in template.depends_on]
            known = _combine(standings, need_all=template.depends_on_all)
            self._judged[key] = known
        return known

    def _standing(self, dependency: Dependency, element: str) -> tuple[Standing, str]:
        key = (dependency, element if dependency.each else "")
        known = self._standings.get(key)
        if known is None:
            known = self._look(dependency, key[1])
            self._standings[key] = known
        return known

    def _look(self, dependency: Dependency, element: str) -> tuple[Standing, str]:
        name = f"{dependency.run}[{element}]" if element else dependency.run
        outcome = self.outcomes.get(name)
        if outcome is not None:
            return _one(name, dependency.when, outcome)
        elements = self._family(dependency.run)
        if element or not elements:
            # A later step of the same apply may still submit it; the plan has checked the name.
            return (
                Standing.OPEN,
                f"waits for {name} {_PHRASES[dependency.when][0]}; that run does not exist",
            )
        return _all(dependency, elements)

    def _family(self, parent: str) -> list[tuple[str, Outcome]]:
        if self._families is None:
            self._families = {}
            for name, outcome in sorted(self.outcomes.items()):
                if outcome.parent:
                    self._families.setdefault(outcome.parent, []).append((name, outcome))
        return self._families.get(parent, [])


def _combine(standings: Iterable[tuple[Standing, str]], *, need_all: bool) -> Verdict:
    by_standing: dict[Standing, list[str]] = {standing: [] for standing in Standing}
    for standing, sentence in standings:
        by_standing[standing].append(sentence)
    never, waits = by_standing[Standing.NEVER], by_standing[Standing.OPEN]
    if need_all and never:
        return Verdict(never="; ".join(never))
    if not need_all and (by_standing[Standing.MET] or not (never or waits)):
        return Verdict()
    if not need_all and not waits:
        return Verdict(never="no dependency could be met: " + "; ".join(never))
    return Verdict(reasons=tuple(Waiting("dependency", sentence) for sentence in waits))


def _one(name: str, when: When, outcome: Outcome) -> tuple[Standing, str]:
    standing = _stands(when, outcome)
    wanted = _PHRASES[when][0]
    if standing is Standing.NEVER:
        return standing, f"required {name} {wanted}, and it {had_ended(outcome.state)}"
    return standing, f"waits for {name} {wanted}; it is {outcome.state}"


def _all(dependency: Dependency, elements: list[tuple[str, Outcome]]) -> tuple[Standing, str]:
    met = 0
    for name, outcome in elements:
        standing = _stands(dependency.when, outcome)
        if standing is Standing.NEVER:
            wanted = _PHRASES[dependency.when][0]
            return (
                standing,
                f"required all of {dependency.run} {wanted}, and {name} {had_ended(outcome.state)}",
            )
        met += standing is Standing.MET
    wanted, have = _PHRASES[dependency.when]
    sentence = f"waits for all of {dependency.run} {wanted}; {met} of {len(elements)} {have}"
    return (Standing.MET if met == len(elements) else Standing.OPEN), sentence


def _stands(when: When, outcome: Outcome) -> Standing:
    if has_result(when, outcome.state, started=outcome.started):
        return Standing.MET
    return Standing.NEVER if outcome.state in FINAL else Standing.OPEN
