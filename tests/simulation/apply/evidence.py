"""
What all parts of the judge go by: what was applied, what runs, what was done, and for which operation.

A record of its own, which nothing that it judges reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fleetform.model.plan import Step
from simulation.apply.executions import Executions
from simulation.apply.record import Record
from simulation.apply.rule import Rule
from simulation.apply.uses import Uses
from simulation.witness import Witness

__all__ = ["Evidence"]


@dataclass(slots=True)
class Evidence(Witness):
    """
    Attributes:
        now: Seconds since the simulation began.
        checked: How often each rule was asked about.
        met: How often that happened which is no fault.
        outgrown: The ledger on the disk is known to be an older copy, until it is rebuilt.
        operations: Steps whose intent is written, by the operation's uid.
        done_in_world: Everything that was done, in its order: of which kind, and to what.
    """

    now: float = 0.0
    checked: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    record: Record = field(default_factory=Record)
    executions: Executions = field(default_factory=Executions)
    uses: Uses = field(default_factory=Uses)
    outgrown: bool = False
    operations: dict[str, Step] = field(default_factory=dict)
    done_in_world: list[tuple[str, str]] = field(default_factory=list)

    def happened(self, what: str) -> None:
        """Count something that is no fault, and that shall happen."""
        self.met[what] += 1

    def require(self, rule: Rule, truth: bool, what: str) -> None:
        """Note that `what` breaks a rule unless it is `truth`."""
        self.checked[rule.name] += 1
        if not truth:
            self.violate(self.now, f"{what}, but {rule.value}")

    def begun(self, steps: Sequence[Step], on_disk: Mapping[str, str]) -> None:
        """Intents were written; `on_disk` are the operations that really are, by step."""
        for step in steps:
            uid = on_disk.get(step.key, "")
            if uid:
                self.operations[uid] = step
            self.note(self.now, f"intends {step.key} as {uid[:8]}")

    def effect(self, kind: str, uid: str, what: str) -> None:
        """Something was done in the world."""
        self.done_in_world.append((kind, uid))
        self.require(Rule.RECOVERING, not self.outgrown, what)

    def require_unused(self, run_uids: Iterable[str], what: str) -> None:
        """Nobody is at work with it, under whatever name and document."""
        names = self.executions.alive()
        users = [f"{names.get(uid, '?')} {uid[:8]}" for uid in run_uids]
        self.require(Rule.IN_USE, not users, f"{what}: {users} use it")

    def destroys(self, step: Step) -> bool:
        """Tell whether a step ends what is there, or work that is not over."""
        if step.verb in {"fleet.remove", "volume.remove"}:
            return True
        one = self.record.resources.get(step.resource)
        # Its name may still run as somebody else, who was asked to end before.
        return step.verb == "run.stop" and one is not None and self.executions.is_alive(one.run_uid)
