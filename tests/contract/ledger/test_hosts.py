"""Hosts: what a hello proves, and what silence does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract.ledgers import (
    GIB,
    Desk,
    carry_out,
    fleet_step,
    hello,
    prepared_gang,
    step,
    submit_step,
)
from fleetform.agents.protocol.host_report import GpuProcess
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.instance import GpuUse, InstanceState
from fleetform.model.override import OverrideKind
from fleetform.model.ports import InstanceMark, Ledger
from fleetform.model.run import RunState, SilenceLimit


def test_hello_brings_capacity(ledger: Ledger) -> None:
    """Capacity is what the fleet declares, else what the host reports."""
    desk = Desk.of(ledger, local={"cpu": 256_000})
    (instance,) = ledger.read_live().instances
    assert (instance.state, instance.cpu_millicores) == (InstanceState.READY, 256_000)
    assert (instance.memory_bytes, len(instance.gpus)) == (64 * GIB, 4)
    desk.greet(instance.uid)
    assert ledger.read_live().instances[0].generation == instance.generation
    desk.greet(instance.uid, gpus=3)
    assert ledger.read_live().instances[0].generation == instance.generation + 1


def test_gpus_that_are_no_longer_declared_are_not_allotted(ledger: Ledger) -> None:
    """Not even before the host answers again: the other environment may allot them already."""
    host = {"name": "one", "number": 0, "provider": "ssh", "endpoint": {"hostname": "one"}}
    more = [{**host, "declared": {"devices": devices}} for devices in ([0, "GPU-2"], ["GPU-2"])]
    created, updated = (
        replace(one, arguments={**one.arguments, "instances": [place]})
        for one, place in zip(
            (fleet_step("local"), fleet_step("local", verb="fleet.update")), more, strict=True
        )
    )
    carry_out(ledger, [created])
    desk = Desk(ledger, ledger.take_fence(who="test", now_ms=1))
    desk.greet(ledger.read_live().instances[0].uid)
    (before,) = ledger.read_live().instances
    carry_out(ledger, [updated])
    (after,) = ledger.read_live().instances
    assert [[gpu.index for gpu in one.gpus] for one in (before, after)] == [[0, 2], [2]]
    assert after.generation > before.generation


def test_gpus_that_are_used_outside_fleetform(ledger: Ledger) -> None:
    """Who uses one is recorded and cleared; only a change makes placements stale."""
    desk = Desk.of(ledger)
    (before,) = ledger.read_live().instances
    first, second = (gpu.uuid for gpu in before.gpus[:2])
    process = GpuProcess(123, "ada", "python")
    for _ in range(2):
        desk.ledger.note_gpu_processes(
            before.uid, {first: process, second: None, "GPU-x": process}, fence=desk.fence
        )
    (used,) = ledger.read_live().instances
    assert used.generation == before.generation + 1
    assert [gpu.used_by for gpu in used.gpus[:2]] == [GpuUse(123, "ada", "python"), None]
    desk.ledger.note_gpu_processes(before.uid, {}, fence=desk.fence)
    assert ledger.read_live().instances == (used,)
    desk.ledger.note_gpu_processes(before.uid, {first: None}, fence=desk.fence)
    (free,) = ledger.read_live().instances
    assert free.gpus == before.gpus
    desk.ledger.note_gpu_processes("unknown", {first: process}, fence=desk.fence)


def test_reboot_proves_losses(two_hosts: Desk) -> None:
    """What was started under another boot is lost, what was only prepared never started."""
    desk = two_hosts
    desk.submit(submit_step("a"), submit_step("b"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING))
    desk.place("b", desk.share(on=1))
    prepared_gang(desk)
    lost = desk.greet(desk.instances[0], boot="boot-2", records=())
    assert {key.run_uid for key in lost} == {desk.run("a").uid, desk.run("g").uid}
    causes = {
        name: [job.cause for job in desk.ledger.read_runs([name])[0].attempts[0].jobs]
        for name in ("a", "b", "g")
    }
    assert causes == {
        "a": [Cause.LOST],
        "b": [None],
        "g": [Cause.NEVER_STARTED, None],
    }
    assert {one.run_uid for one in desk.ledger.read_book().allocations} == {
        desk.run("b").uid,
        desk.run("g").uid,
    }


def test_result_outlives_the_reboot(desk: Desk) -> None:
    """A job whose end the rebooted host remembers is not lost: the record tells how it ended."""
    desk.submit(submit_step("a"))
    desk.place("a")
    done = desk.record("a", JobState.FINISHED)
    assert desk.greet(desk.instances[0], boot="boot-2", records=(done,)) == ()
    assert desk.greet(desk.instances[0], boot="boot-3", records=None) == ()
    desk.say(done, snapshot=True)
    (history,) = desk.ledger.read_runs(["a"])
    assert history.attempts[0].jobs[0].cause is Cause.EXITED


@pytest.mark.parametrize("end", ["ledger", "host", "lost", "on_silence"])
def test_a_lost_job_ends_with_the_last_sign_of_life(desk: Desk, end: str) -> None:
    """Whichever proof comes, and however late: the silence before it is no time of the run."""
    uid, began_ms = desk.instances[0], desk.now_ms
    desk.submit(submit_step("a", on_silence={"action": "stop", "after": 60}))
    desk.place("a")
    running = desk.record("a", JobState.RUNNING)
    desk.say(running)
    desk.now_ms += 100_000
    heard_ms = began_ms + 60_000
    desk.ledger.mark_instance(
        uid, state="unreachable", message="", heard_at_ms=heard_ms, now_ms=desk.now_ms
    )
    desk.now_ms += 10_000_000
    if end == "ledger":
        desk.greet(uid, boot="boot-2", records=())
    elif end == "host":
        # After its boot the host says itself that the job is lost, and takes that moment for its end.
        desk.greet(uid, boot="boot-2", records=None)
        desk.say(desk.record("a", JobState.FINISHED, cause=Cause.LOST, exit_code=None))
    elif end == "lost":
        desk.ledger.mark_instance(uid, state="terminated", message="", now_ms=desk.now_ms)
    else:
        desk.ledger.end_unheard([running.key], fence=desk.fence, now_ms=desk.now_ms)
    (job,) = desk.ledger.read_runs(["a"])[0].attempts[0].jobs
    assert (job.cause, job.finished_at_ms) == (Cause.LOST, heard_ms)


def test_a_lost_job_whose_host_answers_ends_now(desk: Desk) -> None:
    """Its supervisor was killed, say: the host knows when, and has been rebooted earlier."""
    uid = desk.instances[0]
    desk.greet(uid, boot="boot-2", records=())
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING))
    desk.now_ms += 10_000_000
    desk.say(desk.record("a", JobState.FINISHED, cause=Cause.LOST, exit_code=None))
    (job,) = desk.ledger.read_runs(["a"])[0].attempts[0].jobs
    assert job.finished_at_ms == desk.now_ms


def test_new_install_remembers_nothing(desk: Desk) -> None:
    """Under a new install id the old jobs are lost, also when the boot is the same."""
    for name, boot, install in (("a", "boot-2", "install-2"), ("b", "boot-2", "install-3")):
        desk.submit(submit_step(name))
        desk.place(name)
        desk.say(desk.record(name, JobState.RUNNING))
        lost = desk.greet(desk.instances[0], boot=boot, install=install, records=())
        assert [key.run_uid for key in lost] == [desk.run(name).uid]


def test_folder_that_was_exchanged(desk: Desk) -> None:
    """What is at work there and known of goes on, what is not is lost; what was sent may come yet."""
    desk.submit(*map(submit_step, "abc"))
    for name in "abc":
        desk.place(name)
    known = desk.record("a", JobState.RUNNING)
    desk.say(known, desk.record("b", JobState.RUNNING))
    lost = desk.greet(desk.instances[0], records=(known,))
    assert [key.run_uid for key in lost] == [desk.run("b").uid]
    (job,) = desk.ledger.read_runs(["b"])[0].attempts[0].jobs
    assert (job.cause, job.message) == (
        Cause.LOST,
        "host local-0 has no record of it: its folder was removed or replaced by an older copy",
    )
    again = desk.greet(desk.instances[0], install="install-2", records=(known,))
    assert [key.run_uid for key in again] == [desk.run("c").uid]
    assert desk.run("a").state is RunState.RUNNING


def test_silence_moves_nothing(desk: Desk) -> None:
    """A silent host makes its runs unknown and nothing else; its answer undoes that."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING))
    (uid,) = desk.instances
    (before,) = desk.ledger.read_live().instances
    desk.ledger.mark_instance(uid, state="unreachable", message="no", now_ms=2)
    assert desk.ledger.read_live().instances[0].seen_at_ms == before.seen_at_ms
    desk.ledger.mark_instance(
        uid, state="unreachable", message="no route", heard_at_ms=777, now_ms=2
    )
    assert desk.ledger.read_live().instances[0].seen_at_ms == 777
    assert desk.run("a").state is RunState.UNKNOWN
    assert len(desk.ledger.read_book().allocations) == 1
    assert desk.ledger.read_live().notes == ("host local-0 is unreachable: no route",)
    desk.greet(uid)
    assert desk.run("a").state is RunState.RUNNING


def test_several_hosts_are_marked_in_one_commit(two_hosts: Desk) -> None:
    """Each as if it were marked alone, and with its own reason."""
    desk = two_hosts
    first, second = desk.instances
    marks = [
        InstanceMark(first, "recovering", "the line was cut", 7),
        InstanceMark(second, "unreachable", "no route"),
        InstanceMark("f" * 32, "unreachable", "unknown"),
    ]
    before = desk.ledger.read_live().serial
    desk.ledger.mark_instances(marks, fence=desk.fence, now_ms=desk.now_ms)
    live = desk.ledger.read_live()
    assert live.serial == before + 1
    assert [(one.state, one.message) for one in live.instances] == [
        (InstanceState.RECOVERING, "the line was cut"),
        (InstanceState.UNREACHABLE, "no route"),
    ]
    assert live.instances[0].seen_at_ms == 7


def test_recovering_host_takes_no_jobs_and_keeps_runs_as_they_are(desk: Desk) -> None:
    """Its run stays running, nothing is placed there, and a hello or longer silence ends the state."""
    (host,) = desk.instances
    desk.submit(submit_step("a"), submit_step("b"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING))
    for end, state, run in (
        (lambda: desk.greet(host), InstanceState.READY, RunState.RUNNING),
        (lambda: _mark(desk, "unreachable"), InstanceState.UNREACHABLE, RunState.UNKNOWN),
    ):
        _mark(desk, "recovering")
        (instance,) = desk.ledger.read_live().instances
        assert (instance.state, instance.message) == (InstanceState.RECOVERING, "the line was cut")
        assert desk.run("a").state is RunState.RUNNING
        assert not desk.place("b")
        assert desk.ledger.read_overview().hosts == {"recovering": 1}
        assert [one.state for one in desk.ledger.read_overview().troubled_hosts] == ["recovering"]
        end()
        assert desk.ledger.read_live().instances[0].state is state
        assert desk.run("a").state is run


def test_only_a_host_that_answered_recovers(desk: Desk) -> None:
    """A host that has been silent for long stays unreachable until it says hello."""
    _mark(desk, "unreachable")
    _mark(desk, "recovering")
    assert desk.ledger.read_live().instances[0].state is InstanceState.UNREACHABLE


def test_a_recovering_host_is_ready_once_it_is_heard(desk: Desk) -> None:
    """A connection may last; that a suspect host is pardoned says nothing about it."""
    _mark(desk, "recovering")
    _mark(desk, "ready")
    assert desk.ledger.read_live().instances[0].state is InstanceState.RECOVERING
    desk.ledger.mark_instance(desk.instances[0], state="ready", message="", heard_at_ms=7, now_ms=8)
    (instance,) = desk.ledger.read_live().instances
    assert (instance.state, instance.seen_at_ms) == (InstanceState.READY, 7)


def _mark(desk: Desk, state: str) -> None:
    desk.ledger.mark_instance(desk.instances[0], state=state, message="the line was cut", now_ms=2)


def test_suspect_host_takes_no_jobs(desk: Desk) -> None:
    """A suspect host keeps its jobs and gets none, until it is pardoned or says hello again."""
    (host,) = desk.instances
    desk.submit(submit_step("a"), submit_step("b"), submit_step("c"))
    desk.place("a")
    for pardon in (
        lambda: desk.ledger.mark_instance(host, state="ready", message="", now_ms=2),
        lambda: desk.greet(host),
    ):
        desk.ledger.mark_instance(host, state="suspect", message="it fails", now_ms=1)
        (instance,) = desk.ledger.read_live().instances
        assert (instance.state, instance.message) == (InstanceState.SUSPECT, "it fails")
        assert not desk.place("b")
        assert len(desk.ledger.read_book().allocations) == 1
        pardon()
        (instance,) = desk.ledger.read_live().instances
        assert (instance.state, instance.message) == (InstanceState.READY, "")
    assert desk.place("b")


def test_silent_host_is_neither_suspect_nor_pardoned(desk: Desk) -> None:
    """Of a host that is silent only a hello tells that it is ready."""
    (host,) = desk.instances
    desk.ledger.mark_instance(host, state="unreachable", message="no answer", now_ms=1)
    for state in ("suspect", "ready"):
        desk.ledger.mark_instance(host, state=state, message="", now_ms=2)
        (instance,) = desk.ledger.read_live().instances
        assert (instance.state, instance.message) == (InstanceState.UNREACHABLE, "no answer")


def test_terminated_host_is_proof(desk: Desk) -> None:
    """A provider's word that the instance is gone ends its jobs."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.ledger.mark_instance(desk.instances[0], state="terminated", message="spot", now_ms=1)
    (history,) = desk.ledger.read_runs(["a"])
    assert history.attempts[0].jobs[0].cause is Cause.LOST
    assert desk.greet(desk.instances[0]) == ()


@pytest.mark.parametrize("leave", ["removed", "forgotten", "terminated", "retired"])
def test_a_quarantine_ends_with_its_host(two_hosts: Desk, leave: str) -> None:
    """A new host of that name does not inherit it; hosts that stay, and drains by hand, keep theirs."""
    ledger, gone = two_hosts.ledger, two_hosts.instances[1]
    for kind, target in (
        (OverrideKind.QUARANTINE, "host/local-0"),
        (OverrideKind.QUARANTINE, "host/local-1"),
        (OverrideKind.DRAIN, "host/local-1"),
    ):
        ledger.put_overrides(kind, [target], reason="it fails", who="x", now_ms=1, until_ms=None)
    match leave:
        case "removed":
            carry_out(ledger, [step("fleet.remove", "local")])
        case "forgotten":
            carry_out(ledger, [step("fleet.forget", "local")])
        case "terminated":
            ledger.mark_instance(gone, state="terminated", message="spot", now_ms=2)
        case _:
            carry_out(ledger, [fleet_step("local", 1, "fleet.update")])
            assert len(ledger.read_overrides()) == 3, (
                "a leaving host is quarantined until it has left"
            )
            ledger.retire(gone, fence=two_hosts.fence, now_ms=2)
    left = [] if leave in {"removed", "forgotten"} else [1]
    assert [one.number for one in ledger.read_overrides()] == [*left, 3]
    lifted_by = {one.override.number: one.lifted_by for one in ledger.read_past_overrides()}
    assert lifted_by[2] == "the removal of the host"


def test_hello_of_an_unknown_instance(desk: Desk) -> None:
    """A hello under a uid that has no row changes nothing."""
    before = desk.ledger.read_live()
    assert desk.ledger.commit_host(hello("f" * 32), fence=desk.fence, now_ms=1) == ()
    assert desk.ledger.read_live() == before


SILENCE = {"on_silence": {"action": "stop", "after": 600}, "stop_duration": 30}


def test_a_job_keeps_the_limit_of_its_start(desk: Desk) -> None:
    """The limit of the document is written down with the job when it is placed; no limit is none."""
    desk.submit(submit_step("a", **SILENCE), submit_step("b", on_silence={"action": "wait"}))
    assert desk.place("a")
    assert desk.place("b")
    attempts = desk.ledger.read_book().attempts
    assert attempts[desk.run("a").uid].jobs[0].silence == SilenceLimit(600, 0, 30)
    assert attempts[desk.run("b").uid].jobs[0].silence is None


def test_an_unheard_job_ends(two_hosts: Desk) -> None:
    """With a limit it is lost and its units are free; its host keeps a record that is to be forgotten."""
    desk = two_hosts
    desk.submit(submit_step("a", **SILENCE), submit_step("b"))
    desk.place("a")
    desk.place("b")
    desk.say(desk.record("a", JobState.RUNNING), desk.record("b", JobState.RUNNING))
    desk.ledger.mark_instance(desk.instances[0], state="unreachable", message="no", now_ms=2)
    keys = [desk.record(name, JobState.RUNNING).key for name in ("a", "b")]
    assert desk.ledger.end_unheard(keys, fence=desk.fence, now_ms=3) == (keys[0],)
    (job,) = desk.ledger.read_runs(["a"])[0].attempts[0].jobs
    assert (job.state, job.cause, job.forgotten) == (JobState.FINISHED, Cause.LOST, False)
    assert job.message == (
        "host local-0 is unreachable, and stops a job that hears no controller for 10m00s"
        " (`on_silence`)"
    )
    assert [one.run_uid for one in desk.ledger.read_book().allocations] == [desk.run("b").uid]
    # Again, or late: an end, once said, stays what it is.
    assert desk.ledger.end_unheard(keys, fence=desk.fence, now_ms=4) == ()
    assert desk.say(desk.record("a", JobState.FINISHED)) == ()
    assert desk.run("b").state is RunState.UNKNOWN


def test_an_unheard_job_that_is_in_doubt_stays(desk: Desk) -> None:
    """A host that cannot prove the end of a job does not end it in time either."""
    desk.submit(submit_step("a", **SILENCE))
    desk.place("a")
    desk.say(desk.record("a", JobState.UNKNOWN, message="processes may still run"))
    key = desk.record("a", JobState.UNKNOWN).key
    assert desk.ledger.end_unheard([key], fence=desk.fence, now_ms=3) == ()
