"""The ports of runs on several nodes: none is given twice, and environments begin at different ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleetform.schedule.master_ports import PORTS, free_ports
from unit.schedule.cases import codes, decide, details, instance, run, started

UIDS = st.text("0123456789abcdef", min_size=32, max_size=32)
USED = st.sets(st.integers(PORTS.start - 9, PORTS.stop + 9)) | st.sets(
    st.integers(PORTS.start, PORTS.start + 40)
)


@given(UIDS, USED)
def test_each_free_port_is_given_once_in_order_from_the_start(uid: str, used: set[int]) -> None:
    """Upwards from the environment's first port, then from the lowest of all up to that."""
    (first, *_) = free_ports(uid, ())
    in_order = [*range(first, PORTS.stop), *range(PORTS.start, first)]
    assert list(free_ports(uid, used)) == [port for port in in_order if port not in used]


def test_ports_are_none_that_others_take_unasked() -> None:
    """Neither outgoing connections of Linux, nor torchrun by default, nor what needs root."""
    assert min(PORTS) > 1023
    assert max(PORTS) < min(29_500, 32_768)


def test_environments_begin_at_different_ports() -> None:
    """Of a hundred environments hardly two begin at the same, and the next ones are seldom in use."""
    starts = {next(free_ports(f"{number:032x}", ())) for number in range(100)}
    assert len(starts) >= 98


def test_a_run_gets_a_port_only_for_several_nodes() -> None:
    """And none that another run has."""
    hosts = [instance("a"), instance("b", number=1)]
    first, second, third, *_ = free_ports("e" * 32, ())
    runs = [run("g", 1, nodes=2), run("one", 2), run("h", 3, nodes=2)]
    decisions = decide(
        runs, hosts, environment_uid="e" * 32, master_ports=frozenset({second, 29_499})
    )
    ports = {one.run_uid: one.master_port for one in decisions.starts}
    assert ports == {"uid-g": first, "uid-one": None, "uid-h": third}


def test_a_run_waits_while_all_ports_are_in_use() -> None:
    """Runs on one node start, and no host is kept for it."""
    hosts = [instance("a"), instance("b", number=1)]
    runs = [run("g", 1, nodes=2, priority=9), run("one", 2)]
    decisions = decide(runs, hosts, master_ports=frozenset(PORTS))
    assert started(decisions) == ["one"]
    assert codes(decisions, "g") == ["master-port"]
    assert details(decisions, "g") == ["all 9500 ports for runs on several nodes are in use"]
