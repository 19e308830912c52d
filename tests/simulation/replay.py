"""
Plays seeds and prints what happened, in virtual time: `python tests/simulation/replay.py SEED`.

`--apply` (the default) plays the whole of apply, `--hosts` plays hosts and runs. With a range,
`1000-2000`, only seeds that break a promise are told, which is what long searches are for.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from simulation.apply.play import ApplyVerdict
from simulation.seed import Verdict
from simulation.seeds import play_apply_seed, play_seed

Play = Callable[[int], ApplyVerdict | Verdict]

TELL_SECONDS = 60.0
"""How often a long search says how far it is."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", metavar="SEED", help="one seed, or a range as FIRST-END")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--apply", dest="play", action="store_const", const=play_apply_seed)
    which.add_argument("--hosts", dest="play", action="store_const", const=play_seed)
    given = parser.parse_args()
    play: Play = given.play or play_apply_seed
    first, dash, end = given.seeds.partition("-")
    broken = search(play, int(first), int(end)) if dash else replay(play, int(first))
    sys.exit(bool(broken))


def replay(play: Play, seed: int) -> int:
    """Print everything that happened; returns how many promises were broken."""
    verdict = play(seed)
    print("\n".join(verdict.trace))
    print(f"{verdict.executions} executions, {sum(verdict.faults.values())} faults")
    for sentence in verdict.violations:
        print(f"VIOLATION {sentence}")
    return len(verdict.violations)


def search(play: Play, first: int, end: int) -> int:
    """Print the first sentence of each seed that breaks a promise; returns how many do."""
    broken = 0
    began = told = time.monotonic()
    for seed in range(first, end):
        verdict = play(seed)
        if verdict.violations:
            broken += 1
            print(f"seed {seed}: {verdict.violations[0]}", flush=True)
        if (now := time.monotonic()) - told > TELL_SECONDS:
            told = now
            rate = (seed + 1 - first) * 60 / (now - began)
            print(f"# {seed + 1 - first} seeds, {rate:.0f} a minute, {broken} broken", flush=True)
    print(f"# {end - first} seeds, {broken} broken")
    return broken


if __name__ == "__main__":
    main()
