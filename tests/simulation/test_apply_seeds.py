"""
The whole of apply under a virtual clock, with faults from a seed.

FLEETFORM_TEST_APPLY_SEEDS sets how many are played. A seed that fails is replayed with
`python tests/simulation/replay.py --apply SEED`, which prints everything that happened.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from simulation.apply.faults import KINDS, POINTS, Point
from simulation.apply.play import MET, ApplyVerdict
from simulation.apply.rule import Rule
from simulation.seeds import play_apply_seed

SEEDS = int(os.environ.get("FLEETFORM_TEST_APPLY_SEEDS", "10000"))
CHUNK = 100
FEW = 200
"""Enough that each kind of fault is among them."""
MANY = 1000
"""Enough that each rare call is: a volume goes with its data where several things meet."""


@pytest.mark.usefixtures("quiet_memory")
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_breaks_a_promise(first: int, count: Callable[[str, dict[str, int]], None]) -> None:
    """Whatever dies, is lost, doubled, late, paused or restored: every rule of the judge holds."""
    totals: Counter[str] = Counter()
    broken: list[str] = []
    traces: dict[int, str] = {}
    for seed in range(first, min(first + CHUNK, SEEDS)):
        verdict = play_apply_seed(seed)
        traces[seed] = verdict.trace_digest
        totals.update(figures(verdict))
        broken += [f"seed {seed}: {sentence}" for sentence in verdict.violations]
    # One of each hundred is played twice, and must be the same to the last line.
    if play_apply_seed(first).trace_digest != traces[first]:
        broken.append(f"seed {first} does not replay")
    count("simulation of apply", dict(totals))
    assert not broken, "\n".join(broken)


def figures(verdict: ApplyVerdict) -> dict[str, int]:
    """The figures of one seed for the summary line, in its order."""
    return {
        "seeds": 1,
        "plans": verdict.plans,
        "executions": verdict.executions,
        "points at which one may die": len(verdict.points),
        "crashes injected": len(verdict.died_at),
        **{kind: verdict.faults.get(kind, 0) for kind in KINDS},
        **{what: verdict.met.get(what, 0) for what in MET},
        "invariants checked": sum(verdict.checked.values()),
        "violations": len(verdict.violations),
    }


@pytest.mark.usefixtures("quiet_memory")
def test_whatever_is_named_happens() -> None:
    """
    Each kind of fault befalls some seed of a few hundred, and no kind befalls one unnamed.

    So does what is no fault, and each of the judge's rules is asked about.
    """
    faults: Counter[str] = Counter()
    met: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for seed in range(FEW):
        verdict = play_apply_seed(seed)
        faults.update(verdict.faults)
        met.update(verdict.met)
        asked.update(verdict.checked)
    assert sorted(faults) == sorted(KINDS)
    assert sorted(met) == sorted(MET)
    assert sorted(asked) == sorted(rule.name for rule in Rule)


@pytest.mark.usefixtures("quiet_memory")
def test_no_write_and_no_call_goes_without_a_crash() -> None:
    """
    Every write of the ledger and every call to a host that seeds pass has been died at.

    Before a transaction, in it, after its commit, before a call and after it: where no seed of
    these has met one, the first that passes it is played again and dies there.
    """
    passed: dict[Point, tuple[int, int]] = {}
    died_at: set[Point] = set()
    for seed in range(MANY):
        if seed >= FEW and {what for _, what in passed} >= WRITES | CALLS:
            break
        verdict = play_apply_seed(seed)
        died_at.update(verdict.died_at)
        for number, point in enumerate(verdict.points, start=1):
            passed.setdefault(point, (seed, number))
    broken: list[str] = []
    for point, (seed, number) in passed.items():
        if point not in died_at:
            verdict = play_apply_seed(seed, dies_at=number)
            assert verdict.points[number - 1] == point
            died_at.update(verdict.died_at)
            broken += [f"seed {seed}, {number}: {sentence}" for sentence in verdict.violations]
    assert not broken, "\n".join(broken)
    assert sorted(died_at) == sorted(passed)
    # A call of the ledger has three points and one of a host has two, or one goes uncounted.
    assert {what for _, what in passed} >= WRITES | CALLS
    assert {(where, what) for what in WRITES for where in POINTS[:3]} <= passed.keys()
    assert {(where, what) for what in CALLS for where in POINTS[3:]} <= passed.keys()


WRITES = {
    "put_overrides",
    "lift_overrides",
    "note_observations",
    "take_lease",
    "accept",
    "begin_steps",
    "finish_steps",
    "finish_apply",
    "take_fence",
    "commit_host",
    "commit_placements",
    "commit_records",
    "commit_transitions",
    "commit_exchanges",
    "retire",
    "begin_recovery",
    "raise_epoch",
    "adopt_evidence",
}
CALLS = {
    "hello",
    "instance.make",
    "instance.release",
    "job.start",
    "job.stop",
    "volume.make",
    "volume.remove",
    "volume.snapshot",
}


@pytest.mark.usefixtures("quiet_memory")
@pytest.mark.parametrize("seed", [2, 6])
def test_an_apply_dies_at_each_of_its_points_in_turn(seed: int) -> None:
    """However many points a seed passes, it keeps its promises whichever of them it dies at."""
    points = play_apply_seed(seed).points
    broken = [
        f"at {number}, {points[number - 1]}: {sentence}"
        for number in range(1, len(points) + 1)
        for sentence in play_apply_seed(seed, dies_at=number).violations
    ]
    assert not broken, "\n".join(broken)


def test_a_stop_holds_for_what_a_rebuild_finds() -> None:
    """Runs that a restored ledger did not know to be at work are ended when hosts tell of them."""
    assert play_apply_seed(70007).violations == ()


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_a_seed_replays_exactly_elsewhere(hash_seed: str) -> None:
    """Another process with another hash seed leaves the same trace: nothing iterates by address."""
    seeds = (4, 17, 101, 366)
    told = subprocess.run(
        [sys.executable, "-c", _REPLAY, *map(str, seeds)],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == [play_apply_seed(seed).trace_digest for seed in seeds]


_REPLAY = """
import sys
from simulation.apply.faults import KINDS, POINTS, Point
from simulation.seeds import play_apply_seed
for seed in sys.argv[1:]:
    print(play_apply_seed(int(seed)).trace_digest)
"""
