"""
Converts each script of a corpus, plans it on a fleet of this machine, and prints what came of it.

    python tests/corpus/slurm/outcomes.py            # the corpus
    python tests/corpus/slurm/outcomes.py FOLDER     # batch scripts of one's own

A script *runs* when its document is valid, the plan blocks nothing and finds hosts that are large enough, and
the conversion reports nothing that makes it fail: a missing file or argument, jobs that it submits, tasks on several nodes.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from applied import NOW_MS, UID
from corpus.slurm.samples import samples
from fleetform.app.plan import make_plan
from fleetform.app.workspace import Workspace
from fleetform.model.plan import Permissions
from fleetform.spec.convert import Partitions, convert
from fleetform.spec.findings import Level

FLEET = "type: fleet\nname: local\nnodes: 4\nlocal: {cpu: 128, memory: 1TB, disk: 10TB, gpu: 'A100:80GB:8'}\n"

_FAILS = {
    "a file beside it is missing": r"and there is no such file beside it",
    "its arguments are missing": r"and it was given none",
    "it submits other jobs": r"submits other jobs by",
    "its variables are missing": r"and nothing sets it|, and does not set it|and it has no `--array`",
    "an option of srun": r"The script calls `srun` with",
    "it starts tasks on several nodes": r"Here the commands run on every node",
}


class Outcome(NamedTuple):
    """What came of a script. `line` 0: of none of its lines."""

    name: str
    kind: str
    reason: str = ""
    line: int = 0

    @property
    def runs(self) -> bool:
        return self.kind == "runs"


def outcome(script: Path, arguments: tuple[str, ...], folder: Path) -> Outcome:
    """Convert one script into an environment below `folder`, and plan it."""
    name = script.stem
    result = convert(
        script, arguments=arguments, partitions=Partitions(fleets=frozenset({"local"}))
    )
    refused = next((one for one in result.findings if one.level is Level.ERROR), None)
    if not result.written:
        assert refused is not None
        return Outcome(name, "not converted", refused.detail, refused.place.line)
    _write(
        folder,
        {"environment.yaml": f"type: environment\nname: lab\nuid: {UID}\n", "fleet.yaml": FLEET},
    )
    _write(folder, {one.path: one.text for one in result.written})
    for copy in result.copied:
        target = folder / copy.path
        target.parent.mkdir(parents=True, exist_ok=True)
        copier = shutil.copytree if copy.source.is_dir() else shutil.copy
        copier(copy.source, target)
    workspace = Workspace.open(str(folder))
    loaded = workspace.load()
    errors = [one for one in loaded.findings if one.level is Level.ERROR]
    if errors:
        return Outcome(name, "invalid", errors[0].detail, errors[0].place.line)
    plan = make_plan(workspace, loaded, Permissions(), now_ms=NOW_MS)
    if plan.held:
        return Outcome(name, "blocked", plan.held[0].detail)
    forecast = plan.annex.get("forecast") or {}
    if forecast.get("impossible", {}).get("total"):
        return Outcome(name, "needs other hosts", forecast["impossible"]["first"][0]["reasons"][0])
    for kind, pattern in _FAILS.items():
        for one in result.findings:
            is_told = one.level is not Level.NOTE and re.search(pattern, one.detail)
            if is_told and not _is_harmless(kind, script):
                return Outcome(name, kind, one.detail, one.place.line)
    return Outcome(name, "runs")


def _is_harmless(kind: str, script: Path) -> bool:
    """A script on several nodes that starts nothing across them does the same on each."""
    return kind == "it starts tasks on several nodes" and not re.search(
        r"\b(srun|mpirun|mpiexec)\b", script.read_text("utf-8")
    )


def _write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def outcomes_of_corpus(folder: Path) -> Iterator[Outcome]:
    for one in samples():
        script = one.write(folder / one.name)
        yield outcome(script, one.arguments, folder / one.name / "lab")


def table(outcomes: list[Outcome]) -> str:
    counts = Counter(one.kind for one in outcomes)
    lines = [
        f"{count:5} {100 * count / len(outcomes):5.1f} %  {kind}"
        for kind, count in counts.most_common()
    ]
    lines.append(f"{len(outcomes):5} scripts")
    lines += [
        f"{one.name}:{one.line}: {one.kind}: {one.reason}" for one in outcomes if not one.runs
    ]
    return "\n".join(lines)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        os.environ["FLEETFORM_STATE_HOME"] = str(folder / "state")
        os.environ["FLEETFORM_CACHE_HOME"] = ""
        if sys.argv[1:]:
            scripts = sorted(one for one in Path(sys.argv[1]).rglob("*") if one.is_file())
            found = [
                outcome(one, (), folder / f"lab{number}") for number, one in enumerate(scripts)
            ]
        else:
            found = list(outcomes_of_corpus(folder))
    sys.stdout.write(f"{table(found)}\n")


if __name__ == "__main__":
    main()
