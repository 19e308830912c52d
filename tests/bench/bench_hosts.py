"""
Hosts over SSH: their first apply, runs on them, and an upload, on a lab of network namespaces.

    python tests/bench/bench_hosts.py [HOSTS]

It needs root and Linux; `sh tests/services.sh lab` installs the SSH server. All hosts share the
processors of this machine with the controller.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from measuring import expect, measure, parser_of, positive, scratch, seconds, table, write_tree

sys.path.insert(0, str(Path(__file__).parents[1]))

from ssh_host import connected, upload, use_home

from lab import Lab, lab

HOSTS = 4
ROUNDS = 3
RUNS = 200
UPLOAD_BYTES = 256 << 20

FLEET = """\
type: fleet
name: lab
run_as: root
ssh_config:
  user: root
  hosts: [{hosts}]
"""
ARRAY = """\
type: task
name: many
array: 1-{runs}
commands: ["true"]
resources: {{cpu: 0.1}}
"""
ONE = """\
type: task
name: one
commands: ["true"]
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("hosts", nargs="?", type=positive, default=HOSTS)
    count = parser.parse_args(arguments).hosts
    with scratch() as folder, lab(folder / "lab", hosts=count) as running:
        use_home(folder / "home", running.config.read_text())
        single, several, again, one, many = [], [], [], [], []
        for number in range(ROUNDS):
            single.append(_first_apply(folder / f"single{number}", running, 1))
            site = folder / f"all{number}"
            several.append(_first_apply(site, running, count))
            again.append(_apply(site))
            (site / "tree/one.yaml").write_text(ONE)
            one.append(_apply(site))
            (site / "tree/many.yaml").write_text(ARRAY.format(runs=RUNS))
            many.append(_apply(site))
        speed = asyncio.run(_upload(folder))
    table(
        f"{count} hosts over SSH, {ROUNDS} times",
        ["what", "took", "asked"],
        [
            ["first apply of one bare host", seconds(single), "3 s"],
            [f"first apply of {count} bare hosts", seconds(several), "-"],
            ["apply without a change", seconds(again), "-"],
            ["apply of one run of `true`", seconds(one), "-"],
            [f"apply of an array of {RUNS} runs of `true`", seconds(many), "-"],
            [
                f"upload of {UPLOAD_BYTES >> 20} MiB that do not compress",
                f"{speed:.0f} MB/s",
                "50 MB/s",
            ],
        ],
    )


def _first_apply(folder: Path, running: Lab, count: int) -> float:
    """Apply a fleet of hosts that have nothing of fleetform yet; returns seconds."""
    names = list(running.hosts)[:count]
    for name in names:
        # Agents of the round before end by themselves once their folder is gone.
        running.run(name, "rm", "-rf", "/root/.local/state/fleetform")
    write_tree(folder / "tree", {"fleet.yaml": FLEET.format(hosts=", ".join(names))})
    return _apply(folder)


def _apply(folder: Path) -> float:
    arguments = ["apply", str(folder / "tree"), "-y"]
    return expect(measure(arguments, state=folder / "state")).wall_seconds


async def _upload(folder: Path) -> float:
    """Send a content to a host, in MB/s."""
    async with connected(folder) as host:
        return await upload(folder, host, UPLOAD_BYTES) / 1e6


if __name__ == "__main__":
    main()
