"""
The first minutes of a newcomer: from an installation to the results of a sweep, and to one script.

Each line is typed in an empty home, with a new virtual environment. Seconds are those of the commands;
keystrokes are the characters of each line and of the document, with one more for Enter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from measuring import expect, measure_tree, parser_of, scratch, table

ROOT = Path(__file__).parents[2]

SWEEP = """\
type: task
name: sweep
matrix: {lr: [0.1, 0.01, 0.001]}
commands:
  - echo "loss with ${{ matrix.lr }}"
"""

SCRIPT = 'print("hello")\n'

STEPS = (
    ("install", "python3 -m venv .venv && . .venv/bin/activate && pip install SOURCE"),
    ("create an environment", "fleetform init lab && cd lab"),
    ("write a sweep", "cat > tasks/sweep.yaml"),
    ("apply it", "fleetform apply -y"),
    ("read the results", "fleetform logs sweep"),
)
ONE_SCRIPT = (
    ("write a script", "cat > hello.py"),
    ("run it, without an environment", "fleetform submit hello.py"),
)
_TYPED = {"cat > tasks/sweep.yaml": SWEEP, "cat > hello.py": SCRIPT}


def main(arguments: Sequence[str] | None = None) -> None:
    parser_of(__doc__).parse_args(arguments)
    with scratch() as folder:
        home = folder / "home"
        home.mkdir()
        (folder / "state").mkdir()
        rows = [
            *_walked("From nothing to the results of a sweep", STEPS, folder, home),
            *_walked("From there to one script", ONE_SCRIPT, folder, home),
        ]
    table(
        "A newcomer's first minutes",
        ["step", "typed", "keystrokes", "seconds"],
        rows,
    )


def _walked(
    title: str, steps: Sequence[tuple[str, str]], folder: Path, home: Path
) -> Iterator[list[str]]:
    keystrokes, seconds = 0, 0.0
    place = home
    for said, line in steps:
        typed = _TYPED.get(line, "")
        taken = _taken(line, typed, place, folder)
        if line.endswith("cd lab"):
            place = home / "lab"
        count = len(line) + 1 + (len(typed) + 1 if typed else 0)
        keystrokes, seconds = keystrokes + count, seconds + taken
        yield [said, f"`{line}`", str(count), f"{taken:.1f}"]
    yield [f"**{title}**", "", str(keystrokes), f"{seconds:.1f}"]


def _taken(line: str, typed: str, place: Path, folder: Path) -> float:
    """Run one line in the newcomer's shell; returns its seconds."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in {"PATH", "LANG", "TMPDIR"} or name.startswith("PIP_")
    }
    home = folder / "home"
    environment |= {
        "HOME": str(home),
        "NO_COLOR": "1",
        "FLEETFORM_STATE_HOME": str(folder / "state"),
    }
    if line != STEPS[0][1]:
        environment["PATH"] = f"{home}/.venv/bin:{environment['PATH']}"
    command = line.replace("SOURCE", str(ROOT))
    if typed:
        command = f"{line} << 'END'\n{typed}END"
    done = expect(measure_tree(["bash", "-c", command], environment=environment, folder=place))
    return done.wall_seconds


if __name__ == "__main__":
    main()
