"""
Batch scripts as people write them: hand-written bodies in `bodies.txt`, each below several drawn headers.

The frequencies of a header's features are those of 105 public scripts (`README.md` has the counts). The same
scripts come out each time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BODIES = Path(__file__).with_name("bodies.txt")
_COPIES = {"cpu": 3, "array": 6, "gpu": 6, "multi": 9, "hetero": 2, "python": 3, "tcsh": 3}
_SEED = 36


@dataclass(frozen=True)
class Sample:
    """A script, the files beside it with their texts, and its arguments."""

    name: str
    kind: str
    text: str
    files: dict[str, str]
    arguments: tuple[str, ...]

    def write(self, folder: Path) -> Path:
        """Write it into a folder of its own, the script in `jobs/`; returns the script."""
        script = folder / "project" / "jobs" / f"{self.name}.sh"
        for path, text in {script.name: self.text, **self.files}.items():
            target = script.parent / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        return script


def samples() -> Iterator[Sample]:
    """Yield all scripts of the corpus."""
    draw = random.Random(_SEED)
    number = 0
    for part in _BODIES.read_text("utf-8").split("=== ")[1:]:
        title, _, rest = part.partition("\n")
        about, _, given = title.partition(" :: ")
        about, _, beside = about.partition(" | ")
        kind, name = about.split()
        body, *written = rest.split("\n--- ")
        files = dict.fromkeys(beside.split(), "")
        for one in written:
            path, _, text = one.partition("\n")
            files[path.strip()] = text
        for _copy in range(_COPIES[kind]):
            number += 1
            text = _header(draw, kind, f"{name}_{number}") + body.rstrip("\n") + "\n"
            yield Sample(f"{name}-{number}", kind, text, files, tuple(given.split()))


def _header(draw: random.Random, kind: str, name: str) -> str:
    if kind in {"python", "tcsh"}:
        first = {"python": "#!/usr/bin/env python3", "tcsh": "#!/bin/tcsh"}[kind]
    else:
        first = draw.choices(
            ["#!/bin/bash", "#!/bin/bash -l", "#!/usr/bin/env bash", "#!/bin/sh", "#!/bin/bash -e"],
            [78, 12, 6, 3, 1],
        )[0]
    lines = [*_identity(draw, name), *_amounts(draw, kind), *_policy(draw)]
    if draw.random() < 0.5:
        draw.shuffle(lines)
    written = [f"#SBATCH {line}{_comment(draw)}" for line in lines]
    if kind == "hetero":
        written.insert(len(written) // 2, "#SBATCH hetjob")
    if draw.random() < 0.15:
        written.insert(draw.randrange(len(written)), "##SBATCH --mem=999G")
    blank = ["", "#", "# resources"][draw.randrange(3)]
    return "\n".join([first, *([blank] if draw.random() < 0.4 else []), *written, "", ""])


def _identity(draw: random.Random, name: str) -> Iterator[str]:
    if draw.random() < 0.85:
        yield draw.choice(
            [f"--job-name={name}", f"-J {name}", f'--job-name="{name}"', f"--job-n={name}"]
        )
    if draw.random() < 0.70:
        partition = draw.choice(
            ["gpu", "compute", "short", "core", "standard", "long,short", "batch"]
        )
        yield draw.choice([f"--partition={partition}", f"-p {partition}", f"--part={partition}"])
    if draw.random() < 0.40:
        yield draw.choice(["-A lab42", "--account=def-someone", "--account=students"])
    if draw.random() < 0.48:
        yield draw.choice(["--mail-type=ALL", "--mail-type=END,FAIL", "--mail-type=begin"])
        yield draw.choice(["--mail-user=me@example.org", "--mail-user me@example.org"])
    if draw.random() < 0.73:
        yield draw.choice(
            [
                "--output=%x_%j.out",
                "-o slurm.%N.%j.out",
                "--output=logs/%A_%a.out",
                '-o "out/%u-%j.log"',
            ]
        )
        if draw.random() < 0.6:
            yield draw.choice(["--error=%x_%j.err", "-e %j.err", "--err=logs/%A_%a.err"])


def _amounts(draw: random.Random, kind: str) -> Iterator[str]:
    if draw.random() < 0.93:
        yield draw.choice(
            [
                "--time=24:00:00",
                "-t 1-00:00:00",
                "--time=90",
                "-t 0:10:00",
                "--time=7-0:0:0",
                "--time 12:0:0",
            ]
        )
    if draw.random() < 0.60:
        yield draw.choice(
            [
                "--mem=16G",
                "--mem=64gb",
                "--mem=4000",
                "--mem-per-cpu=2G",
                "--mem 8G",
                "--mem=0",
                "--mem=3500mb",
            ]
        )
    if kind == "multi":
        yield from draw.choice(
            [
                ["--nodes=2", "--ntasks-per-node=12"], ["-N 4", "-n 16"], ["-n 8 --tasks-per-node=4"],
                ["--nodes=2-4", "--ntasks=8"], ["-N 2", "--ntasks-per-node=1", "--exclusive"],
            ]
        )  # fmt: skip
    else:
        if draw.random() < 0.55:
            yield draw.choice(["--nodes=1", "-N 1", "-N 1-1"])
        if draw.random() < 0.58:
            yield draw.choice(["--cpus-per-task=4", "-c 8", "--cpus-per-task=1", "--cpus-per-t=2"])
        if draw.random() < 0.45:
            yield draw.choice(
                ["--ntasks=1", "-n 1", "-n 4", "--ntasks=8", "--ntasks-per-node=2", "-n 2"]
            )
    if kind == "gpu":
        yield draw.choices(
            ["--gres=gpu:1", "--gpus=1", "--gres=gpu:a100:2", "--gpus-per-node=2", "-G 1", "--gres=gpu:v100:1",
             "--gpus-per-node=h100:4", "--gres=gpu:4", "--gres=gpu:mig_24gb:1"],
            [30, 8, 8, 8, 6, 3, 3, 8, 1],
        )[0]  # fmt: skip
    if kind == "array":
        yield draw.choice(
            [
                "--array=1-3",
                "--array=0-9%4",
                "-a 1-100",
                "--array=[1-35]",
                "--array=1,3,5",
                "--array=0-2047%50",
            ]
        )


def _policy(draw: random.Random) -> Iterator[str]:
    rare = {
        "--qos=medium": 0.14, "--exclusive": 0.06, "--constraint=skylake": 0.06, "--requeue": 0.03,
        "-D /work/users/me": 0.05, "--signal=B:USR1@90": 0.02, "--dependency=afterok:4887053": 0.02,
        "--exclude=node[03,07]": 0.05, "--nodelist=node001": 0.02, "--export=ALL,MODE=fast": 0.03,
        "--get-user-env": 0.01, "--reservation=course": 0.02, "--nice=100": 0.01, "--begin=now+1hour": 0.01,
        "--licenses=matlab:1": 0.01, "--open-mode=append": 0.02, '--comment="first try"': 0.01,
        "-L SCRATCH": 0.01, "--no-requeue": 0.01, "--mem_bind=local": 0.01, "--tmp=20G": 0.01,
        "--container-image=nvcr.io#nvidia/pytorch:24.01-py3": 0.01, "--hint=nomultithread": 0.02,
        "--gres-flags=enforce-binding": 0.01, '--cluster="main"': 0.02,
    }  # fmt: skip
    for option, share in rare.items():
        if draw.random() < share:
            yield option


def _comment(draw: random.Random) -> str:
    return draw.choice(["  # as needed", " # adjust", "\t# number"]) if draw.random() < 0.12 else ""
