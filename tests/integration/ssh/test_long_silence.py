"""
Hosts that are cut off for a minute and longer, with the times that people have.

An hour is in `unit/controllers/test_hosts_silence`, under a virtual clock.
"""

from __future__ import annotations

import time

import pytest

from integration.ssh.environment import Environment
from integration.ssh.test_faults import kill_agent
from lab import Lab

pytestmark = [pytest.mark.fault, pytest.mark.waits, pytest.mark.usefixtures("fault_row")]

MINUTE = 60.0
GRACE = 2
BEAT = 15
"""Seconds between heartbeats: as much earlier than the cut the host may have heard the controller."""

PROOF = (MINUTE + GRACE) * 1.02 + 10
"""The least that a controller waits, from the end of its connection."""

ON_SILENCE = f"""\
on_silence: stop after 1m
stop_duration: {GRACE}s
retry: {{on: [node-failure], max_attempts: 3}}
"""


def test_a_cable_that_is_cut_for_a_minute(environment: Environment, hosts: Lab) -> None:
    """The host is unreachable after 45 s; its job ends meanwhile, and all of it arrives afterwards."""
    environment.declare(environment.fleet("node1"), environment.job("one"))
    serve = environment.start("serve")
    environment.wait_for_start("one")
    hosts.cut("node1")
    joined = time.time() + MINUTE
    try:
        environment.wait_until_host("node1", "unreachable")
        assert environment.states() == {"one": "unknown"}
        environment.open_gate("one")
        environment.wait_until(lambda: environment.ends("one") == [(1, 0)], "the end")
        environment.wait_until(lambda: time.time() >= joined, "a minute")
        assert environment.states() == {"one": "unknown"}
    finally:
        hosts.join("node1")
    environment.wait_for_done(serve, "one")
    environment.check_run("one")
    environment.check_nothing_shared()


@pytest.mark.parametrize("with_agent", [True, False])
def test_a_host_ends_a_job_that_hears_no_controller(
    environment: Environment, hosts: Lab, with_agent: bool
) -> None:
    """Only when that is certain does it start on another host; the first one, back again, runs nothing."""
    serve = environment.serve(
        environment.fleet("node1", "node2"), environment.job("one", ON_SILENCE)
    )
    first = environment.wait_for_start("one").host
    hosts.cut(first)
    cut = time.time()
    try:
        if not with_agent:
            kill_agent(environment, first)
        second = environment.wait_for_start("one", attempt=2)
        assert second.host != first
        assert second.at >= cut + PROOF
        last = max(one.at for one in environment.witnesses("one") if one.attempt == 1)
        assert cut + MINUTE - BEAT - 1 <= last <= cut + MINUTE + GRACE + 1
    finally:
        hosts.join(first)
    environment.wait_until_host(first, "ready")
    environment.wait_until(
        lambda: "line 1" in environment.run("logs", "one", "--attempt", "1").stdout, "its output"
    )
    environment.wait_for_work("one")
    environment.open_gate("one")
    environment.wait_for_done(serve, "one")
    environment.check_run("one", attempts=2)
    environment.check_nothing_shared()
    assert "(`on_silence`)" in environment.run("events", "one").stdout
