"""
One campaign of the fuzzer: a target, the seeds, a dictionary, and what is written of it.

    python tests/fuzz/fuzz_documents.py [seconds] [folder]

The corpus grows in the folder, which another campaign may begin with. An input that breaks a
promise is left there as `crash-…` (or `timeout-…`, `oom-…`) and its path is printed. Make it small
with `-minimize_crash=1` (see docs/testing.md), mend what is wrong, and keep it in
tests/data/hostile.
"""

from __future__ import annotations

import importlib
import pkgutil
import resource
import sys
import tempfile
from pathlib import Path

import atheris
import seeds

# What no target reaches; instrumenting it takes seconds.
_OTHERS = tuple(f"fleetform.spec.{room}" for room in ("convert", "explain", "format", "schema"))

# Instrumented while they are imported: branches and comparisons are what the fuzzer follows. The
# kinds are imported when they are met, which would be too late.
with atheris.instrument_imports(include=["fleetform.spec", "yaml"]):
    import targets

    import fleetform.spec

    for _module in pkgutil.walk_packages(fleetform.spec.__path__, "fleetform.spec."):
        if not _module.name.startswith(_OTHERS):
            importlib.import_module(_module.name)

SECONDS = 60
_INPUT_SECONDS_MAX = 10
_MEMORY_MAX_MB = 1024
_LENGTH_MAX = 4096
"""Bounds are tested with large inputs elsewhere; small ones find more branches a second."""


def run(name: str) -> None:
    """Fuzz the target `name` and leave the process with the fuzzer's own code."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.mkdtemp(prefix="fuzz-"))
    corpus = folder / name
    corpus.mkdir(parents=True, exist_ok=True)
    seeds.write(name, corpus)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    arguments = [
        sys.argv[0],
        str(corpus),
        f"-max_total_time={seconds}",
        f"-timeout={_INPUT_SECONDS_MAX}",
        f"-rss_limit_mb={_MEMORY_MAX_MB}",
        f"-max_len={_LENGTH_MAX}",
        f"-dict={Path(__file__).with_name('yaml.dict')}",
        f"-artifact_prefix={folder}/",
        "-print_final_stats=1",
        # The same decisions each time, for a corpus that is the same.
        "-seed=1",
    ]
    atheris.Setup(arguments, targets.TARGETS[name])
    atheris.Fuzz()
