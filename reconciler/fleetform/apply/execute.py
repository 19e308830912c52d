"""
Carries out an accepted plan.

Ready sets go through three moves: the intent of all of them in one transaction, the calls
many at once, the results in as few transactions as they come in. A crash anywhere leaves an
operation that the next apply finds and asks for again with the same uids; every call may be
repeated. A step that fails stops only what needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

from fleetform.apply.host_access import PARALLEL_MAX, HostAccess
from fleetform.apply.kinds import PERFORMERS
from fleetform.model.apply import Accepted, Begun, StepOutcome
from fleetform.model.plan import Plan, Step
from fleetform.model.ports import Clock, Gate, Ledger, Progress
from fleetform.model.verbs import ACTS_ON_HOSTS, Verb
from fleetform.providers.contract.errors import ProviderError, TemporaryError, with_advice

ATTEMPTS_MAX = 5
"""Tries of a call that fails for a passing reason, 0.2 s to 1.6 s apart: 3 s in all."""


@dataclass(slots=True)
class Outcome:
    """What became of a plan: keys of steps done, and the sentence of each that failed."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    not_reached: list[str] = field(default_factory=list)

    @property
    def state(self) -> str:
        return "failed" if self.failed else "done"

    @property
    def summary(self) -> str:
        done = f"{len(self.done)} step{'s' * (len(self.done) != 1)} done"
        if not self.failed:
            return done
        return f"{done}, {len(self.failed)} failed, {len(self.not_reached)} not tried"


async def execute(
    plan: Plan,
    accepted: Accepted,
    *,
    ledger: Ledger,
    gate: Gate,
    access: HostAccess,
    clock: Clock,
    progress: Progress,
    fence: int | None = None,
) -> Outcome:
    """
    Carry out what is left of `plan`; `fence` is the manager's, under which all is written.

    Raises:
        FenceLost: Another process manages the environment; it resolves the open operations.
        LedgerUnavailable: A result could not be written; the operation stays open.
    """
    return await _Execution(accepted.apply_uid, ledger, gate, access, clock, progress, fence).run(
        plan, accepted.done
    )


@dataclass
class _Execution:
    apply_uid: str
    ledger: Ledger
    gate: Gate
    access: HostAccess
    clock: Clock
    progress: Progress
    fence: int | None

    def __post_init__(self) -> None:
        self._outcome = Outcome()
        self._slots = asyncio.Semaphore(PARALLEL_MAX)
        self._results: asyncio.Queue[tuple[Step, StepOutcome | Exception]] = asyncio.Queue()
        # A dict, because a set of tasks iterates by address: cancel order must not vary.
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def run(self, plan: Plan, done: frozenset[str]) -> Outcome:
        graph = StepGraph(plan.steps, done)
        self._outcome.done.extend(sorted(done))
        in_flight = 0
        try:
            while True:
                # What the ledger alone carries out may make more ready at once.
                while ready := graph.take_ready():
                    in_flight += await self._launch(ready, graph)
                if not in_flight:
                    break
                finished = await self._drain()
                in_flight -= len(finished)
                graph.mark_done(await self._write(finished))
        finally:
            for task in list(self._tasks):
                task.cancel()
        tried = set(self._outcome.done) | set(self._outcome.failed)
        self._outcome.not_reached = [step.key for step in plan.steps if step.key not in tried]
        return self._outcome

    async def _launch(self, ready: Sequence[Step], graph: StepGraph) -> int:
        """Start the steps with effects on hosts; write the rest at once. Returns how many are in flight."""
        inward = [step for step in ready if step.verb not in ACTS_ON_HOSTS]
        outward = [step for step in ready if step.verb in ACTS_ON_HOSTS]
        if outward:
            begun = await self.gate(
                lambda: self.ledger.begin_steps(
                    self.apply_uid, outward, fence=self.fence, now_ms=self.clock.now_ms()
                )
            )
            for step in outward:
                task = asyncio.create_task(self._perform(step, begun[step.key]))
                self._tasks[task] = None
                task.add_done_callback(lambda task: self._tasks.pop(task, None))
        if inward:
            for step in inward:
                self.progress.step_started(step)
            graph.mark_done(await self._write([(step, StepOutcome(step.key)) for step in inward]))
            if any(step.verb == Verb.RUN_STOP for step in inward):
                # The removal of a fleet waits for these ends, so they must not wait for the plan's.
                self.access.ends_asked()
        return len(outward)

    async def _perform(self, step: Step, begun: Begun) -> None:
        try:
            async with self._slots:
                self.progress.step_started(step)
                outcome = await self._try(step, begun)
        except Exception as problem:  # noqa: BLE001 -- handed to the code that waits for the result
            self._results.put_nowait((step, problem))
        else:
            self._results.put_nowait((step, outcome))

    async def _try(self, step: Step, begun: Begun) -> StepOutcome:
        delay = 0.2
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                outputs = await PERFORMERS[step.verb](step, begun, self.access)
            except TemporaryError as problem:
                if attempt == ATTEMPTS_MAX:
                    return StepOutcome(step.key, str(problem))
                await asyncio.sleep(delay)
                delay *= 2
            except ProviderError as problem:
                return StepOutcome(step.key, with_advice(problem))
            else:
                return StepOutcome(step.key, outputs=outputs or {})
        raise AssertionError("the loop returns")

    async def _drain(self) -> list[tuple[Step, StepOutcome]]:
        """Wait for one result and take all that are there, for one transaction."""
        results = [await self._results.get()]
        while not self._results.empty():
            results.append(self._results.get_nowait())
        finished = []
        for step, outcome in results:
            if isinstance(outcome, Exception):
                # Nothing that a provider may raise: the plan ends here, its operations stay open.
                raise outcome
            finished.append((step, outcome))
        return finished

    async def _write(self, finished: Sequence[tuple[Step, StepOutcome]]) -> list[str]:
        """Write results down; returns the keys of the steps that are done."""
        steps = [step for step, _ in finished]
        outcomes = [outcome for _, outcome in finished]
        refused = await self.gate(
            lambda: self.ledger.finish_steps(
                self.apply_uid,
                steps,
                outcomes,
                fence=self.fence,
                now_ms=self.clock.now_ms(),
            )
        )
        done = []
        for step, outcome in finished:
            error = refused.get(step.key, outcome.error)
            if error:
                self._outcome.failed[step.key] = error
            else:
                done.append(step.key)
            self.progress.step_finished(step, error)
        self._outcome.done.extend(done)
        return done


# Which steps may run now.
# A thin layer over the standard library's `graphlib`: it hands out ready sets, and a step that
# fails is never marked done, so that only what needs it is held back.


class StepGraph:
    """
    The steps of one plan, consumed from the front.

    Every step key appears once; the checker has proved that needs exist and have no cycle.
    """

    def __init__(self, steps: Iterable[Step], done: frozenset[str]) -> None:
        self._steps = {step.key: step for step in steps}
        self._sorter: TopologicalSorter[str] = TopologicalSorter(
            {step.key: step.needs for step in self._steps.values()}
        )
        self._sorter.prepare()
        self._done = done

    def take_ready(self) -> list[Step]:
        """Return steps whose needs are all done, each once; what is done already is passed over."""
        ready: list[Step] = []
        while keys := self._sorter.get_ready():
            for key in sorted(keys):
                if key in self._done or key not in self._steps:
                    self._sorter.done(key)
                else:
                    ready.append(self._steps[key])
        return ready

    def mark_done(self, keys: Iterable[str]) -> None:
        self._sorter.done(*keys)
