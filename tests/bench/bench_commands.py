"""Wall time of commands that people wait for: environments/local before and after its apply."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from measuring import expect, measure, parser_of, scratch, seconds, table

RUNS = 11
TREE = Path(__file__).parents[2] / "environments" / "local"
RUN = "train"


def main(arguments: Sequence[str] | None = None) -> None:
    parser_of(__doc__).parse_args(arguments)
    with scratch() as folder:
        state = folder / "state"
        tree = str(shutil.copytree(TREE, folder / "tree"))
        # Its runs compute with what is installed beside this interpreter.
        file = folder / "tree" / "environment.yaml"
        declared = file.read_text(encoding="utf-8")
        file.write_text(declared.replace("python: python3", f"python: {sys.executable}"))
        rows = [
            timed("version", ["version"], "0.15 s", state),
            timed("--help", ["--help"], "-", state),
            timed("validate", ["validate", tree], "0.35 s", state),
            timed("plan, nothing applied", ["plan", tree], "0.30 s", state),
        ]
        expect(measure(["apply", tree, "-y"], state=state))
        rows += [
            timed("plan, all applied", ["plan", tree], "0.30 s", state),
            timed("ps", ["ps", tree], "0.30 s", state),
            timed("why", ["why", "-C", tree, RUN], "0.30 s", state),
            timed("logs", ["logs", "-C", tree, RUN], "0.30 s", state),
        ]
    table(
        f"Commands on environments/local, {RUNS} runs each",
        ["command", "wall", "peak memory", "asked"],
        rows,
    )


def timed(title: str, arguments: list[str], asked: str, state: Path) -> list[str]:
    measure(arguments, state=state)  # Warm: compiled files and the page cache.
    taken = [expect(measure(arguments, state=state)) for _ in range(RUNS)]
    return [
        f"fleetform {title}",
        seconds([one.wall_seconds for one in taken]),
        f"{max(one.peak_bytes for one in taken) / 1e6:.0f} MB",
        asked,
    ]


if __name__ == "__main__":
    main()
