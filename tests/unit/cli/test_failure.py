from __future__ import annotations

import os
import re
from pathlib import Path

import click
import pytest

from fleetform.app.problems import Locked
from fleetform.cli.exit import Exit
from fleetform.cli.failure import REPORTS_MAX, Failure, Refused, explain, report_bug
from fleetform.cli.main import main
from fleetform.model.ports import FenceLost, LedgerUnavailable, StalePlan
from fleetform.store.errors import UnreachableLedgerError


def test_a_refusal_keeps_its_advice_and_code():
    """What a command refuses says what to do instead."""
    refused = Refused("no", advice="do this", code=Exit.HELD)
    assert explain(refused) == Failure("no", "do this", 3)


def test_a_usage_error_is_not_taken_for_changes():
    """click exits with 2, which here means that a plan has changes."""
    failure = explain(click.UsageError("no such option"))
    assert failure is not None
    assert failure.code == Exit.ERROR


@pytest.mark.parametrize(
    ("typed", "message", "advice"),
    [
        (
            ["apply", "--detatch"],
            "No such option '--detatch'. Did you mean '--detach'?",
            "see `fleetform apply --help`",
        ),
        (
            ["stop", "train", "--xyzzy"],
            "No such option '--xyzzy'.",
            "see `fleetform stop --help`",
        ),
        (
            ["serve", "--drift-every", "soon"],
            (
                "Invalid value for '--drift-every': `soon` is not a duration;"
                " write for example `90s`, `5m`, `2h` or `1h30m`."
            ),
            "see `fleetform serve --help`",
        ),
        (
            ["show"],
            "Missing argument 'PLAN'.",
            "for example `fleetform show last`; see `fleetform show --help`",
        ),
    ],
)
def test_a_mistyped_command_line_is_answered_with_what_can_be_typed(
    capsys: pytest.CaptureFixture[str], typed: list[str], message: str, advice: str
):
    """An option that help does not list is never suggested, and a missing argument has an example."""
    assert main(typed) == Exit.ERROR
    assert capsys.readouterr().err == f"error: {message}\nhelp: {advice}\n"


def test_a_problem_brings_its_own_code():
    """A locked environment is 6, whoever noticed."""
    assert explain(Locked("held by 17", "wait")) == Failure("held by 17", "wait", 6)


def test_a_stale_plan_names_each_predicate_that_failed():
    """A person sees what moved, one line each."""
    failure = explain(StalePlan(["run/a has started", "fleet/b is gone"]))
    assert failure is not None
    assert failure.code == Exit.STALE
    assert failure.message.splitlines()[1:] == ["  run/a has started", "  fleet/b is gone"]


def test_states_of_the_ledger_have_words():
    """A lost fence and a full disk are states of the world, not faults of ours."""
    lost, full = explain(FenceLost()), explain(LedgerUnavailable("the disk is full"))
    assert lost is not None
    assert full is not None
    assert lost.code == Exit.LOCKED
    assert "the disk is full" in full.message


def test_a_ledger_that_says_what_to_do_is_quoted():
    """A server that is away is told with its own cure, and not with that of a full disk."""
    failure = explain(UnreachableLedgerError("it does not answer", advice="look at the server"))
    assert failure is not None
    assert (failure.message, failure.advice) == ("it does not answer", "look at the server")


def test_the_machine_saying_no_names_the_file():
    """A permission that is missing is told with the file's name."""
    failure = explain(PermissionError(13, "Permission denied", "/some/file"))
    assert failure is not None
    assert failure.message == "/some/file: permission denied"


def test_a_bug_leaves_its_traceback_in_a_file(monkeypatch, tmp_path):
    """The person gets one line and the name of a file; the file has the traceback."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    error = ValueError("impossible")
    assert explain(error) is None
    failure = report_bug(error)
    assert failure.message == "unexpected ValueError: impossible"
    found = re.search(r"traceback in (\S+)$", failure.advice)
    assert found is not None
    assert "ValueError: impossible" in Path(found[1]).read_text(encoding="utf-8")


def test_crash_reports_are_bounded(monkeypatch, tmp_path):
    """The newest twenty stay; what is no report of ours, or no file, is left alone."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    others = [tmp_path / "fleetform-crash-notes.md", tmp_path / "fleetform-crash-folder.txt"]
    others[0].touch()
    others[1].mkdir()
    (tmp_path / "fleetform-crash-link.txt").symlink_to(others[0])
    for number in range(REPORTS_MAX + 10):
        advice = report_bug(ValueError(f"number {number}")).advice
        newest = Path(advice.rpartition(" ")[2])
        # Of those that one moment has made, no order is known.
        os.utime(newest, (number, number))
    last = Path(report_bug(ValueError("the last")).advice.rpartition(" ")[2])
    reports = [path for path in tmp_path.glob("fleetform-crash-*.txt") if path.is_file()]
    kept = sorted(path.read_text().splitlines()[-1] for path in reports if not path.is_symlink())
    first = REPORTS_MAX + 10 - (REPORTS_MAX - 1)
    assert kept == sorted(
        ["ValueError: the last"]
        + [f"ValueError: number {number}" for number in range(first, REPORTS_MAX + 10)]
    )
    assert last.exists()
    assert others[0].exists()
    assert others[1].exists()
    assert (tmp_path / "fleetform-crash-link.txt").is_symlink()
