"""
One seed, from its scenario to the judge's last question.

Faults come for a while, then stop; from then on everything must come to its end. What is asked
last: is every run over, is nothing held any more, does a second plan say that there is nothing
to do, and did what is called done really run to its end?
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fleetform.agents.protocol.messages import JobKey
from fleetform.checker import check
from fleetform.model.instance import InstanceState
from fleetform.model.override import OverrideKind
from fleetform.model.plan import Permissions
from fleetform.model.ports import Ids, Ledger, StalePlan
from fleetform.model.run import FINAL, RunState
from fleetform.plan.planner import plan
from fleetform.plan.serialize import dump, load
from fleetform.spec.desired import Desired
from simulation.agent import AgentFaults
from simulation.controller import Lives, SeededIds, VirtualClock
from simulation.host import Host
from simulation.judge import Judge
from simulation.loop import VirtualLoop, run
from simulation.provider import SimulatedHosts
from simulation.scenario import ENVIRONMENT_UID, Scenario, make_scenario

FAULTS_SECONDS = 30.0
"""How long faults come; a scenario without any takes about as long."""

ISOLATION_SECONDS_MAX = 90.0
"""Long enough that jobs with `on_silence` are proven dead, and short enough that others are waited for."""

PLANS_MAX = 60
"""Each is followed by a pause of some seconds, and the apply before may wait for an isolated host."""

END_SECONDS = 3600.0
"""By then all must be over: the longest chain of retries takes minutes."""

MakeLedger = Callable[[str, Ids], Ledger]
"""Makes an empty ledger in memory for an environment; given by `app`."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one seed came to. `trace_digest` is the same for every run of the seed."""

    seed: int
    violations: tuple[str, ...]
    faults: Mapping[str, int]
    executions: int
    runs: int
    virtual_seconds: float
    trace_digest: str
    trace: tuple[str, ...]


def play(seed: int, make_ledger: MakeLedger) -> Verdict:
    """Play one seed to its end."""
    source = random.Random(seed)
    judge = Judge()
    loop = VirtualLoop()
    play = _Play(source, judge, make_ledger)
    try:
        run(play.run(), loop)
    except Exception as problem:  # noqa: BLE001 -- whatever it is, the seed has found a bug
        judge.require(loop.time(), False, f"{type(problem).__name__}: {problem}")
    for sentence in loop.problems:
        judge.require(loop.time(), False, sentence)
    trace = tuple(judge.trace)
    return Verdict(
        seed=seed,
        violations=tuple(judge.violations),
        faults=Counter(judge.faults),
        executions=judge.executions(),
        runs=play.runs_count,
        virtual_seconds=loop.time(),
        trace_digest=hashlib.sha256("\n".join(trace).encode()).hexdigest(),
        trace=trace,
    )


class _Play:
    def __init__(self, source: random.Random, judge: Judge, make_ledger: MakeLedger) -> None:
        self.runs_count = 0
        self._random = source
        self._judge = judge
        self._scenario: Scenario = make_scenario(source)
        self._faults = AgentFaults()
        self._faults.crash = source.choice([0, 0.01, 0.05])
        self._faults.doubled = source.choice([0, 0.05, 0.3])
        self._faults.cannot_prepare = source.choice([0, 0.05])
        self._manager_crash = source.choice([0, 0.005, 0.02])
        self._ledger = make_ledger(ENVIRONMENT_UID, SeededIds(source))

    async def run(self) -> None:
        hosts = {
            name: Host(
                name,
                source=self._random,
                judge=self._judge,
                cpu_millicores=cpu,
                script=self._scenario.script,
            )
            for name, cpu in self._scenario.hosts.items()
        }
        world = SimulatedHosts(hosts, source=self._random, judge=self._judge, faults=self._faults)
        lives = Lives(
            self._ledger,
            world,
            source=self._random,
            judge=self._judge,
            crash=lambda: self._manager_crash,
            load_plan=load,
        )
        trouble = asyncio.create_task(self._trouble(world, lives))
        editing = asyncio.create_task(self._edit(lives))
        try:
            async with asyncio.timeout(END_SECONDS):
                await lives.live(lambda _: self._is_over(editing))
        except TimeoutError:
            self._judge.require(self._now(), False, f"not over after an hour: {self._unfinished()}")
        finally:
            trouble.cancel()
            editing.cancel()
        self._ask_last()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    # -- what people do ---------------------------------------------------------------------------

    async def _edit(self, lives: Lives) -> None:
        """Apply each declaration in turn, and sometimes ask for a run's end."""
        for number, desired in enumerate(self._scenario.desired):
            if number:
                await asyncio.sleep(self._random.uniform(1, 15))
            await self._apply(desired)
            lives.written_elsewhere()
            if self._random.random() < 0.2:
                await asyncio.sleep(self._random.uniform(0, 5))
                names = sorted(key.name for key in desired.resources if key.kind == "run")
                name = self._random.choice(names)
                self._judge.note(self._now(), f"asked to stop {name}")
                self._stop(name)
                lives.written_elsewhere()

    def _stop(self, name: str) -> None:
        """Put an override above the tree and take it away at once: the end was asked for."""
        now_ms = VirtualClock().now_ms()
        put = self._ledger.put_overrides(
            OverrideKind.STOP,
            [f"run/{name}"],
            reason="out of time",
            who="a person",
            now_ms=now_ms,
            until_ms=None,
        )
        numbers = [one.number for one in put.overrides]
        self._ledger.lift_overrides(numbers, who="a person", now_ms=now_ms)

    async def _apply(self, desired: Desired) -> None:
        for _ in range(PLANS_MAX):
            now_ms = VirtualClock().now_ms()
            live = self._ledger.read_live()
            permissions = Permissions(allow_destroy=True, allow_restart=True)
            made = plan(desired, live, permissions=permissions, now_ms=now_ms)
            violations = check(made, desired, live, permissions)
            self._judge.require(
                self._now(), not violations, f"the checker refuses a plan: {violations}"
            )
            if made.is_empty:
                if self._ledger.unfinished_apply() is None:
                    return
                # Nothing differs yet: what is entered is seen through first, as a command does.
                await asyncio.sleep(self._random.uniform(1, 3))
                continue
            # Between planning and accepting the world may move; then it is planned again.
            await asyncio.sleep(self._random.uniform(0, 0.5))
            try:
                self._ledger.accept(made, dump(made), who="a person", now_ms=now_ms)
            except StalePlan as stale:
                self._judge.note(self._now(), f"stale: {stale}")
                # An apply before it may wait for a host that is off, for as long as faults come.
                await asyncio.sleep(self._random.uniform(1, 3))
            else:
                self._judge.note(self._now(), f"applied {len(made.changes)} changes")
                return
        self._judge.require(self._now(), False, f"{PLANS_MAX} plans in a row went stale")

    # -- what the world does ------------------------------------------------------------------------

    async def _trouble(self, world: SimulatedHosts, lives: Lives) -> None:
        if self._random.random() < 0.1:
            self._faults.end()
            self._manager_crash = 0
            return
        while self._now() < FAULTS_SECONDS:
            await asyncio.sleep(self._random.expovariate(0.5))
            name = self._random.choice(sorted(world.hosts))
            kind = self._random.choices(
                [
                    "connection reset",
                    "agent kill",
                    "supervisor kill",
                    "power cut",
                    "host off",
                    "isolation",
                    "quarantine",
                ],
                [5, 4, 2, 1, 1, 1, 1],
            )[0]
            self._judge.fault(self._now(), kind, name)
            await self._strike(world, lives, kind, name)
        self._faults.end()
        self._manager_crash = 0
        # What a controller has quarantined: a person has looked at these hosts.
        self._ledger.lift_overrides(None, who="a person", now_ms=VirtualClock().now_ms())
        lives.written_elsewhere()

    async def _strike(self, world: SimulatedHosts, lives: Lives, kind: str, name: str) -> None:
        if kind == "connection reset":
            world.reset_connections(name)
        elif kind == "agent kill":
            world.kill_agent(name)
        elif kind == "supervisor kill":
            running = world.hosts[name].running()
            if running:
                world.hosts[name].kill_supervisor(self._random.choice(sorted(running)))
        elif kind == "isolation":
            await world.isolate(name, self._random.uniform(1, ISOLATION_SECONDS_MAX))
        elif kind == "quarantine":
            await self._quarantine(lives, name)
        elif kind == "power cut":
            world.cut_power(name)
        else:
            world.cut_power(name)
            world.powered[name] = False
            await asyncio.sleep(self._random.uniform(0, 10))
            world.powered[name] = True

    async def _quarantine(self, lives: Lives, name: str) -> None:
        """Quarantine a host for a while: what runs there goes on, and nothing new is placed."""
        since_ms = VirtualClock().now_ms()
        put = self._ledger.put_overrides(
            OverrideKind.QUARANTINE,
            [f"host/{name}"],
            reason="GPU 0 is lost",
            who="the controller",
            now_ms=since_ms,
            until_ms=None,
        )
        lives.written_elsewhere()
        await asyncio.sleep(self._random.uniform(0, 10))
        uids = {one.uid for one in self._ledger.read_live().instances if one.name == name}
        placed = [
            f"{history.run.name} ({attempt.number})"
            for history in self._ledger.read_runs()
            for attempt in history.attempts
            if (attempt.reserved_at_ms or 0) > since_ms
            and any(job.instance_uid in uids for job in attempt.jobs)
        ]
        self._judge.require(self._now(), not placed, f"{name} is quarantined and is given {placed}")
        numbers = [one.number for one in put.overrides]
        self._ledger.lift_overrides(numbers, who="a person", now_ms=VirtualClock().now_ms())
        lives.written_elsewhere()

    # -- the end --------------------------------------------------------------------------------------

    def _is_over(self, editing: asyncio.Task[None]) -> bool:
        if not editing.done() or self._now() < FAULTS_SECONDS:
            return False
        book = self._ledger.read_book()
        reached = all(one.state is InstanceState.READY for one in book.instances)
        return reached and not book.runs and not book.allocations and not book.lingering

    def _unfinished(self) -> str:
        book = self._ledger.read_book()
        states = [f"{one.name} is {one.state}" for one in book.runs.values()]
        states += [f"{job.key} lingers as {job.state}" for job in book.lingering]
        states += [f"{one.job_uid} holds {one.instance_uid}" for one in book.allocations]
        return ", ".join(states) or "only the edits"

    def _ask_last(self) -> None:
        now = self._now()
        live = self._ledger.read_live()
        last = self._scenario.desired[-1]
        again = plan(last, live, permissions=Permissions(), now_ms=VirtualClock().now_ms())
        (applied, *_) = self._ledger.read_applies(limit=1)
        # An apply may end without one of its steps, and says so: what waited when its end was agreed
        # to has begun meanwhile.
        left = [
            (str(one.key), one.action.value)
            for one in again.changes
            if applied.state != "failed" or f"{one.key}: " not in applied.summary
        ]
        self._judge.require(now, not left and not again.held, f"a second plan wants {left}")
        histories = self._ledger.read_runs()
        self.runs_count = len(histories)
        for history in histories:
            run_, attempts = history.run, history.attempts
            self._judge.require(now, run_.state in FINAL, f"{run_.name} is {run_.state}")
            self._judge.require(
                now, not self._judge.alive(run_.uid), f"{run_.name} is over and still runs"
            )
            if run_.state is RunState.DONE:
                keys = [JobKey(*job.key) for job in attempts[-1].jobs]
                codes = [self._judge.exit_code(key) for key in keys]
                self._judge.require(
                    now,
                    all(code == 0 for code in codes),
                    f"{run_.name} is called done, its ranks ended with {codes}",
                )
        for instance in live.instances:
            self._judge.require(
                now,
                instance.state is InstanceState.READY,
                f"{instance.name} is {instance.state}: {instance.message}",
            )


__all__ = ["Verdict", "play"]
