"""Plays one seed and prints what happened: `python tests/simulation/replay.py SEED`."""

from __future__ import annotations

import sys

from fleetform.wiring.simulation import play_seed


def main() -> None:
    verdict = play_seed(int(sys.argv[1]))
    print("\n".join(verdict.trace))
    print(f"{verdict.executions} executions, {sum(verdict.faults.values())} faults")
    for sentence in verdict.violations:
        print(f"VIOLATION {sentence}")
    sys.exit(bool(verdict.violations))


if __name__ == "__main__":
    main()
