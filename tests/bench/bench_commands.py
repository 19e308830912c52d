"""Wall time of commands that people wait for: `version`, and `plan` of environments/local."""

from __future__ import annotations

import shutil
from pathlib import Path

from measuring import expect, measure, scratch, seconds, table

RUNS = 11
TREE = Path(__file__).parents[2] / "environments" / "local"


def main() -> None:
    rows = []
    with scratch() as folder:
        state = folder / "state"
        tree = folder / "tree"
        shutil.copytree(TREE, tree)
        for title, arguments, asked in (
            ("fleetform version", ["version"], "0.15 s"),
            ("fleetform --help", ["--help"], "-"),
            ("fleetform validate environments/local", ["validate", str(tree)], "-"),
            ("fleetform plan environments/local, nothing applied", ["plan", str(tree)], "0.4 s"),
        ):
            measure(arguments, state=state)  # Warm: compiled files and the page cache.
            taken = [expect(measure(arguments, state=state)) for _ in range(RUNS)]
            rows.append(
                [
                    title,
                    seconds([one.wall_seconds for one in taken]),
                    f"{max(one.peak_bytes for one in taken) / 1e6:.0f} MB",
                    asked,
                ]
            )
    table(f"Commands, {RUNS} runs each", ["command", "wall", "peak memory", "asked"], rows)


if __name__ == "__main__":
    main()
