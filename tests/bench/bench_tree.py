"""
What loading a tree costs: cold, with nothing changed, with one file changed. Prints two tables.

    python tests/bench/bench_tree.py [documents]

The tree has a document a file: seven tasks of ten, a sweep, two volumes, and a fleet for each
twenty. In process each row is an interpreter of its own that loads once. Times are of the
processor where that is said, and medians, so that a machine that others use shows nearly the same.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from measuring import FLEETFORM, parser_of, positive, scratch, table, write_tree

RUNS = 7
DOCUMENTS = 10_000

FLEET = "type: fleet\nname: fleet-{group}\nlocal: true\nnodes: 0..4\n"
VOLUME = "type: volume\nname: data-{number}\nfleet: fleet-{group}\npath: data/{number}\n"
SWEEP = """\
type: task
name: sweep-{number}
matrix:
  lr: [0.1, 0.2]
  batch: [32, 64]
commands:
  - python train.py --lr ${{{{ matrix.lr }}}}
fleets: [fleet-{group}]
"""
TASK = """\
type: task
name: train-{number}
commands:
  - python train.py --lr 0.1
env:
  DATA: /data
volumes: ["data-{volume}:/data"]
fleets: [fleet-{group}]
resources:
  cpu: 2..
  memory: 1GB..
priority: 50
"""

IN_PROCESS = """
import json, os, resource, sys, time
from pathlib import Path
root, cache = Path(sys.argv[1]), sys.argv[2]
before, begun = sum(os.times()[:2]), time.perf_counter()
from fleetform.spec.tree import load_tree
from fleetform.spec.tree.cache_file import open_cache, save_cache
known = open_cache(Path(cache), root) if cache else None
loaded = load_tree(root, cache=known)
if known is not None:
    save_cache(known, Path(cache), root)
print(json.dumps({
    "cpu": sum(os.times()[:2]) - before,
    "wall": time.perf_counter() - begun,
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    "documents": loaded.documents_count,
    "findings": len(loaded.findings),
}))
"""


REFERENCE = """
import json, os, resource, sys, time
from pathlib import Path
import yaml
files = sorted(Path(sys.argv[1]).rglob("*.yaml"))
before, begun = sum(os.times()[:2]), time.perf_counter()
for file in files:
    yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
print(json.dumps({
    "cpu": sum(os.times()[:2]) - before,
    "wall": time.perf_counter() - begun,
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""


def document(number: int) -> str:
    group = number // 20
    place = number % 20
    text = {0: FLEET, 1: VOLUME, 2: VOLUME, 3: SWEEP}.get(place, TASK)
    return text.format(number=number, group=group, volume=group * 20 + 1)


def make_tree(folder: Path, count: int) -> Path:
    write_tree(folder, {})
    for number in range(count):
        below = folder / f"part-{number % 100:02}"
        below.mkdir(exist_ok=True)
        (below / f"{number}.yaml").write_text(document(number))
    return folder


def touch_one(root: Path, count: int) -> Callable[[int], None]:
    """Change one file, another one each time."""

    def change(turn: int) -> None:
        number = (turn * 20 + 7) % count
        path = root / f"part-{number % 100:02}" / f"{number}.yaml"
        path.write_text(f"{document(number)}description: turn {turn}\n")

    return change


def in_process(root: Path, cache: Path | None) -> dict[str, float]:
    process = subprocess.run(
        [sys.executable, "-c", IN_PROCESS, str(root), str(cache or "")],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    told: dict[str, float] = json.loads(process.stdout)
    assert not told["findings"], told
    return told


def by_other(root: Path) -> dict[str, float]:
    """What PyYAML's compiled loader takes for the same files: a measure of the machine."""
    process = subprocess.run(
        [sys.executable, "-c", REFERENCE, str(root)], check=True, capture_output=True, text=True
    )
    told: dict[str, float] = json.loads(process.stdout)
    return told


def by_command(arguments: list[str], cache: Path) -> dict[str, float]:
    """A command from its start to its end."""
    environment = {**os.environ, "FLEETFORM_CACHE_HOME": str(cache), "NO_COLOR": "1"}
    environment["FLEETFORM_STATE_HOME"] = str(cache / "state")
    environment["FLEETFORM_CONFIG_HOME"] = str(cache / "config")
    begun = os.times().elapsed
    process = subprocess.Popen([FLEETFORM, *arguments], env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    wall = os.times().elapsed - begun
    cpu = usage.ru_utime + usage.ru_stime
    return {"cpu": cpu, "wall": wall, "peak": usage.ru_maxrss * 1024}


def row(
    title: str, asked: str, measure: Callable[[], dict[str, float]],
    before: Callable[[int], object] = int,
) -> list[str]:  # fmt: skip
    taken = []
    for turn in range(RUNS):
        before(turn)
        taken.append(measure())

    def middle(what: str) -> str:
        values = [one[what] for one in taken]
        return f"{statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f})"

    peak = max(one["peak"] for one in taken) / 1e6
    return [title, middle("cpu"), middle("wall"), f"{peak:.0f} MB", asked]


def tree_rows(root: Path, cache: Path, count: int) -> list[list[str]]:
    """Cold, unchanged, and one changed: in process, then as the command."""

    def forget(_: int) -> None:
        shutil.rmtree(cache, ignore_errors=True)

    rows = []
    for title, measure in (
        ("load", lambda: in_process(root, cache)),
        ("fleetform validate", lambda: by_command(["validate", str(root)], cache)),
    ):
        rows.append(row(f"{title}, cold", "3 s, 300 MB", measure, forget))
        rows.append(row(f"{title}, nothing changed", "-", measure))
        rows.append(row(f"{title}, one file changed", "0.5 s", measure, touch_one(root, count)))
    rows.append(row("load, without a cache", "-", lambda: in_process(root, None)))
    rows.append(row("yaml.CSafeLoader, values alone", "-", lambda: by_other(root)))
    return rows


def file_rows(folder: Path, cache: Path) -> list[list[str]]:
    """One file that belongs to no environment, and a tree with one."""
    folder.mkdir()
    (folder / "train.yaml").write_text("type: task\nname: train\ncommands: [python train.py]\n")
    file = str(folder / "train.yaml")
    local = str(Path(__file__).parents[2] / "environments" / "local")

    def forget(_: int) -> None:
        shutil.rmtree(cache, ignore_errors=True)

    return [
        row("fleetform validate FILE, cold", "-", lambda: by_command(["validate", file], cache), forget),
        row("fleetform validate FILE, again", "0.25 s", lambda: by_command(["validate", file], cache)),
        row("fleetform plan environments/local, cold", "-", lambda: by_command(["plan", local], cache), forget),
        row("fleetform plan environments/local, again", "0.3 s", lambda: by_command(["plan", local], cache)),
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("documents", nargs="?", type=positive, default=DOCUMENTS)
    count = parser.parse_args(arguments).documents
    header = ["what", "processor", "wall", "peak memory", "asked"]
    with scratch() as folder:
        root = make_tree(folder / "tree", count)
        rows = tree_rows(root, folder / "cache", count)
        table(f"{count} documents in {count} files, {RUNS} runs each", header, rows)
        rows = file_rows(folder / "alone", folder / "cache")
        table(f"One file, and a small tree, {RUNS} runs each", header, rows)


if __name__ == "__main__":
    main()
