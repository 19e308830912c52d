"""
Plans and applies at size, beside Terraform's of as many resources, in one run on one machine.

    python tests/bench/bench_terraform.py [--all]

Ten thousand resources as a person would write them, a hundred to a file, and once more one to a
file; a hundred thousand; a sweep. Each row is a whole command as it is typed, from its start to
its end, with the memory of all its processes together. Terraform's rows are left out where it is not
installed. Its making of ten thousand takes most of an hour, so three smaller sizes show how that
grows; `--all` measures it, and lets fleetform make a hundred thousand, which are otherwise written into its
ledger, by the ledger's own calls.

Ours are volumes: directories that an agent on this machine makes, marks and syncs. Terraform's are
`terraform_data`, which are made by writing them into its state.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import terraform
from measuring import (
    FLEETFORM,
    Measured,
    environment_of,
    expect,
    measure_tree,
    parser_of,
    scratch,
    seconds,
    speed_of_machine,
    table,
    write_tree,
)

COUNT = 10_000
LARGE = 100_000
SWEEP = (100, 20)
GROWTH = (250, 500, 1000)
GROWTH_ALL = (*GROWTH, 2000)
A_FILE = 100
RUNS = 5
# Terraform's take from ten seconds up, and differ by less.
THEIR_RUNS = 1
ONE = 4711

FLEET = "type: fleet\nname: here\nnodes: 1\nlocal: {cpu: 4}\n"
TESTS = str(Path(__file__).parents[1])
_PATHS = [path for path in [os.environ.get("PYTHONPATH")] if path]
_ENTER = "import applied, pathlib, sys; applied.enter(pathlib.Path(sys.argv[1]))"


class Row(NamedTuple):
    """One case: what was measured of ours and, where there is the like, of theirs."""

    title: str
    asked: str
    ours: list[Measured]
    theirs: list[Measured]


class Ours:
    """A tree of volumes and the state that goes with it."""

    def __init__(self, tree: Path, state: Path, count: int, a_file: int) -> None:
        self.tree = tree
        self._state = state
        self._count = count
        self._a_file = a_file
        self._turn = 0
        write_tree(tree, {"fleet.yaml": FLEET})
        for start in range(0, count, a_file):
            self._write(start)

    def like(self, other: Ours) -> None:
        """Be another way to write the same environment."""
        text = (other.tree / "environment.yaml").read_text()
        (self.tree / "environment.yaml").write_text(text)

    def change(self, field: str) -> None:
        """Change one field of one volume, to another value each time."""
        self._turn += 1
        value = f"turn-{self._turn}" if field == "description" else f"many/turn-{self._turn}"
        self._write(ONE // self._a_file * self._a_file, {field: value})

    def restore(self) -> None:
        self._write(ONE // self._a_file * self._a_file)

    def run(self, *arguments: str, says: str = "", code: int = 0) -> Measured:
        command = [FLEETFORM, arguments[0], str(self.tree), *arguments[1:]]
        environment = environment_of(self._state)
        measured = expect(measure_tree(command, environment=environment, folder=self.tree), code)
        if says not in measured.output:
            raise SystemExit(measured.output[-2000:])
        return measured

    def enter(self) -> None:
        """Have the ledger believe that all of it was made, as no host has said."""
        subprocess.run(
            [sys.executable, "-c", _ENTER, str(self.tree)],
            env=environment_of(self._state) | {"PYTHONPATH": os.pathsep.join((TESTS, *_PATHS))},
            check=True,
        )

    def settled(self) -> None:
        """Load once, so that what is kept of the tree is what it is now."""
        self.run("validate")

    def _write(self, start: int, fields: dict[str, str] | None = None) -> None:
        numbers = range(start, min(start + self._a_file, self._count))
        documents = [_volume(number, fields if number == ONE else None) for number in numbers]
        below = self.tree / f"part-{start // self._a_file % 100:02d}"
        below.mkdir(exist_ok=True)
        (below / f"volumes-{start:06d}.yaml").write_text("---\n".join(documents))


def _volume(number: int, fields: dict[str, str] | None) -> str:
    said = {"path": f"many/{_name(number)}", **(fields or {})}
    lines = "".join(f"{name}: {value}\n" for name, value in said.items())
    return f"type: volume\nname: {_name(number)}\nfleet: here\n{lines}"


def _name(number: int) -> str:
    return f"v{number:06d}"


def times(count: int, one: Callable[[], Measured]) -> list[Measured]:
    return [one() for _ in range(count)]


def changing(count: int, ours: Ours, field: str) -> Iterator[Measured]:
    """Plans right after an edit, each after another one."""
    for _ in range(count):
        ours.change(field)
        yield ours.run("plan", says="1 to")


def ten_thousand(folder: Path, program: str | None, *, is_all: bool) -> Iterator[Row]:
    ours = Ours(folder / "hundred", folder / "state", COUNT, A_FILE)
    single = Ours(folder / "single", folder / "state", COUNT, 1)
    single.like(ours)
    first = ours.run("plan", says=f"{COUNT + 1} to create")
    again = times(RUNS, lambda: ours.run("plan", says=f"{COUNT + 1} to create"))
    created = ours.run("apply", "-y")
    theirs = None
    if program is not None:
        theirs = terraform.Terraform(program, folder / "terraform")
        theirs.write(COUNT)
        theirs.begin()
        fresh = [theirs.plan(says=f"{COUNT} to add")]
        made = [theirs.apply()] if is_all else []
        theirs.write_state(COUNT)
    yield Row("plan, nothing made, first time", "", [first], [])
    yield Row("plan, nothing made", "", again, fresh if theirs else [])
    yield Row("create all", "50 s", [created], made if theirs else [])
    yield from compared(ours, theirs, f"{COUNT // A_FILE} files")
    yield from compared(single, None, f"{COUNT} files")


def compared(ours: Ours, theirs: terraform.Terraform | None, title: str) -> Iterator[Row]:
    """Plans of what has been made: nothing differs, one value does, one resource is asked for."""

    def beside(*arguments: str, says: str) -> list[Measured]:
        if theirs is None:
            return []
        return times(THEIR_RUNS, lambda: theirs.plan(*arguments, says=says))

    ours.settled()
    unchanged = times(RUNS, lambda: ours.run("plan", says="No changes"))
    yield Row(f"no-op plan, {title}", "1.0 s, 200 MB", unchanged, beside(says="No changes"))
    if theirs is not None:
        theirs.write(COUNT, changed=ONE)
    in_place = list(changing(RUNS, ours, "description"))
    yield Row(f"one change, {title}", "0.3 s", in_place, beside(says="1 to change"))
    replaced = list(changing(RUNS, ours, "path"))
    yield Row(f"one replacement, {title}", "0.3 s", replaced, [])
    ours.settled()
    aimed = times(RUNS, lambda: ours.run("plan", f"--target=volume/{_name(ONE)}", says="1 to"))
    other = beside(f"-target={terraform.address(ONE)}", says="1 to change")
    yield Row(f"--target one, {title}", "0.3 s", aimed, other)
    ours.restore()


def sweep(folder: Path, program: str | None, *, is_all: bool) -> Iterator[Row]:
    rates, seeds = SWEEP
    count = rates * seeds
    learning = ", ".join(f"{number / 1000:.3f}" for number in range(1, rates + 1))
    document = (
        "type: task\nname: sweep\nmatrix:\n"
        f"  lr: [{learning}]\n  seed: [{', '.join(map(str, range(seeds)))}]\n"
        "commands:\n  - python train.py --lr ${{ matrix.lr }} --seed ${{ matrix.seed }}\n"
        "fleets: [here]\nresources: {cpu: 1, memory: 1GB}\n"
    )
    tree = write_tree(folder / "sweep", {"fleet.yaml": FLEET, "sweep.yaml": document})

    def plan() -> Measured:
        command = [FLEETFORM, "plan", str(tree)]
        environment = environment_of(folder / "state")
        return expect(measure_tree(command, environment=environment, folder=tree))

    first = plan()
    ours = times(RUNS, plan)
    planned, made = [], []
    if program is not None:
        theirs = terraform.Terraform(program, folder / "terraform")
        theirs.write_each(count)
        theirs.begin()
        planned = times(THEIR_RUNS, lambda: theirs.plan(says=f"{count} to add"))
        made = [theirs.apply()] if is_all else []
    yield Row(f"sweep of {count}, first plan", "", [first], [])
    yield Row(f"sweep of {count}, plan", "0.5 s", ours, planned)
    if made:
        yield Row(f"for_each of {count}, made", "", [], made)


def hundred_thousand(folder: Path, *, is_all: bool) -> Iterator[Row]:
    """Plans of nothing made and of all made; making them takes minutes, so most are told so."""
    ours = Ours(folder / "large", folder / "state", LARGE, A_FILE)
    says = f"{LARGE + 1} to create"
    asked = "12 s, 1.5 GB"
    yield Row("plan, nothing made, first time", asked, [ours.run("plan", says=says)], [])
    yield Row("plan, nothing made", asked, times(2, lambda: ours.run("plan", says=says)), [])
    if is_all:
        yield Row("create all", "", [ours.run("apply", "-y")], [])
    else:
        ours.enter()
    ours.settled()
    unchanged = times(RUNS, lambda: ours.run("plan", says="No changes"))
    yield Row("no-op plan", asked, unchanged, [])
    yield Row("one change", asked, list(changing(RUNS, ours, "description")), [])


def growth(folder: Path, program: str | None, *, is_all: bool) -> list[list[str]]:
    """Making all of them, at sizes that show how the time grows."""
    rows = []
    for count in GROWTH_ALL if is_all else GROWTH:
        below = folder / f"growth-{count}"
        below.mkdir()
        ours = Ours(below / "tree", folder / "state", count, A_FILE).run("apply", "-y")
        cells = [f"{count}", f"{ours.wall_seconds:.1f} s", f"{_each(ours, count):.2f} ms"]
        if program is not None:
            theirs = terraform.Terraform(program, below / "terraform")
            theirs.write(count)
            theirs.begin()
            made = theirs.apply()
            cells += [f"{made.wall_seconds:.1f} s", f"{_each(made, count):.2f} ms"]
        else:
            cells += ["-", "-"]
        rows.append(cells)
    return rows


def _each(measured: Measured, count: int) -> float:
    return measured.wall_seconds / count * 1000


def shown(row: Row) -> list[str]:
    cpu = seconds([one.cpu_seconds for one in row.ours]) if row.ours else "-"
    wall, memory = _cells(row.ours)
    return [row.title, wall, cpu, memory, row.asked or "-", *_cells(row.theirs)]


def _cells(taken: list[Measured]) -> list[str]:
    if not taken:
        return ["-", "-"]
    peak = statistics.median(one.peak_bytes for one in taken) / 1e6
    return [seconds([one.wall_seconds for one in taken]), f"{peak:.0f} MB"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--all", action="store_true", help="what takes most of an hour as well")
    is_all = parser.parse_args(arguments).all
    program = terraform.find()
    print(f"Ten million additions take this Python {speed_of_machine():.2f} s.")
    header = ["what", "fleetform", "processor", "memory", "asked", "terraform", "memory"]
    with scratch() as folder:
        rows = [shown(row) for row in ten_thousand(folder, program, is_all=is_all)]
        table(f"{COUNT} resources", header, rows)
    with scratch() as folder:
        table("A sweep", header, [shown(row) for row in sweep(folder, program, is_all=is_all)])
    with scratch() as folder:
        rows = [shown(row) for row in hundred_thousand(folder, is_all=is_all)]
        table(f"{LARGE} resources, {A_FILE} to a file", header, rows)
    with scratch() as folder:
        header = ["resources", "fleetform", "each", "terraform", "each"]
        table("Making all", header, growth(folder, program, is_all=is_all))


if __name__ == "__main__":
    main()
