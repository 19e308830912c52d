"""
How many seeds of both simulations one core plays a second, and where the time of one goes.

    python tests/bench/bench_simulation.py [SEEDS]

CPU time of this process. Tests play ten thousand seeds of apply and three hundred of hosts; how
long that takes on two cores is half of what it takes on one.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import parser_of, percentile, positive, table

from simulation.seeds import play_apply_seed, play_seed

APPLY_TESTED = 10_000
HOSTS_TESTED = 300


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("seeds", nargs="?", type=positive, default=200)
    seeds = parser.parse_args(arguments).seeds
    apply = measure(play_apply_seed, seeds)
    hosts = measure(play_seed, max(seeds // 5, 10))
    both = (apply[0] * APPLY_TESTED + hosts[0] * HOSTS_TESTED) / 2
    table(
        "Simulation, one core",
        ("simulation", "seeds/s", "seeds/min", "CPU a seed", "p95", "tested", "on 2 cores"),
        (
            row("apply", apply, APPLY_TESTED),
            row("hosts and runs", hosts, HOSTS_TESTED),
            ("both", "", "", "", "", "", f"{both:.0f} s"),
        ),
    )


def measure(play: Callable[[int], object], count: int) -> tuple[float, float]:
    """Mean and 95th percentile of CPU seconds a seed; garbage is left lying, as in the tests."""
    play(0)
    gc.collect()
    gc.disable()
    taken = []
    for seed in range(count):
        began = time.process_time()
        play(seed)
        taken.append(time.process_time() - began)
    gc.enable()
    return sum(taken) / count, percentile(taken, 0.95)


def row(name: str, measured: tuple[float, float], tested: int) -> tuple[str, ...]:
    mean, late = measured
    return (
        name,
        f"{1 / mean:.1f}",
        f"{60 / mean:.0f}",
        f"{mean * 1000:.1f} ms",
        f"{late * 1000:.1f} ms",
        str(tested),
        f"{mean * tested / 2:.0f} s",
    )


if __name__ == "__main__":
    main()
