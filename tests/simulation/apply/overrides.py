"""
The judge's own view of what people have put above the tree, and of freeze windows.

Put together from what was asked for, and reckoned here once more: nothing of `model.override` or
`model.windows` is used, for those are under test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from fleetform.model.plan import Plan, Step
from fleetform.spec.desired import FreezeWindow, Rules
from simulation.apply.rule import Rule
from simulation.host import WALL_START_MS

__all__ = ["Override", "Overrides", "moment_ms"]

MINUTE_SECONDS = 60


def moment_ms(now: float) -> int:
    """Tell what every clock of the simulation shows so many seconds after its beginning."""
    return WALL_START_MS + int(now * 1000)


@dataclass(frozen=True, slots=True)
class Override:
    """
    What was asked for, and when it ends by itself.

    `at_work` are run uids and attempts that had a place when it was put: what has one may begin.
    `renamed` are names that it came to be about by a rename: nobody has said it of who is at work.
    """

    kind: str
    target: str
    until_ms: int | None
    at_work: frozenset[tuple[str, int]]
    since: float = 0.0
    renamed: frozenset[str] = frozenset()

    def is_about(self, name: str, fleet: str) -> bool:
        """Tell whether it keeps this run from beginning on a host of this fleet."""
        if self.kind == "stop":
            parent = name.partition("[")[0]
            return self.target in {f"run/{name}", f"run/{parent}", "run/*"}
        # A quarantine is of one host, and the fleets of a play have several.
        return self.kind == "pause" or (self.kind == "drain" and self.target == f"fleet/{fleet}")


@dataclass(slots=True)
class Overrides:
    """By the number of its row: what was put and not lifted, whether its time is up or not."""

    require: Callable[[Rule, bool, str], None]
    overrides: dict[int, Override] = field(default_factory=dict)
    looks: dict[str, float] = field(default_factory=dict)
    """When each process that manages for long last looked whether it was taken over."""

    def in_force(self, kind: str, now: float) -> list[Override]:
        return [one for one in self._holding(now) if one.kind == kind]

    def _holding(self, now: float) -> Iterable[Override]:
        now_ms = moment_ms(now)
        return (
            one for one in self.overrides.values() if one.until_ms is None or now_ms < one.until_ms
        )

    def rename(self, before: str, after: str) -> None:
        """What it is about has another name: it goes with that. Who comes under it goes on."""
        old, new = before.removeprefix("run/"), after.removeprefix("run/")
        for number, one in self.overrides.items():
            spared = one.renamed - {old}
            if one.target == before:
                self.overrides[number] = replace(one, target=after, renamed=spared)
            elif old in one.renamed or (one.is_about(new, "") and not one.is_about(old, "")):
                self.overrides[number] = replace(one, renamed=spared | {new})

    def check_beginning(
        self, name: str, fleet: str, execution: tuple[str, int], now: float
    ) -> None:
        """A process begins."""
        for one in self._holding(now):
            free = execution in one.at_work or not one.is_about(name, fleet)
            self.require(Rule.OVERRIDDEN, free, f"{name} begins with {one.kind} {one.target}")

    def check_resting(self, who: str, now: float) -> None:
        """Somebody causes something: if it is `serve`, it has seen no takeover."""
        for one in self.in_force("takeover", now):
            rests = self.looks.get(who, one.since) > one.since
            self.require(Rule.RESTING, not rests, f"{who} has looked and acts")

    def check_ended(self, alive: Iterable[str], now: float) -> None:
        """Whoever manages has had time for it: what is stopped does not run."""
        names = list(alive)
        for one in self.in_force("stop", now):
            running = [name for name in names if one.is_about(name, "") and name not in one.renamed]
            self.require(Rule.STOPPED, not running, f"{running} run on")

    def check_entry(
        self, plan: Plan, rules: Rules, destroys: Callable[[Step], bool], now: float
    ) -> None:
        """A plan was entered; `rules` are those last applied."""
        frozen = bool(self.in_force("freeze", now))
        self.require(Rule.FROZEN, not frozen, f"plan {plan.digest[:8]} was entered")
        if self.in_force("thaw", now):
            return
        open_ = [one for one in rules.freeze if _is_open(one, now)]
        for change in plan.changes:
            if change.key.kind == "environment":
                said = [one for one in change.steps if one.verb == "rules.set"]
                held = bool(open_) and any(_loosens(rules, one) for one in said)
            else:
                ends = any(destroys(step) for step in change.steps)
                held = any(one.only == "all" or ends for one in open_)
            self.require(Rule.WINDOW, not held, f"{change.action} of {change.key} was entered")


def _is_open(window: FreezeWindow, now: float) -> bool:
    second = moment_ms(now) // 1000
    if window.cron:
        assert window.cron == "* * * * *", "the tree draws no other"
        return second % MINUTE_SECONDS < window.duration
    assert window.begin is not None
    assert window.end is not None
    return window.begin <= second < window.end


def _loosens(before: Rules, step: Step) -> bool:
    after = Rules.of(step.arguments["rules"])
    return (
        (after.allow_destroy and not before.allow_destroy)
        or after.delete_percent > before.delete_percent
        or after.delete_count > before.delete_count
        or any(one not in after.freeze for one in before.freeze)
    )
