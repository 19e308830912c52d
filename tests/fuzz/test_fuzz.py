"""Inputs that were kept, tried each time; and a short campaign of each target, where the fuzzer is."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
HOSTILE = FOLDER.parent / "data" / "hostile"
SECONDS = 10


def load(name: str):
    """A module beside this one; they are programs, and no package."""
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TARGETS = load("targets").TARGETS
SEEDS = load("seeds")


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_keep_the_promises(name: str):
    """Examples, mistakes and all that was ever found keep what each target promises."""
    tried = list(SEEDS.of(name))
    assert tried
    for data in tried:
        TARGETS[name](data)


@pytest.mark.parametrize("name", TARGETS)
def test_cut_seeds_keep_the_promises(name: str):
    """So does what an editor has while they are typed: each seed, cut off at any of many places."""
    for data in SEEDS.of(name):
        for end in range(0, len(data), max(1, len(data) // 40)):
            TARGETS[name](data[:end])


def test_what_is_kept_belongs_to_a_target():
    """A file of a name that no target has would never be tried."""
    assert {path.name.partition("-")[0] for path in HOSTILE.iterdir()} <= {*TARGETS}


@pytest.mark.parametrize("name", TARGETS)
def test_a_short_campaign_finds_nothing(
    name: str, tmp_path: Path, need: Callable[..., None], summarise: Callable[[str], None]
):
    """The fuzzer looks for some seconds, and leaves no input that breaks a promise."""
    need(
        "atheris", importlib.util.find_spec("atheris") is not None, "`make fuzz` has one of its own"
    )
    finished = subprocess.run(
        [sys.executable, str(FOLDER / f"fuzz_{name}.py"), str(SECONDS), str(tmp_path)],
        capture_output=True, check=False, timeout=SECONDS * 20 + 60,
    )  # fmt: skip
    told = finished.stderr.decode("utf-8", "replace")
    assert finished.returncode == 0, told[-3000:]
    done = [line for line in told.splitlines() if "DONE" in line]
    summarise(f"fuzz {name}: {' '.join(done[-1].split()[:6])}")
