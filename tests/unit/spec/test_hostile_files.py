"""What a hostile file does to whoever loads its tree: findings, soon, and nothing else."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from fleetform.spec.findings import Level
from fleetform.spec.findings_text import render_findings
from fleetform.spec.tree import load_tree
from fleetform.spec.tree.budget import FINDINGS_MAX
from unit.spec.hostile import ENCODINGS, FILES, SYNTAX, Row
from unit.spec.trees import ENVIRONMENT

SECONDS_MAX = 30
"""Of the processor, so that a busy machine fails no test; the worst row takes a fifth of it."""


@contextlib.contextmanager
def processor_seconds(limit: float) -> Iterator[None]:
    """Fail what takes longer. Regular expressions look for signals too, so none can hide it."""

    def end(_number: int, _frame: FrameType | None) -> None:
        pytest.fail(f"it took more than {limit} s of the processor")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize("row", FILES, ids=lambda row: row.name)
def test_a_hostile_file_is_a_finding(tmp_path: Path, row: Row):
    """It has the finding that says what is wrong, in bounded time and words, and no exception."""
    (tmp_path / "environment.yaml").write_text(ENVIRONMENT)
    (tmp_path / "x.yaml").write_bytes(row.data())
    with processor_seconds(SECONDS_MAX):
        loaded = load_tree(tmp_path)
        text = render_findings(loaded.findings)
    codes = {finding.code for finding in loaded.findings if finding.place.file == "x.yaml"}
    assert row.codes <= codes if row.codes else codes <= {"empty-field"}, loaded.findings[:5]
    assert loaded.desired is not None  # Of this file nothing is known; the environment is sound.
    for level in Level:
        assert sum(one.level is level for one in loaded.findings) <= FINDINGS_MAX + 52
    for finding in loaded.findings:
        assert max(map(len, (finding.detail, finding.advice, finding.address))) <= 2100, (
            finding.code
        )
    assert all(letter.isprintable() or letter == "\n" for letter in text)


@pytest.mark.parametrize("row", [*ENCODINGS, *SYNTAX], ids=lambda row: row.name)
def test_a_hostile_environment_is_a_finding(tmp_path: Path, row: Row):
    """As `environment.yaml` it leaves nothing declared, and says so."""
    (tmp_path / "environment.yaml").write_bytes(row.data())
    with processor_seconds(SECONDS_MAX):
        loaded = load_tree(tmp_path)
    assert loaded.desired is None
    assert loaded.errors
