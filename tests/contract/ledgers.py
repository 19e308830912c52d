"""What the ledgers' suite writes with: plans, placements and records, from a few words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

from fleetform.agents.protocol.host_report import GpuReport, HostReport
from fleetform.agents.protocol.messages import Cursor, JobKey, JobRecord
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.apply import Accepted, StepOutcome
from fleetform.model.decision import Finish, Placement, Share
from fleetform.model.plan import Action, Change, Plan, Predicate, Reason, Step
from fleetform.model.ports import Ledger
from fleetform.model.redaction import fingerprint
from fleetform.model.run import Run, RunState, RunUid
from fleetform.providers.contract.observed import HostSeen
from fleetform.spec.canonical import digest
from fleetform.spec.desired import ResourceKey

ENVIRONMENT = "e" * 32
GIB = 1 << 30


class CountingIds:
    """Uids that sort in the order in which they were minted, for readable failures."""

    def __init__(self, first: int = 1) -> None:
        self._numbers = count(first)

    def uid(self) -> str:
        return f"{next(self._numbers):032x}"


@dataclass
class StillClock:
    now: int = 1_000_000

    def now_ms(self) -> int:
        return self.now

    def boot_ms(self) -> int:
        return self.now


def run_key(name: str) -> ResourceKey:
    return ResourceKey("run", name)


def step(verb: str, name: str, /, **arguments: object) -> Step:
    kind = verb.partition(".")[0]
    key = ResourceKey("environment" if kind == "rules" else kind, name)
    return Step(f"{verb}:{key}", verb, key, (), {"name": name, **arguments})


def written(document: dict[str, object], **more: object) -> dict[str, object]:
    """Arguments of a step that writes a document."""
    execution = {
        key: value
        for key, value in document.items()
        if key in {"commands", "nodes", "resources", "env"}
    }
    return {
        "document": document,
        "digest": digest(document),
        "own_digest": digest(document),
        "execution_digest": digest(execution),
        "type": str(document.get("type", "fleet")),
        "protected": bool(document.get("protect", False)),
        **more,
    }


def submit_step(name: str, *, parent: str = "", element: str = "", **document: object) -> Step:
    whole = {"type": "task", "commands": ["true"], **document}
    return step("run.submit", name, **written(whole, parent=parent, element=element, replaces=""))


def fleet_step(name: str, nodes: int = 1, verb: str = "fleet.make", **document: object) -> Step:
    whole = {"nodes": {"min": nodes, "target": nodes, "max": nodes}, "local": {}, **document}
    return step(
        verb,
        name,
        **written(
            whole,
            type="fleet",
            instances=[{"name": f"{name}-{n}", "number": n} for n in range(nodes)],
        ),
    )


def move_step(kind: str, before: str, after: str, **more: object) -> Step:
    key = ResourceKey(kind, after)
    arguments = {"name": after, "from": before, "parent": "", "element": "", "sweep": "", **more}
    return Step(f"resource.move:{key}", "resource.move", key, (), arguments)


def plan_of(ledger: Ledger, steps: Iterable[Step], *predicates: Predicate) -> Plan:
    """A plan of these steps; its digest depends on all of it."""
    live = ledger.read_live()
    changes = tuple(
        Change(one.resource, Action.UPDATE, (Reason.ABSENT,), "task", steps=(one,)) for one in steps
    )
    name = digest([live.ledger_id, live.epoch, *(repr(one) for one in (changes, predicates))])
    return Plan(
        environment_fingerprint=fingerprint(ENVIRONMENT),
        environment_name="test",
        ledger_id=live.ledger_id,
        epoch=live.epoch,
        changes=changes,
        predicates=predicates,
        commit="c0ffee",
        digest=name,
    )


def absent(kind: str, name: str) -> Predicate:
    return Predicate("absent", ResourceKey(kind, name))


def enter(ledger: Ledger, plan: Plan, *, now_ms: int = 1) -> Accepted:
    return ledger.accept(plan, plan.digest.encode(), who="anna", now_ms=now_ms)


def carry_out(ledger: Ledger, steps: Sequence[Step], *, now_ms: int = 1) -> Accepted:
    """Accept, begin, finish and end a plan of these steps, whose world always obeys."""
    accepted = enter(ledger, plan_of(ledger, steps), now_ms=now_ms)
    outward = [one for one in steps if one.verb.startswith(("fleet.", "volume."))]
    if outward:
        ledger.begin_steps(accepted.apply_uid, outward, now_ms=now_ms)
    ledger.finish_steps(
        accepted.apply_uid, steps, [StepOutcome(one.key) for one in steps], now_ms=now_ms
    )
    ledger.finish_apply(accepted.apply_uid, state="done", summary="", now_ms=now_ms)
    return accepted


def hello(
    instance_uid: str,
    *,
    boot: str = "boot-1",
    install: str = "install-1",
    cpus: int = 8,
    gpus: int = 4,
    records: tuple[JobRecord, ...] | None = None,
) -> HostSeen:
    return HostSeen(
        instance_uid=instance_uid,
        install_id=install,
        boot_id=boot,
        machine_id="machine",
        ledger_id="",
        epoch=1,
        cursor=Cursor("log", 0),
        records=records,
        report=HostReport(
            hostname="host",
            cpu_millicores=cpus * 1000,
            memory_bytes=64 * GIB,
            disk_bytes=100 * GIB,
            disk_free_bytes=50 * GIB,
            memory_free_bytes=60 * GIB,
            load_1m_milli=0,
            gpus=tuple(GpuReport(n, f"GPU-{n}", "A100", 80 * GIB) for n in range(gpus)),
            python="3.11",
            kernel="6.1",
        ),
    )


SUBMITTED_MS = 1_000
"""When a `Desk` submits; its other time is later."""


@dataclass
class Desk:
    """A ledger with one fleet whose hosts have said hello, and the fence to drive its runs."""

    ledger: Ledger
    fence: int = 0
    now_ms: int = 10_000
    instances: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, ledger: Ledger, *, nodes: int = 1, cpus: int = 8, **document: object) -> Desk:
        carry_out(ledger, [fleet_step("local", nodes, **document)])
        desk = cls(ledger, ledger.take_fence(who="test", now_ms=1))
        desk.instances = tuple(one.uid for one in ledger.read_live().instances)
        for uid in desk.instances:
            desk.greet(uid, cpus=cpus)
        return desk

    def greet(self, uid: str, **facts: object) -> tuple[JobKey, ...]:
        return self.ledger.commit_host(hello(uid, **facts), fence=self.fence, now_ms=self.now_ms)

    def submit(self, *steps: Step) -> None:
        """Submit them before any job of a record began."""
        carry_out(self.ledger, steps, now_ms=SUBMITTED_MS)

    def run(self, name: str) -> Run:
        """The run of this name as people see it."""
        (history,) = self.ledger.read_runs([name])
        return history.run

    def share(self, rank: int = 0, *, on: int = 0, **share: object) -> Share:
        instances = {one.uid: one for one in self.ledger.read_live().instances}
        instance = instances[self.instances[on]]
        return Share(
            rank=rank,
            instance_uid=instance.uid,
            instance_generation=instance.generation,
            boot_id=instance.boot_id,
            **{
                "cpu_millicores": 1000,
                "memory_bytes": GIB,
                "memory_limited": False,
                "disk_bytes": 0,
                **share,
            },
        )

    def place(self, name: str, *shares: Share) -> bool:
        return self.place_all((name, shares or (self.share(),)))[0]

    def place_all(self, *wanted: tuple[str, Sequence[Share]]) -> tuple[bool, ...]:
        return self.commit(*(self.placement(name, shares) for name, shares in wanted))

    def place_gangs(self, **ports: int) -> tuple[bool, ...]:
        """Place runs on two hosts, each with this master port."""
        shares = (self.share(0), self.share(1, on=1))
        return self.commit(*(self.placement(name, shares, port) for name, port in ports.items()))

    def placement(
        self, name: str, shares: Sequence[Share], master_port: int | None = None
    ) -> Placement:
        run = self.run(name)
        return Placement(run.uid, run.generation, run.attempt, tuple(shares), master_port)

    def commit(self, *placements: Placement) -> tuple[bool, ...]:
        return self.ledger.commit_placements(placements, fence=self.fence, now_ms=self.now_ms)

    def record(self, name: str, state: JobState, *, rank: int = 0, **facts: object) -> JobRecord:
        """What the host of a job would say of it."""
        (history,) = self.ledger.read_runs([name])
        job = history.attempts[-1].jobs[rank]
        if state is JobState.FINISHED:
            facts = {"cause": Cause.EXITED, "exit_code": 0, "finished_at_ms": self.now_ms, **facts}
        if state in {JobState.RUNNING, JobState.CLEANING, JobState.FINISHED}:
            facts = {"started_at_ms": self.now_ms - 500, **facts}
        return JobRecord(job.key, job.uid, job.gen, "digest", state, **facts)

    def say(self, *records: JobRecord, on: int = 0, snapshot: bool = False) -> tuple[JobKey, ...]:
        return self.ledger.commit_records(
            self.instances[on],
            records,
            None,
            snapshot=snapshot,
            fence=self.fence,
            now_ms=self.now_ms,
        )

    def decide(self, name: str, verdict: object) -> None:
        self.ledger.commit_transitions(
            [(self.run(name).uid, verdict)], fence=self.fence, now_ms=self.now_ms
        )

    def finish(self, name: str, state: RunState = RunState.DONE, cause: str = "exited") -> None:
        self.decide(name, Finish(state, cause, ""))

    def run_to_end(self, name: str, exit_code: int = 0) -> RunUid:
        """Place, run and finish a run of one job."""
        assert self.place(name)
        self.say(self.record(name, JobState.FINISHED, exit_code=exit_code))
        self.finish(name, RunState.DONE if exit_code == 0 else RunState.FAILED)
        return self.run(name).uid


def prepared_gang(desk: Desk, name: str = "g") -> None:
    """Submit a gang of two and bring it right before its commit point."""
    desk.submit(submit_step(name, nodes=2))
    assert desk.place(name, desk.share(0), desk.share(1, on=1))
    for rank in range(2):
        desk.say(desk.record(name, JobState.PREPARED, rank=rank), on=rank)
