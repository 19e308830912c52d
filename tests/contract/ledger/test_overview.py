"""The overview: counts of runs and hosts, open work, and the first that need attention."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from contract.ledgers import Desk, carry_out, enter, fleet_step, plan_of, step, submit_step
from fleetform.model.ledger import LedgerStatus
from fleetform.model.override import OverrideKind
from fleetform.model.ports import Ledger
from fleetform.model.run import RunState


def test_a_new_ledger_has_nothing(ledger) -> None:
    """Nothing is counted, and nothing needs attention."""
    found = ledger.read_overview()
    assert (found.status, found.runs, found.hosts, found.work_count) == (
        LedgerStatus.EMPTY, {}, {}, 0,
    )  # fmt: skip
    assert (found.troubled, found.troubled_hosts, found.applies) == ((), (), ())


def test_runs_are_counted_by_state_and_the_failed_are_named(desk: Desk, look) -> None:
    """A reader in another process sees the same counts; names come in order, with their messages."""
    desk.submit(*(submit_step(name) for name in ("a", "b", "c", "d", "e")))
    desk.run_to_end("a")
    desk.run_to_end("c", exit_code=3)
    desk.run_to_end("b", exit_code=1)
    desk.finish("d", RunState.UNSCHEDULABLE)
    with closing(look()) as reader:
        found = reader.read_overview()
    assert found.runs == {
        RunState.SUBMITTED: 1, RunState.DONE: 1, RunState.FAILED: 2, RunState.UNSCHEDULABLE: 1,
    }  # fmt: skip
    assert [(one.name, one.state.value) for one in found.troubled] == [
        ("b", "failed"), ("c", "failed"), ("d", "unschedulable"),
    ]  # fmt: skip
    assert (found.troubled_count, found.work_count) == (3, 1)


def test_outdated_results_are_counted(desk: Desk) -> None:
    """Of runs whose input was re-run, of those that start from them, and of those whose base has changed."""
    chain = {
        "data": None, "train": "data", "report": "train", "alone": None,
    }  # fmt: skip
    for name, needed in chain.items():
        runs = [{"run": needed, "when": "succeeded"}] if needed else []
        desk.submit(submit_step(name, depends_on={"runs": runs, "all": True}))
        desk.run_to_end(name)
    assert desk.ledger.read_overview().outdated_count == 0
    desk.submit(submit_step("data", rerun=1))
    assert desk.ledger.read_overview().outdated_count == 0, "there is no other result yet"
    desk.run_to_end("data")
    assert desk.ledger.read_overview().outdated_count == 2
    arguments = submit_step("alone").arguments
    desk.submit(step("run.update", "alone", **arguments, stale=True))
    desk.submit(step("run.update", "train", **submit_step("train").arguments, stale=True))
    assert desk.ledger.read_overview().outdated_count == 3


def test_a_silent_host_is_named_and_its_run_is_unknown(desk: Desk) -> None:
    """Silence shows in hosts and in runs."""
    desk.submit(submit_step("a"))
    assert desk.place("a")
    desk.ledger.mark_instance(
        desk.instances[0], state="unreachable", message="no answer", now_ms=desk.now_ms
    )
    found = desk.ledger.read_overview()
    assert found.hosts == {"unreachable": 1}
    assert [(one.name, one.message) for one in found.troubled_hosts] == [("local-0", "no answer")]
    assert [(one.name, one.state) for one in found.troubled] == [("a", RunState.UNKNOWN)]
    assert found.work_count == 1


@pytest.mark.parametrize(
    ("state", "counted", "named"),
    [
        ("ready", "quarantined", ("quarantined", "GPU 0 is lost")),
        ("suspect", "quarantined", ("quarantined", "GPU 0 is lost")),
        ("recovering", "recovering", ("quarantined and recovering", "GPU 0 is lost")),
        ("unreachable", "unreachable", ("unreachable", "no answer")),
    ],
)
def test_a_quarantined_host_is_named_in_each_state(
    desk: Desk, state: str, counted: str, named: tuple[str, str]
) -> None:
    """Silence stays visible; a host that answers was heard just now, whatever was recorded last."""
    desk.ledger.put_overrides(
        OverrideKind.QUARANTINE, ["host/local-0"],
        reason="GPU 0 is lost", who="the controller", now_ms=1, until_ms=None,
    )  # fmt: skip
    desk.ledger.mark_instance(desk.instances[0], state=state, message="no answer", now_ms=2)
    found = desk.ledger.read_overview()
    assert found.hosts == {counted: 1}
    (host,) = found.troubled_hosts
    assert (host.state, host.message) == named
    assert (host.seen_at_ms is None) == (counted == "quarantined")


def test_a_run_that_is_declared_stopped_is_work_until_it_ends_and_no_failure(desk: Desk) -> None:
    """A controller has to end a run that waits; a variable named `state` asks for nothing."""
    desk.submit(
        submit_step("failed"), submit_step("waits", state="stopped"),
        submit_step("variable", env={"state": "stopped"}),
    )  # fmt: skip
    desk.run_to_end("failed", exit_code=1)
    assert (desk.ledger.read_overview().troubled_count, desk.ledger.read_overview().work_count) == (
        1, 2,
    )  # fmt: skip
    arguments = submit_step("failed", state="stopped").arguments
    desk.submit(step("run.update", "failed", **arguments))
    desk.finish("waits", RunState.STOPPED, cause="stopped")
    found = desk.ledger.read_overview()
    assert (found.troubled_count, found.troubled, found.work_count) == (0, (), 1)


def test_a_removed_run_that_is_at_work_is_open_work(desk: Desk) -> None:
    """It is in no count of the configuration's runs, and a controller has to bring it to its end."""
    desk.submit(submit_step("a"))
    assert desk.place("a")
    carry_out(
        desk.ledger,
        [step("run.stop", "a", cause="removed"), step("run.archive", "a")],
        now_ms=desk.now_ms,
    )
    found = desk.ledger.read_overview()
    assert (found.runs, found.work_count) == ({}, 1)


def test_an_apply_that_is_not_over_is_open_work(desk: Desk) -> None:
    """With the number of steps that are left, until it is over."""
    accepted = enter(desk.ledger, plan_of(desk.ledger, [submit_step("a"), submit_step("b")]))
    (found,) = desk.ledger.read_overview().applies
    assert (found.record.uid, found.open_steps) == (accepted.apply_uid, 2)
    desk.ledger.finish_apply(accepted.apply_uid, state="failed", summary="no", now_ms=2)
    assert desk.ledger.read_overview().applies == ()


def test_overrides_in_force_are_in_it(desk: Desk) -> None:
    """They are read in the same transaction as the counts that they explain."""
    desk.ledger.put_overrides(
        OverrideKind.PAUSE, (), reason="swap", who="ada", now_ms=1, until_ms=None
    )
    assert [one.reason for one in desk.ledger.read_overview().overrides] == ["swap"]


def test_a_stop_that_an_earlier_release_wrote_is_a_stop(desk: Desk) -> None:
    """It called such a run `terminated`; the row is read as `stopped`, and counts with the others."""
    desk.submit(submit_step("old"), submit_step("new"))
    for name in ("old", "new"):
        desk.finish(name, RunState.STOPPED, cause="stopped")
    with desk.ledger._database.write() as transaction:
        transaction.execute("UPDATE runs SET state = 'terminated' WHERE name = 'old'")
    assert desk.run("old").state is RunState.STOPPED
    found = desk.ledger.read_overview()
    assert (found.runs, found.troubled_count) == ({RunState.STOPPED: 2}, 0)


def test_a_host_without_a_declared_gpu_is_named(ledger: Ledger) -> None:
    """It takes runs, and fewer than its fleet declares."""
    place = {
        "name": "one", "number": 0, "provider": "ssh", "endpoint": {"hostname": "one"},
        "declared": {"devices": [0, 7]},
    }  # fmt: skip
    made = fleet_step("local")
    carry_out(ledger, [replace(made, arguments={**made.arguments, "instances": [place]})])
    Desk(ledger, ledger.take_fence(who="test", now_ms=1)).greet(ledger.read_live().instances[0].uid)
    (host,) = ledger.read_overview().troubled_hosts
    assert (host.name, host.state) == ("one", "without a declared GPU")
    assert host.message == "the host has no GPU 7, which `devices` declares"
