from __future__ import annotations

import pytest

from corpus.slurm import outcomes
from corpus.slurm.samples import samples
from fleetform.spec.convert import convert

# Of 941 public scripts, as many as 650 have to run: the rest needs what a fleet of one machine does not have.
SHARE_LEAST = 650 / 941


@pytest.mark.waits
def test_batch_scripts_run_on_a_local_fleet(tmp_path, monkeypatch):
    """At least 650 of 941 run as they are written; each of the others has a reason, most often with its line."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    found = list(outcomes.outcomes_of_corpus(tmp_path))
    assert len(found) >= 300
    running = sum(one.runs for one in found)
    assert running / len(found) >= SHARE_LEAST, outcomes.table(found)
    assert all(one.reason for one in found if not one.runs)
    assert not [one for one in found if one.kind == "invalid"], outcomes.table(found)


def test_what_cannot_run_is_what_cannot():
    """The corpus has scripts that fail on purpose: they are not among those that run."""
    names = {one.name.rpartition("-")[0] for one in samples()}
    assert {"args-missing", "missing-program", "chain-submit", "mpirun-nodes", "coupled"} <= names


def test_each_file_beside_a_script_goes_along(tmp_path):
    """The files of each body are those that it runs or reads, directly or from one that it runs."""
    for one in samples():
        script = one.write(tmp_path / one.name)
        copied = {
            str(copy.source.resolve()) for copy in convert(script, arguments=one.arguments).copied
        }
        left = [
            path
            for path in one.files
            if not any(is_below((script.parent / path).resolve(), other) for other in copied)
        ]
        assert not left or is_elsewhere(one.text), (one.text, left)


def is_below(path, folder):
    return str(path) == folder or str(path).startswith(f"{folder}/")


def is_elsewhere(text):
    """A script with `--chdir` runs in a folder of the cluster; one of several parts is refused."""
    return "-D /work" in text or "hetjob" in text


def test_a_script_that_cannot_run_has_its_reason(tmp_path, monkeypatch):
    """With the line of the script where a line is the cause."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    kinds = {
        "args-missing": "its arguments are missing",
        "missing-program": "a file beside it is missing",
        "missing-source": "a file beside it is missing",
        "chain-submit": "it submits other jobs",
        "wrap-loop": "it submits other jobs",
        "mpi-two-nodes": "blocked",
        "mpirun-nodes": "it starts tasks on several nodes",
        "coupled": "not converted",
        "required-variable": "its variables are missing",
        "index-outside": "its variables are missing",
        "multi-prog": "an option of srun",
        "usage-count": "its arguments are missing",
    }
    for one in samples():
        name, _, number = one.name.rpartition("-")
        if name in kinds and "container" not in one.text:
            made = outcomes.outcome(
                one.write(tmp_path / number), one.arguments, tmp_path / number / "lab"
            )
            assert made.kind == kinds[name], (one.text, made)
            assert made.line or made.kind == "blocked", made
