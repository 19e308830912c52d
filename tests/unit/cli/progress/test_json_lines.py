from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

from fleetform.app.apply import ApplyResult
from fleetform.cli.apply_flow import _record, record_nothing
from fleetform.cli.progress.json_lines import JsonProgress
from fleetform.cli.progress.plain import SeveralProgress
from fleetform.model.plan import Step
from fleetform.model.ports import RunHistory
from fleetform.model.run import Run, RunState, RunUid, Template
from fleetform.spec.desired import ResourceKey
from unit.plan.trees import ledger, planned, tree

RUN = Run(RunUid("u1"), "train", Template("train", "task", ("true",)), RunState.DONE, 1, attempt=2)


def test_each_thing_is_one_line_with_a_type():
    """A program that tails the file can read every line by itself."""
    file = io.StringIO()
    progress = JsonProgress(file)
    step = Step("k", "fleet.make", ResourceKey("fleet", "local"))
    progress.step_started(step)
    progress.step_finished(step, "no")
    progress.run_changed(RUN, "")
    progress.output("train", 1, b"a\nb\xff")
    progress.notice("hm")
    progress.result(ApplyResult("failed", 4, ("no",), (RunHistory(RUN, (), archived=False),)), 4)
    progress.result(None, 130)
    progress.refused("stale", 5)
    records = [json.loads(line) for line in file.getvalue().splitlines()]
    assert all(record.pop("at_ms") > 0 for record in records)
    assert records == [
        {"type": "step", "key": "k", "verb": "fleet.make", "resource": "fleet/local",
         "state": "started", "error": ""},
        {"type": "step", "key": "k", "verb": "fleet.make", "resource": "fleet/local",
         "state": "failed", "error": "no"},
        {"type": "run", "name": "train", "uid": "u1", "state": "done", "attempt": 2,
         "cause": "", "message": ""},
        {"type": "output", "run": "train", "rank": 1, "text": "a\nb\N{REPLACEMENT CHARACTER}"},
        {"type": "notice", "text": "hm"},
        {"type": "result", "state": "failed", "exit_code": 4, "failed_steps": ["no"], "message": "",
         "runs": [{"name": "train", "uid": "u1", "state": "done", "attempt": 2, "cause": ""}]},
        {"type": "result", "state": "interrupted", "exit_code": 130, "failed_steps": [], "runs": [],
         "message": ""},
        {"type": "result", "state": "refused", "exit_code": 5, "failed_steps": [], "runs": [],
         "message": "stale"},
    ]  # fmt: skip


class Unflushed(io.StringIO):
    """A file of which a reader sees what was flushed."""

    seen = ""

    def flush(self) -> None:
        self.seen = self.getvalue()


def test_a_line_is_there_when_it_is_written():
    """Whoever tails the file waits for nothing."""
    file = Unflushed()
    JsonProgress(file).notice("now")
    assert json.loads(file.seen)["text"] == "now"


def test_the_file_holds_the_end_also_where_nothing_was_done(tmp_path):
    """A plan without changes has its two lines; a second apply appends."""
    plan = planned(tree(), ledger())
    for _ in range(2):
        record_nothing(str(tmp_path / "out"), plan, 0)
    types = [json.loads(line)["type"] for line in (tmp_path / "out").read_text().splitlines()]
    assert types == ["plan", "result", "plan", "result"]


def test_several_watchers_see_the_same():
    """The file beside the screen misses nothing."""
    one, other = io.StringIO(), io.StringIO()
    several = SeveralProgress(JsonProgress(one), JsonProgress(other))
    several.notice("x")
    several.run_changed(RUN, "")
    several.output("train", 0, b"y")
    step = Step("k", "fleet.make", ResourceKey("fleet", "local"))
    several.step_started(step)
    several.step_finished(step, "")
    strip = [
        [{**json.loads(line), "at_ms": 0} for line in file.getvalue().splitlines()]
        for file in (one, other)
    ]
    assert strip[0] == strip[1]
    assert len(strip[0]) == 5


def test_a_file_that_cannot_be_written_is_named():
    """The machine says of a handle only that there is no space; people have several disks."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no device that is full")
    with contextlib.ExitStack() as stack:
        record = _record(stack, str(full))
        assert record is not None
        with pytest.raises(OSError, match="'/dev/full'"):
            record.notice("hm")
