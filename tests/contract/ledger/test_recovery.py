"""Recovery: a ledger that lost its past starts nothing until its hosts have spoken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract.ledgers import (
    Desk,
    carry_out,
    enter,
    fleet_step,
    hello,
    plan_of,
    run_key,
    step,
    submit_step,
)
from fleetform.agents.protocol.messages import JobKey, JobRecord
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.ledger import LedgerStatus
from fleetform.model.ports import StalePlan
from fleetform.model.recovery import Evidence
from fleetform.model.rollout import SURGE
from fleetform.model.run import RunState
from fleetform.model.run_state import NO_EVIDENCE
from fleetform.providers.contract.observed import InstanceSeen
from fleetform.spec.desired import Declared, Desired, Environment


def test_recovering_ledger_starts_nothing(desk: Desk) -> None:
    """While it recovers, no plan is accepted and nothing is placed; then everything goes on."""
    desk.submit(submit_step("a"))
    desk.ledger.begin_recovery("host x remembers epoch 3")
    live = desk.ledger.read_live()
    assert (live.status, live.notes) == (LedgerStatus.RECOVERING, ("host x remembers epoch 3",))
    assert not desk.place("a")
    with pytest.raises(StalePlan, match="recovering: host x remembers"):
        enter(desk.ledger, plan_of(desk.ledger, [submit_step("b")]))
    assert desk.ledger.raise_epoch(above=3) == 4
    assert desk.ledger.raise_epoch() == 5
    desk.ledger.end_recovery()
    assert desk.ledger.read_live().status is LedgerStatus.READY
    assert desk.place("a")


def test_an_apply_from_before_a_rebuild_ends(desk: Desk) -> None:
    """What was entered before is not gone on with: hosts may have told since that it ran."""
    plan = plan_of(desk.ledger, [submit_step("a")])
    accepted = enter(desk.ledger, plan)
    nothing = Evidence(Desired(Environment("test", "e" * 32), {}), (), {}, {})
    desk.ledger.adopt_evidence(nothing, {}, who="me", now_ms=9, mark_missing=True)
    assert desk.ledger.unfinished_apply() is None
    (record,) = [one for one in desk.ledger.read_applies() if one.uid == accepted.apply_uid]
    assert (record.state, record.finished_at_ms) == ("interrupted", 9)
    assert "rebuilt" in record.summary


def test_records_are_adopted_once(desk: Desk) -> None:
    """What a host remembers becomes runs that are over or unknown, and never waiting ones."""
    (host,) = desk.instances
    ended, cut, alive = ("a" * 32, "b" * 32, "c" * 32)
    records = [
        JobRecord(JobKey(*key, 0), f"{n}" * 32, 4, "", JobState.FINISHED, Cause.EXITED, code)
        for n, (key, code) in enumerate([((ended, 1), 1), ((ended, 2), 0), ((cut, 1), 3)])
    ]
    records.append(JobRecord(JobKey(alive, 1, 0), "9" * 32, 4, "", JobState.RUNNING))
    adopted = desk.ledger.adopt_records(host, records, names={ended: "train"}, now_ms=7)
    assert len(adopted) == 4
    assert desk.ledger.adopt_records(host, records, names={}, now_ms=8) == ()
    states = {one.run.name: one.run.state for one in desk.ledger.read_runs()}
    assert states == {
        "train": RunState.DONE,
        f"recovered-{cut[:12]}": RunState.FAILED,
        f"recovered-{alive[:12]}": RunState.UNKNOWN,
    }
    (unknown,) = desk.ledger.read_book().runs
    assert unknown == alive


def test_adoption_keeps_a_run_from_starting_twice(desk: Desk) -> None:
    """An older ledger's waiting job that a host already knows is the host's and waits no more."""
    desk.submit(submit_step("a"), submit_step("b"))
    known = {name: desk.ledger.read_runs([name])[0].attempts[0].jobs[0] for name in "ab"}
    host, later = desk.instances[0], JobKey(known["b"].key.run_uid, 2, 0)
    records = [
        JobRecord(known["a"].key, known["a"].uid, 5, "", JobState.RUNNING, started_at_ms=3),
        JobRecord(later, "9" * 32, 5, "", JobState.FINISHED, Cause.EXITED, 1),
    ]
    assert desk.ledger.adopt_records(host, records, names={}, now_ms=7) == (
        tuple(record.key for record in sorted(records, key=lambda one: one.key))
    )
    assert not desk.place("a")
    assert not desk.place("b")
    first, second = desk.run("a"), desk.run("b")
    assert (first.state, first.attempt) == (RunState.RUNNING, 1)
    assert (second.state, second.attempt) == (RunState.FINISHING, 2)
    desk.finish("b", RunState.FAILED)
    assert desk.run("b").state is RunState.FAILED


def test_adoption_keeps_the_master_port_that_the_ledger_has(two_hosts: Desk) -> None:
    """Of a run that only hosts know, none is known, and none is sent."""
    desk, unknown = two_hosts, "c" * 32
    desk.submit(submit_step("g", nodes=2))
    assert desk.place_gangs(g=20_000) == (True,)
    jobs = desk.ledger.read_runs(["g"])[0].attempts[0].jobs
    for rank, host in enumerate(desk.instances):
        records = [
            JobRecord(jobs[rank].key, jobs[rank].uid, 5, "", JobState.RUNNING, started_at_ms=3),
            JobRecord(JobKey(unknown, 1, rank), f"{rank}" * 32, 5, "", JobState.RUNNING),
        ]
        desk.ledger.adopt_records(host, records, names={}, now_ms=7)
    book = desk.ledger.read_book()
    ports = {uid: attempt.master_port for uid, attempt in book.attempts.items()}
    assert ports == {desk.run("g").uid: 20_000, unknown: None}
    assert book.master_ports == {desk.run("g").uid: 20_000}


def test_a_let_go_host_comes_back_with_a_fleet_that_is_declared(desk: Desk) -> None:
    """To the place that it had, in the stead of what was begun there; others stay let go."""
    (uid,) = desk.instances
    carry_out(desk.ledger, [step("fleet.forget", "local")])
    seen = InstanceSeen(uid, "local-0", "local", "e" * 32, "", 1, alive=True)
    evidence = Evidence(Desired(Environment("test", "e" * 32), {}), (seen,), {}, {})
    desk.ledger.adopt_evidence(evidence, {}, who="me", now_ms=9, mark_missing=False)
    assert desk.ledger.read_live().released_hosts == {uid}
    made = fleet_step("local")
    desk.ledger.adopt_evidence(evidence, {"local": made}, who="me", now_ms=9, mark_missing=False)
    live = desk.ledger.read_live()
    assert [(one.uid, one.name, one.fleet) for one in live.instances] == [(uid, "local-0", "local")]
    assert live.released_hosts == frozenset()


def test_a_host_that_came_early_keeps_its_place_beside_the_old_one(desk: Desk) -> None:
    """An exchange that an older ledger knows nothing of loses neither; settled, it has the number."""
    (old,) = desk.instances
    name = desk.ledger.read_live().instances[0].name
    both = [(old, name), ("d" * 32, f"{name}-new"), ("f" * 32, "spare-0-new")]
    seen = tuple(
        InstanceSeen(uid, called, called.split("-")[0], "e" * 32, "", 1, alive=True)
        for uid, called in both
    )
    evidence = Evidence(Desired(Environment("test", "e" * 32), {}), seen, {}, {})
    for _ in range(2):
        desk.ledger.adopt_evidence(evidence, {}, who="me", now_ms=9, mark_missing=False)
        found = {one.uid: (one.name, one.number) for one in desk.ledger.read_live().instances}
        assert found == {
            old: (name, 0),
            "d" * 32: (f"{name}-new", SURGE),
            "f" * 32: ("spare-0", 0),
        }


def _ran_on(host: str, desk: Desk, *records: JobRecord) -> None:
    """Rebuild the desk's ledger from a host that remembers these."""
    name = desk.ledger.read_live().instances[0].name
    seen = InstanceSeen(host, name, "local", "e" * 32, "", 1, alive=True)
    answer = hello(host, records=records)
    evidence = Evidence(Desired(Environment("test", "e" * 32), {}), (seen,), {host: answer}, {})
    desk.ledger.adopt_evidence(evidence, {}, who="me", now_ms=desk.now_ms, mark_missing=True)


def _run_record(uid: str, state: JobState) -> JobRecord:
    ended = {"cause": Cause.EXITED, "exit_code": 0} if state is JobState.FINISHED else {}
    return JobRecord(
        JobKey(uid, 1, 0), "9" * 32, 4, "", state, started_at_ms=1, run_name="a", **ended
    )


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.FINISHED])
def test_a_row_that_no_host_has_heard_of_gives_way_to_a_run_that_began_since(
    desk: Desk, state: JobState
) -> None:
    """An apply on an older copy has entered and placed it: what ran is not run once more."""
    (host,) = desk.instances
    desk.submit(submit_step("a"))
    assert desk.place("a")
    entered = desk.run("a").uid
    ran = "a" * 32
    for _ in range(2):
        _ran_on(host, desk, _run_record(ran, state))
        live = desk.ledger.read_live()
        assert live.resources[run_key("a")].uid == ran
        assert desk.run("a").uid == ran
        book = desk.ledger.read_book()
        assert entered not in book.runs
        # Its place is free once the host has promised never to start it.
        (job,) = [one for one in book.lingering if one.key.run_uid == entered]
        assert job.stop_wanted


def test_a_run_that_is_tried_anew_does_not_give_way_to_what_it_followed(desk: Desk) -> None:
    """A host's record of the run before it is known here, and no proof of anything newer."""
    (host,) = desk.instances
    desk.submit(submit_step("a"))
    assert desk.place("a")
    desk.say(record := replace(desk.record("a", JobState.FINISHED), run_name="a"))
    desk.finish("a")
    anew = submit_step("a")
    desk.submit(replace(anew, arguments={**anew.arguments, "replaces": record.key.run_uid}))
    waits = desk.run("a").uid
    assert waits != record.key.run_uid
    _ran_on(host, desk, record)
    assert desk.run("a").uid == waits
    assert desk.place("a")


def test_hosts_that_were_put_back_too_prove_nothing_by_having_no_record(desk: Desk) -> None:
    """What waits in an older copy may have run since: it is unknown, as is what is declared otherwise."""
    desk.submit(submit_step("waits"))
    desk.submit(submit_step("ran"))
    desk.run_to_end("ran")
    declared = Declared(
        run_key("ran"), "task", {"type": "task", "commands": ["false"]}, "other", "other", "other"
    )
    desired = Desired(Environment("test", "e" * 32), {declared.key: declared})
    evidence = Evidence(desired, (), {}, {}, is_complete=False)
    found = desk.ledger.adopt_evidence(evidence, {}, who="me", now_ms=9, mark_missing=True)
    assert [(one.name, one.state) for one in found] == [("waits", "unknown"), ("ran", "unknown")]
    for history in desk.ledger.read_runs(["waits", "ran"]):
        assert (history.run.state, history.run.cause) == (RunState.UNKNOWN, NO_EVIDENCE)
    assert not desk.ledger.read_book().runs
