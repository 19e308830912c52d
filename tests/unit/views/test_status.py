"""`fleetform status` fits the smallest terminal, whatever the state of the environment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.model.drift import Drift, DriftClass, RecordedDrift, Remedy
from fleetform.model.hourly_cost import HourlyCost
from fleetform.model.ledger import LedgerStatus
from fleetform.model.overview import Overview, TroubledHost, TroubledRun
from fleetform.model.run_state import RunState
from fleetform.spec.desired import ResourceKey
from fleetform.views.attention import attention
from fleetform.views.controllers import ControllerKind, ControllerRow, WaitingRow
from fleetform.views.status import (
    AppliedRow,
    BlockedChange,
    BlockedRow,
    DriftSeen,
    HostsRow,
    LedgerRow,
    RunsRow,
    Status,
    hosts_row,
    status_lines,
)

NOW = 1_795_377_662_000
LONG = "a-name-of-a-run-that-is-as-long-as-a-name-may-be[learning_rate=0.0001,batch_size=1024]"

FRESH = Status(
    environment="lab",
    uid="01234567",
    fingerprint="5b1e6f0a4c2d8e9705f3a1b2c3d4e5f6",
    ledger=LedgerRow("empty"),
    applied=None,
    destroyed_at_ms=None,
    working_copy="3f2a1b0c9d8e7f6a5b4c+dirty",
    commits_ahead=None,
    controller=None,
    hosts=None,
    runs=None,
    drift=(),
    blocked=None,
    in_progress=(),
    rollouts={},
    overrides=(),
    attention=(),
    exit_code=0,
    at_ms=NOW,
)
SWEEP = replace(
    FRESH,
    ledger=LedgerRow("ready"),
    applied=AppliedRow("9d8e7f6a5b4c3f2a1b0c", "done", "ada@node1", NOW, "d", "all done"),
    commits_ahead=3,
    controller=ControllerRow(ControllerKind.SERVE, "serve", "serve", 7, "node1", NOW - 5000),
    hosts=HostsRow(16, {"ready": 15, "drained": 1}, (), NOW),
    runs=RunsRow(1000, {"running": 128, "submitted": 772, "done": 100}, 0, (), 12, 900),
)
FAILED = replace(
    SWEEP,
    hosts=HostsRow(
        16,
        {"ready": 6, "unreachable": 10},
        tuple(TroubledHost(f"lab-{n}", "unreachable", "no answer", NOW) for n in range(5)),
        NOW,
    ),
    runs=RunsRow(
        1000,
        {"done": 900, "failed": 100},
        100,
        tuple(TroubledRun(f"{LONG}{n}", RunState.FAILED, "exit code 1") for n in range(5)),
        40,
        0,
    ),
    attention=(
        "100 runs failed",
        "10 hosts unreachable",
    ),
)
EVERYTHING = replace(
    FAILED,
    environment="an-environment-with-a-name-that-is-as-long-as-it-may-be-and-then-some-more-of-it",
    controller=replace(
        SWEEP.controller, log=f"/home/ada/{LONG}/background.log", variables=("A", "B"), warning=LONG
    ),
    drift=tuple(DriftSeen(LONG, f"f{n}", "enforced", LONG, LONG, NOW) for n in range(40)),
    blocked=BlockedRow(
        "d",
        NOW,
        "ada",
        tuple(BlockedChange(f"run/{LONG}{n}", "running work", LONG, "") for n in range(40)),
    ),
    in_progress=tuple(WaitingRow(f"u{n}", "d", "ada", "c", NOW, 3) for n in range(7)),
    overrides=tuple(f"in force: emergency stop of {LONG}{n}" for n in range(9)),
    attention=(*FAILED.attention, "drift was seen in 40 fields", "40 changes blocked", LONG),
)
RECOVERING = replace(
    FRESH,
    ledger=LedgerRow("recovering", f"it was lost: {LONG} {LONG}", "`fleetform state rebuild`"),
    attention=("the ledger is recovering",),
)


@pytest.mark.parametrize(
    "status",
    [FRESH, SWEEP, FAILED, EVERYTHING, RECOVERING],
    ids=["fresh", "sweep", "failed", "everything", "recovering"],
)
def test_the_status_fits_a_small_terminal(status):
    """24 lines with the prompt, 80 columns; in a pipe it has as many lines, and they are whole."""
    lines = [one.text for one in status_lines(status, width=80)]
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    assert len(status_lines(status)) < 24


@pytest.mark.parametrize(
    ("hourly", "text"),
    [
        ({}, ""),
        ({"gpus": HourlyCost(2_012_000), "": HourlyCost(1_006_000)}, "; $3.02/h"),
        (
            {"gpus": HourlyCost(2_012_000), "lab": HourlyCost(0, 2)},
            "; $2.02/h + 2 hosts of unknown price",
        ),
    ],
)
def test_hosts_of_clouds_say_what_they_cost_now(hourly, text):
    """All that exist, also those that were released from their fleet; a sum says what it leaves out."""
    hosts = hosts_row(replace(NOTHING, hosts={"ready": 3}, hourly=hourly))
    lines = [one.text for one in status_lines(replace(SWEEP, hosts=hosts))]
    assert [one for one in lines if one.startswith("hosts")] == [f"hosts        3: 3 ready{text}"]


def test_a_list_that_is_cut_says_how_many_are_left_and_what_lists_them():
    """No count is lost with the names, and the command is not cut."""
    text = "\n".join(one.text for one in status_lines(EVERYTHING, width=80))
    for command in ("fleet show FLEET", "ps --state failed", "drift", "emergency list", "history"):
        assert f"`fleetform {command}`" in text
    assert "40 changes" in text


NOTHING = Overview(
    LedgerStatus.READY, "", {}, {}, (), outdated_count=0, ending_count=0, ending=(),
    work_count=0, hosts={}, troubled_hosts=(), leaving_count=0, joining_count=0, idle_count=0,
    heard_at_ms=None, applies=(), overrides=(),
)  # fmt: skip


def needs(found: Overview) -> tuple[str, ...]:
    return attention(LedgerRow("ready"), "", None, found, None)


def test_what_needs_attention_is_named_or_counted_by_state():
    """One run and one host have their names; of several, each state that any is in is counted."""
    run = TroubledRun("long", RunState.UNKNOWN, "")
    host = TroubledHost("node1", "unreachable", "no answer", NOW)
    one = replace(
        NOTHING, troubled_states={RunState.UNKNOWN: 1}, troubled=(run,),
        hosts={"ready": 3, "unreachable": 1}, troubled_hosts=(host,),
    )  # fmt: skip
    assert needs(one) == ("run long is unknown", "host node1 is unreachable")
    recovering = replace(
        NOTHING, hosts={"ready": 3, "recovering": 1},
        troubled_hosts=(replace(host, state="quarantined and recovering"),),
    )  # fmt: skip
    assert needs(recovering) == ("host node1 is quarantined and recovering",)
    several = replace(
        one, troubled_states={RunState.FAILED: 2, RunState.UNKNOWN: 1},
        hosts={"unreachable": 1, "suspect": 2},
        troubled_hosts=(replace(host, name="gone", state="leaving and unreachable"), host),
    )  # fmt: skip
    assert needs(several) == (
        "2 runs failed, 1 run unknown",
        "1 host unreachable, 2 hosts suspect, 1 host leaving and unreachable",
    )


def test_a_host_that_the_ledger_does_not_have_needs_attention():
    """It may cost money; what else is only observed does not count."""
    key = ResourceKey("fleet", "gpus")
    seen = [
        RecordedDrift(Drift(key, name, DriftClass.OBSERVED, Remedy.DECIDE, "a", "b"), NOW, NOW)
        for name in ("unknown", "image")
    ]
    assert needs(replace(NOTHING, drift=tuple(seen))) == ("1 host is not in the ledger",)
    disk = Drift(
        ResourceKey("volume", "data"), "attachment", DriftClass.OBSERVED, Remedy.DECIDE, "free", "attached to i-1"
    )  # fmt: skip
    elsewhere = replace(NOTHING, drift=(RecordedDrift(disk, NOW, NOW),))
    assert needs(elsewhere) == ("the disk of volume/data is attached to i-1",)


def test_what_a_run_waits_for_in_vain_needs_attention():
    """A host whose cloud refuses all offers says so once, and a fleet without hosts starts no run."""
    host = TroubledHost("gpus-0", "waiting for capacity", "waiting for capacity until 9:00", None)
    found = replace(NOTHING, hosts={"waiting for capacity": 1}, troubled_hosts=(host,))
    assert needs(found) == ("host gpus-0 is waiting for capacity",)
    lines = [one.text for one in status_lines(replace(SWEEP, hosts=hosts_row(found)))]
    assert "             ! gpus-0 is waiting for capacity until 9:00" in lines
    failed = replace(host, state="not created", message="AWS refused the credentials")
    found = replace(NOTHING, hosts={"not created": 1}, troubled_hosts=(failed,))
    assert needs(found) == ("host gpus-0 is not created",)
    assert attention(LedgerRow("ready"), "", None, NOTHING, None, hostless_runs=1) == (
        "1 run cannot start on a fleet without hosts",
    )


def test_runs_that_were_removed_and_are_not_over_are_shown():
    """After a destroy that was interrupted the configuration has no run, and hosts still have jobs."""
    left = replace(SWEEP, runs=RunsRow(0, {}, 0, (), 0, 2, ending_count=2, ending=("one", "two")))
    text = [one.text for one in status_lines(left)]
    assert "runs         ~ 2 removed or replaced runs are not over: one, two" in text
    assert not any("no runs" in one for one in text)


def test_the_commit_that_is_seen_stands_below_the_one_that_is_applied():
    """With how far it is ahead, and that files differ from it."""
    text = [one.text for one in status_lines(SWEEP, width=80)]
    assert "applied: 9d8e7f6a5b4c at 2026-11-22T20:01:02Z by ada@node1" in text[1]
    assert "working copy: 3f2a1b0c9d8e+dirty, 3 commits ahead" in text[2]


def test_a_silent_host_says_for_how_long():
    """From when it was heard last; a suspect host answers, and was heard just now."""
    hosts = (
        TroubledHost("node1", "recovering", "no heartbeat", NOW - 25_000),
        TroubledHost("node2", "suspect", "3 runs failed", NOW - 600_000),
    )
    row = HostsRow(2, {"recovering": 1, "suspect": 1}, hosts, None)
    text = "\n".join(one.text for one in status_lines(replace(FRESH, hosts=row)))
    assert "! node1 is recovering, silent for 25s: no heartbeat" in text
    assert "! node2 is suspect: 3 runs failed" in text
