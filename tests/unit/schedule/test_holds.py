"""No run starves behind smaller ones, and what cannot delay it may pass."""

from __future__ import annotations

from unit.schedule.cases import NOW, codes, decide, details, held, instance, need, run, started


def scene(*behind, ends=None, backfill=True, busy=4, large=8):
    """One host of 8 CPUs of which `busy` are in use; a run for `large` waits at the head."""
    host = instance("h")
    return decide(
        [run("head", 1, need(cpu=large, memory=1), priority=50), *behind],
        [host],
        allocations=[held(host, cpu=busy)],
        ends_at_ms={} if ends is None else {"uid-other": NOW + ends},
        backfill=backfill,
    )


def test_a_held_host_drains_when_no_end_is_known():
    """Smaller runs behind wait, and are told for whom."""
    decisions = scene(run("small", 2, need(cpu=1, memory=1)))
    assert not decisions.starts
    assert details(decisions, "small") == [
        "h is kept free for head (priority 50), which is ahead in the queue"
    ]


def test_a_run_that_ends_before_the_head_can_start_may_pass():
    """EASY: 60 s of work fit before the host is given back in ten minutes."""
    short = run("short", 2, need(cpu=1, memory=1), max_duration_seconds=60)
    long = run("long", 3, need(cpu=1, memory=1), max_duration_seconds=900)
    decisions = scene(short, long, ends=600_000)
    assert started(decisions) == ["short"]
    assert codes(decisions, "long") == ["priority"]


def test_a_run_that_leaves_enough_may_pass():
    """Units beyond the head's need are lent, and only once."""
    long = [run(f"long{n}", n + 2, need(cpu=1, memory=1)) for n in range(3)]
    assert started(scene(*long, ends=600_000, large=6)) == ["long0", "long1"]


def test_without_backfill_nothing_passes():
    """Strict order: even what could not delay the head waits."""
    short = run("short", 2, need(cpu=1, memory=1), max_duration_seconds=60)
    assert not scene(short, ends=600_000, backfill=False).starts


def test_other_hosts_are_free_for_those_behind():
    """One host is held, its neighbour takes the small run."""
    hosts = [instance("a", number=0), instance("b", number=1)]
    busy = [held(hosts[0], cpu=4), held(hosts[1], cpu=6)]
    runs = [run("head", 1, need(cpu=8)), run("small", 2)]
    decisions = decide(runs, hosts, allocations=busy)
    assert decisions.starts[0].shares[0].instance_uid == "uid-b"


def test_strict_order_closes_the_whole_fleet():
    """Without backfill the neighbour is closed too, and another fleet is not."""
    hosts = [instance("a", "one"), instance("b", "one", 1), instance("c", "two")]
    busy = [held(hosts[0], cpu=4), held(hosts[1], cpu=4)]
    runs = [run("head", 1, need(cpu=8), fleets=("one",)), run("x", 2, fleets=("one",)), run("y", 3)]
    assert started(decide(runs, hosts, allocations=busy, backfill=False)) == ["y"]


def test_the_hold_stays_where_least_is_missing():
    """A second round holds the same host, as it has only come to lack less."""
    hosts = [instance("a", number=0), instance("b", number=1)]
    for in_use in (5, 3, 1):
        busy = [held(hosts[0], cpu=7), held(hosts[1], cpu=in_use)]
        decisions = decide([run("head", 1, need(cpu=8)), run("s", 2)], hosts, allocations=busy)
        assert decisions.starts[0].shares[0].instance_uid == "uid-a"


def test_a_gang_holds_as_many_hosts_as_it_has_nodes():
    """Of three hosts two are held, and the third takes the small run."""
    hosts = [instance(f"h{n}", number=n) for n in range(3)]
    busy = [held(host, cpu=n + 1) for n, host in enumerate(hosts)]
    decisions = decide(
        [run("gang", 1, need(cpu=8), nodes=2), run("small", 2)], hosts, allocations=busy
    )
    assert decisions.starts[0].shares[0].instance_uid == "uid-h2"


def test_a_gang_that_lacks_ready_hosts_holds_none():
    """A silent host does not stop its fleet."""
    hosts = [instance("a", number=0), instance("b", number=1, state="unreachable")]
    decisions = decide([run("gang", 1, nodes=2), run("small", 2)], hosts)
    assert started(decisions) == ["small"]
    assert details(decisions, "gang") == [
        "needs 2 instances of fleet local; 1 of 2 that could take it is ready (1 unreachable)"
    ]


def test_what_waits_for_others_holds_nothing():
    """A run with an open dependency does not keep hosts from anybody."""
    from fleetform.model.run import Dependency

    host = instance("h")
    blocked = run("blocked", 1, need(cpu=8), depends_on=(Dependency("up"),))
    assert started(decide([blocked, run("small", 2)], [host])) == ["small"]
