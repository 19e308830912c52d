"""
The whole of apply under a virtual clock, with faults from a seed.

FLEETFORM_APPLY_SEEDS sets how many are played. A seed that fails is replayed with
`python tests/simulation/replay.py --apply SEED`, which prints everything that happened.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from fleetform.wiring.simulation import ApplyVerdict, play_apply_seed

SEEDS = int(os.environ.get("FLEETFORM_APPLY_SEEDS", "10000"))
CHUNK = 100


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
    crashes = {kind: n for kind, n in verdict.faults.items() if kind.startswith("crash ")}
    others = sum(verdict.faults.values()) - sum(crashes.values())
    return {
        "seeds": 1,
        "plans": verdict.plans,
        "executions": verdict.executions,
        "crashes injected": sum(crashes.values()),
        **{where: crashes.get(where, 0) for where in CRASHES},
        "other faults": others,
        "invariants checked": sum(verdict.checked.values()),
        "violations": len(verdict.violations),
    }


CRASHES = (
    "crash before a transaction",
    "crash in a transaction",
    "crash after a commit",
    "crash before a call",
    "crash after a call",
)


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_a_seed_replays_exactly_elsewhere(hash_seed: str) -> None:
    """Another process with another hash seed leaves the same trace: nothing iterates by address."""
    seeds = (4, 17, 101, 366)
    told = subprocess.run(
        [sys.executable, "-c", _REPLAY, *map(str, seeds)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == [play_apply_seed(seed).trace_digest for seed in seeds]


_REPLAY = """
import sys
from fleetform.wiring.simulation import play_apply_seed
for seed in sys.argv[1:]:
    print(play_apply_seed(int(seed)).trace_digest)
"""
