"""What a report says of its findings, whatever it is printed as."""

from __future__ import annotations

import pytest

from fleetform.spec.findings import Level
from fleetform.views.findings import Report
from unit.views.reports import finding

ERROR, WARNING, NOTE = (finding(level) for level in (Level.ERROR, Level.WARNING, Level.NOTE))


@pytest.mark.parametrize(
    ("found", "strict", "valid"),
    [
        ((), True, True),
        ((NOTE,), False, True),
        ((NOTE,), True, True),
        ((WARNING, NOTE), False, True),
        ((WARNING, NOTE), True, False),
        ((ERROR,), False, False),
    ],
)
def test_errors_fail_a_check_and_notes_never(found, strict, valid):
    """Strictness is about warnings: a note tells what is as it was meant."""
    assert Report(found, strict=strict).is_valid is valid


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ((), "0 errors, 0 warnings"),
        ((ERROR,), "1 error, 0 warnings"),
        ((WARNING, WARNING, NOTE), "0 errors, 2 warnings, 1 note"),
        ((ERROR, NOTE, NOTE), "1 error, 0 warnings, 2 notes"),
    ],
)
def test_the_verdict_counts_each_level(found, words):
    """Errors and warnings are always counted, notes where there are any."""
    assert Report(found, 4, 1).verdict == f"4 documents in 1 file: {words}"


@pytest.mark.parametrize(
    ("folder", "file", "path"),
    [
        ("", "runs/train.yaml", "runs/train.yaml"),
        ("environments/lab", "train.yaml", "environments/lab/train.yaml"),
        ("environments/lab", "../base/train.yaml", "environments/base/train.yaml"),
        ("lab", ".", "lab/environment.yaml"),
        ("", ".", "environment.yaml"),
    ],
)
def test_files_are_named_as_the_repository_knows_them(folder, file, path):
    """A pipeline starts at the repository's root; what has no file is put into the tree's own."""
    assert Report((), folder=folder).path(file) == path
