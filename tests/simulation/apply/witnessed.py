"""The real ledger with the judge beside it: what a call has committed, the judge is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleetform.model.apply import Accepted, Begun, StepOutcome
from fleetform.model.override import OverrideKind, PutInForce
from fleetform.model.plan import Permissions, Plan, Step
from fleetform.model.ports import Ledger
from simulation.apply.judge import Judge
from simulation.apply.overrides import Override
from simulation.apply.ports import Disk

__all__ = ["Witnessed"]


class Witnessed:
    """
    The calls of `model.ports.Ledger` by which a plan is entered and written down.

    `asked` unless somebody else manages, whose it is to ask the world.
    """

    def __init__(
        self, real: Ledger, disk: Disk, judge: Judge, who: str, *, asked: bool = True
    ) -> None:
        self.real = real
        self._asked = asked
        self._who = who
        self._disk = disk
        self._judge = judge

    def accept(
        self, plan: Plan, body: bytes, *, permissions: Permissions, who: str, now_ms: int
    ) -> Accepted:
        accepted = self.real.accept(plan, body, who=who, now_ms=now_ms)
        rows = self._disk.ask("SELECT uid FROM runs WHERE final = 0")
        self._judge.entries.entered(
            plan, accepted, permissions, [uid for (uid,) in rows], asked=self._asked
        )
        return accepted

    def begin_steps(
        self, apply_uid: str, steps: Sequence[Step], *, fence: int | None = None, now_ms: int
    ) -> Mapping[str, Begun]:
        begun = self.real.begin_steps(apply_uid, steps, fence=fence, now_ms=now_ms)
        self._judge_fence(fence)
        on_disk = self._disk.ask(
            "SELECT key, uid FROM operations WHERE apply_uid = ? AND state = 'intended'",
            (apply_uid,),
        )
        self._judge.begun(steps, dict(on_disk))
        return begun

    def finish_steps(
        self,
        apply_uid: str,
        steps: Sequence[Step],
        outcomes: Sequence[StepOutcome],
        *,
        fence: int | None = None,
        now_ms: int,
    ) -> Mapping[str, str]:
        known = self._done(apply_uid)
        refused = self.real.finish_steps(apply_uid, steps, outcomes, fence=fence, now_ms=now_ms)
        self._judge_fence(fence)
        self._note_asked()
        errors = {one.key: one.error for one in outcomes if one.error}
        self._judge.outcomes.finished(
            apply_uid, steps, {**errors, **refused}, known, self._runs(steps), self._hosts(steps)
        )
        self._judge.left(self._unasked(steps, {**errors, **refused}))
        return refused

    def _unasked(self, steps: Sequence[Step], errors: Mapping[str, str]) -> list[str]:
        """Runs that go on under names that have just left the tree."""
        left = [
            step.resource.name
            for step in steps
            if step.verb in {"run.archive", "run.forget"} and not errors.get(step.key)
        ]
        if not left:
            return []
        rows = self._disk.ask("SELECT name, uid FROM runs WHERE final = 0 AND stop_requested = ''")
        return [f"{name} {uid[:8]}" for name, uid in rows if name in left]

    def finish_apply(
        self, apply_uid: str, *, state: str, summary: str, fence: int | None = None, now_ms: int
    ) -> None:
        self.real.finish_apply(apply_uid, state=state, summary=summary, fence=fence, now_ms=now_ms)
        self._judge_fence(fence)
        self._judge.entries.finished(apply_uid)
        self._judge.note(self._judge.now, f"{state} {apply_uid[:8]}")

    def put_overrides(
        self,
        kind: OverrideKind,
        targets: Sequence[str],
        *,
        reason: str,
        who: str,
        now_ms: int,
        until_ms: int | None,
        fence: int | None = None,
    ) -> PutInForce:
        put = self.real.put_overrides(
            kind, targets, reason=reason, who=who, now_ms=now_ms, until_ms=until_ms, fence=fence
        )
        self._judge_fence(fence)
        self._note_asked()
        at_work = self._disk.ask(
            "SELECT r.uid, r.attempt FROM runs r JOIN attempts a ON a.run_uid = r.uid"
            " AND a.number = r.attempt WHERE a.state <> 'waiting'"
        )
        numbers = [one.number for one in put.overrides]
        for number, target in zip(numbers, targets or ("",), strict=True):
            self._judge.above.overrides[number] = Override(
                kind.value, target, until_ms, frozenset(at_work), self._judge.now
            )
        return put

    def lift_overrides(
        self, numbers: Sequence[int] | None, *, who: str, now_ms: int
    ) -> tuple[object, ...]:
        lifted = self.real.lift_overrides(numbers, who=who, now_ms=now_ms)
        above = self._judge.above.overrides
        for number in list(above) if numbers is None else numbers:
            above.pop(number, None)
        return lifted

    def _note_asked(self) -> None:
        rows = self._disk.ask("SELECT uid FROM runs WHERE stop_requested <> ''")
        self._judge.uses.asked = frozenset(uid for (uid,) in rows)

    def _judge_fence(self, fence: int | None) -> None:
        if fence is not None:
            ((newest,),) = self._disk.ask("SELECT fence FROM meta")
            self._judge.managed(self._who, fence, newest)

    def _done(self, apply_uid: str) -> list[str]:
        rows = self._disk.ask(
            "SELECT key FROM operations WHERE apply_uid = ? AND state = 'done'", (apply_uid,)
        )
        return [key for (key,) in rows]

    def _runs(self, steps: Sequence[Step]) -> dict[str, str]:
        names = [step.resource.name for step in steps if step.verb == "run.submit"]
        if not names:
            return {}
        rows = self._disk.ask("SELECT name, uid FROM resources WHERE kind = 'run'")
        return {name: uid for name, uid in rows if name in names}

    def _hosts(self, steps: Sequence[Step]) -> dict[str, str]:
        if not any(step.resource.kind == "fleet" for step in steps):
            return {}
        return dict(
            self._disk.ask(
                "SELECT uid, name FROM instances WHERE fleet <> '' AND state <> 'terminated'"
            )
        )
