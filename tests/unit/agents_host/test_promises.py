"""The agent's promises, whatever is lost, doubled, late, killed or cut off from power."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fleetform.agents.host.effects import (
    Announce,
    Effect,
    KillLeftovers,
    Persist,
    RemoveJobDirectory,
    SignalStop,
    StartPreparing,
    StartSupervisor,
)
from fleetform.agents.host.journal import Command, Journal
from fleetform.agents.host.launch import Launch
from fleetform.agents.host.recovery import Condition, Found, recover
from fleetform.agents.protocol.messages import (
    Acknowledge,
    Cursor,
    Event,
    Forget,
    JobKey,
    JobRecord,
    Prepare,
    Start,
    StartJob,
    Stop,
    Welcome,
)
from fleetform.agents.protocol.states import ORDER, Cause, JobState
from unit.agents_host.jobs import HELLO, NOW, Disk, job, journal, result

NAMES = ("a", "b", "c")
GPUS = ("GPU-1", "GPU-2")

names = st.sampled_from(NAMES)


class World:
    """A host as the daemon sees it: directories, supervisors, and what is under way."""

    def __init__(self) -> None:
        self.boots = 1
        self.lives = 0
        self.disk = Disk()
        self.directories: dict[str, Condition] = {}
        self.launches: dict[str, StartJob] = {}
        self.running: set[str] = set()
        self.preparing: list[StartPreparing] = []
        self.spawning: list[str] = []
        self.executions: Counter[str] = Counter()
        self.executed_in: dict[str, int] = {}
        self.never: set[str] = set()
        self.mind = self._wake()

    @property
    def boot_id(self) -> str:
        return f"boot-{self.boots}"

    def do(self, effects: list[Effect]) -> None:
        self.disk.take(effects)
        for effect in effects:
            if isinstance(effect, StartPreparing):
                self.preparing.append(effect)
            elif isinstance(effect, StartSupervisor):
                self.spawning.append(effect.job_uid)
            elif isinstance(effect, RemoveJobDirectory):
                # Never that of a job which runs: its end would have nowhere to go.
                assert effect.job_uid not in self.running
                self.directories.pop(effect.job_uid, None)
            elif isinstance(effect, KillLeftovers):
                self.running.discard(effect.job_uid)
                self.do(self.mind.lost(effect.job_uid, "gone", 0, NOW))
            elif isinstance(effect, Announce):
                self._hear(effect.event.record)
            else:
                assert isinstance(effect, (Persist, SignalStop)) or hasattr(effect, "__dict__")

    def _hear(self, record: JobRecord) -> None:
        if record.cause in {Cause.NEVER_STARTED, Cause.PREPARE_FAILED}:
            # Of what a power cut took without a trace, the new boot id tells the controller.
            assert self.executed_in.get(record.job_uid) != self.boots, "it has run"
            self.never.add(record.job_uid)

    def finish_preparing(self) -> None:
        effect = self.preparing.pop(0)
        uid = effect.job.job_uid
        if uid not in self.directories:
            self.directories[uid] = Condition.PREPARED
            self.launches[uid] = effect.job
            self.do(self.mind.prepared(uid))
        else:
            self.do(self.mind.prepare_failed(uid, "exists", NOW))

    def spawn(self, *, told: bool = True) -> None:
        """The spawner takes a request; a supervisor can rename `launch` only where it is."""
        uid = self.spawning.pop(0)
        if self.directories.get(uid) is Condition.PREPARED:
            self.directories[uid] = Condition.RUNNING
            self.running.add(uid)
            assert uid not in self.never, "what never starts has started"
            self.executions[uid] += 1
            self.executed_in[uid] = self.boots
            if told:
                self.do(self.mind.supervisor_started(uid, NOW))
        elif told:
            condition = self.directories.get(uid, Condition.ABSENT)
            if condition is Condition.RUNNING:
                self.do(self.mind.supervisor_started(uid, NOW))
            elif condition is Condition.ENDED:
                self.do(self.mind.supervisor_ended(self._result(uid)))
            else:
                self.do(self.mind.supervisor_vanished(uid))

    def end(self, uid: str, *, killed: bool, told: bool = True) -> None:
        self.running.discard(uid)
        self.directories[uid] = Condition.ABANDONED if killed else Condition.ENDED
        if told and killed:
            self.do(self.mind.supervisor_vanished(uid))
        elif told:
            self.do(self.mind.supervisor_ended(self._result(uid)))

    def crash(self, *, spawned: int) -> None:
        """The agent dies; the old spawner still takes the first of what it was asked for."""
        self.preparing.clear()
        for _ in range(min(spawned, len(self.spawning))):
            self.spawn(told=False)
        self.spawning.clear()
        self.mind = self._wake()

    def cut_power(self, kept: set[str]) -> None:
        """All processes die, what was not synced may be lost, and the host comes up again."""
        self.boots += 1
        self.disk.cut_power()
        self.running.clear()
        self.preparing.clear()
        self.spawning.clear()
        for uid, condition in list(self.directories.items()):
            if condition is Condition.RUNNING:
                # The name `started` was not synced: it may look prepared again.
                self.directories[uid] = Condition.PREPARED if uid in kept else Condition.ABANDONED
            elif condition is not Condition.ENDED and uid not in kept:
                del self.directories[uid]
        self.mind = self._wake()

    def _wake(self) -> Journal:
        self.lives += 1
        known = self.disk.restore()
        if not known.install_id:
            known.install_id, known.machine_id = "install", "machine"
        self.mind = journal(known, boot_id=self.boot_id, log_id=f"log-{self.lives}")
        _, effects = self.mind.hello(HELLO)
        self.do(effects)
        found = {uid: self._found(uid, c) for uid, c in self.directories.items()}
        self.do(recover(self.mind, found, boot_id=self.boot_id, now_ms=NOW))
        return self.mind

    def _found(self, uid: str, condition: Condition) -> Found:
        ended = self._result(uid) if condition is Condition.ENDED else None
        return Found(condition, _launch(self.launches[uid]), ended)

    def _result(self, uid: str) -> Any:
        return result(self.launches[uid].key.run_uid, gen=self.launches[uid].gen)


def _launch(spec: StartJob) -> Launch:
    return Launch(
        spec.job_uid, *spec.key, spec.gen, "d", "/bin/sh", [], {}, "work", [], None, "poll", None,
        0, None, 0, 0, 0,
    )  # fmt: skip


class AgentMachine(RuleBasedStateMachine):
    """Everything that can happen to an agent, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.boots: dict[str, str] = {}

    def _boot_of(self, name: str) -> str:
        """Units are reserved under the boot of that time, and all rows of the job carry it."""
        return self.boots.setdefault(name, self.world.boot_id)

    @rule(name=names, gen=st.integers(1, 3), go=st.booleans(), gpu=st.sampled_from(GPUS))
    def prepare(self, name: str, gen: int, go: bool, gpu: str) -> None:
        """A prepare arrives: new, doubled, late, or from before a reboot."""
        spec = job(name, gen=gen, go=go, boot_id=self._boot_of(name), gpus=(gpu,))
        self._send(Prepare(1, spec))

    @rule(name=names, gen=st.integers(1, 4))
    def start(self, name: str, gen: int) -> None:
        self._send(Start(2, JobKey(name, 1, 0), gen, self._boot_of(name)))

    @rule(name=names, gen=st.integers(1, 5))
    def stop(self, name: str, gen: int) -> None:
        self._boot_of(name)
        self._send(Stop(3, JobKey(name, 1, 0), f"job-{name}", gen))

    @rule(name=names)
    def forget(self, name: str) -> None:
        self._send(Forget(4, (JobKey(name, 1, 0),)))

    @rule(number=st.integers(0, 9))
    def acknowledge(self, number: int) -> None:
        log = self.world.mind.log
        self._send(Acknowledge(Cursor(log.log_id, min(number, log.newest))))

    @precondition(lambda self: self.world.preparing)
    @rule()
    def finish_preparing(self) -> None:
        self.world.finish_preparing()

    @precondition(lambda self: self.world.spawning)
    @rule()
    def spawn(self) -> None:
        self.world.spawn()

    @precondition(lambda self: self.world.running)
    @rule(killed=st.booleans(), told=st.booleans(), index=st.integers(0, 2))
    def end(self, killed: bool, told: bool, index: int) -> None:
        """A supervisor ends or is killed; the agent hears of it now, or after its own end."""
        uid = sorted(self.world.running)[index % len(self.world.running)]
        self.world.end(uid, killed=killed, told=told)

    @rule(spawned=st.integers(0, 2))
    def crash(self, spawned: int) -> None:
        self.world.crash(spawned=spawned)

    @rule(kept=st.sets(st.sampled_from([f"job-{name}" for name in NAMES])))
    def cut_power(self, kept: set[str]) -> None:
        self.world.cut_power(kept)

    @invariant()
    def at_most_one_execution(self) -> None:
        assert all(count <= 1 for count in self.world.executions.values())

    @invariant()
    def units_have_one_job(self) -> None:
        held = [self.world.launches[uid].gpus for uid in self.world.running]
        assert max(Counter(gpu for gpus in held for gpu in gpus).values(), default=0) <= 1

    @invariant()
    def what_runs_is_known(self) -> None:
        for uid in self.world.running:
            record = self.world.mind.find(uid)
            assert record is not None
            assert record.state is not JobState.FINISHED

    @invariant()
    def news_moves_forward(self) -> None:
        log = self.world.mind.log
        events = log.after(0)
        assert [e.number for e in events] == list(range(log.oldest, log.newest + 1))
        assert all(_forward(events, f"job-{name}") for name in NAMES)

    @invariant()
    def snapshot_is_the_truth(self) -> None:
        welcome, _ = self.world.mind.hello(HELLO)
        assert isinstance(welcome, Welcome)
        for record in welcome.records or ():
            assert record == self.world.mind.find(record.job_uid)

    def _send(self, command: Command) -> None:
        self.world.do(self.world.mind.handle(command, NOW))


def _forward(events: list[Event], uid: str) -> bool:
    """An end is final, and only a record becoming a tombstone may repeat a state."""
    states = [ORDER[e.record.state] for e in events if e.record.job_uid == uid]
    return states == sorted(states)


AgentMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestAgent = AgentMachine.TestCase


@given(order=st.permutations(range(8)), lost=st.sets(st.integers(0, 7)))
def test_a_row_s_history_in_any_order(order: list[int], lost: set[int]) -> None:
    """One job's committed commands, doubled, shuffled and partly lost, start it at most once."""
    world = World()
    spec = job("a")
    history: list[Command] = [
        Prepare(1, spec),
        Start(2, spec.key, 2, spec.boot_id),
        Stop(3, spec.key, spec.job_uid, 3),
        Prepare(4, dataclasses.replace(spec, gen=2, go=True)),
    ] * 2
    stopped = False
    for index in order:
        if index in lost:
            continue
        command = history[index]
        before = world.executions["job-a"]
        world.do(world.mind.handle(command, NOW))
        while world.preparing or world.spawning:
            if world.preparing:
                world.finish_preparing()
            else:
                world.spawn()
        assert not (stopped and world.executions["job-a"] > before)
        stopped = stopped or isinstance(command, Stop)
    assert world.executions["job-a"] <= 1
