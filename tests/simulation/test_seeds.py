"""
Hosts and runs under a virtual clock: the real manager and agents, with faults from a seed.

FLEETFORM_TEST_SIMULATION_SEEDS sets how many are played. A seed that fails is replayed with
`python tests/simulation/replay.py --hosts SEED`, which prints everything that happened. What plans
do is `test_apply_seeds`'; a seed here takes four times as long, and there are fewer.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

import pytest

from simulation.seeds import play_seed

SEEDS = int(os.environ.get("FLEETFORM_TEST_SIMULATION_SEEDS", "300"))
CHUNK = 50


@pytest.mark.usefixtures("quiet_memory")
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_breaks_a_promise(first: int, count: Callable[[str, dict[str, int]], None]) -> None:
    """Every seed ends with each run over, nothing started twice, and an empty second plan."""
    totals: Counter[str] = Counter()
    broken: list[str] = []
    for seed in range(first, min(first + CHUNK, SEEDS)):
        verdict = play_seed(seed)
        totals += Counter(
            {
                "seeds": 1,
                "runs": verdict.runs,
                "executions": verdict.executions,
                "virtual minutes": round(verdict.virtual_seconds / 60),
                "violations": len(verdict.violations),
                **{f"{kind} faults": times for kind, times in verdict.faults.items()},
            }
        )
        broken += [f"seed {seed}: {sentence}" for sentence in verdict.violations]
    totals["violations"] += 0
    count("simulation of hosts", totals)
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("seed", [3, 17, 101])
def test_a_seed_replays_exactly(seed: int) -> None:
    """Two plays of one seed leave the same trace, so that a failure can be looked at."""
    assert play_seed(seed).trace_digest == play_seed(seed).trace_digest
