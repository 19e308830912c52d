"""The log of `serve`: one line for each event, for people and for programs."""

from __future__ import annotations

import io
import json
import re

from fleetform.cli.progress.plain import LogProgress
from fleetform.cli.screen import Screen
from fleetform.model.history import LogLevel
from fleetform.model.plan import Action, Change, Plan, Reason, Step
from fleetform.model.run import Run, RunState, RunUid, Template
from fleetform.spec.desired import ResourceKey

NOW_MS = 1_795_377_662_000  # 2026-11-22T20:01:02Z


class Clock:
    def now_ms(self) -> int:
        return NOW_MS

    def boot_ms(self) -> int:
        return NOW_MS


def run(name: str, state: RunState, **fields) -> Run:
    return Run(RunUid(f"u-{name}"), name, Template(name, "task", ("true",)), state, 1, **fields)


def plan(*names: str) -> Plan:
    changes = tuple(
        Change(ResourceKey("run", name), Action.CREATE, (Reason.ABSENT,), "run") for name in names
    )
    return Plan("f", "lab", "l", 1, changes, commit="3f2a1b0c9d8e7f6a5b4c+dirty", digest="d1")


def all_events(progress: LogProgress) -> None:
    progress.plan_finished(plan("train", "eval"), "done")
    progress.plan_finished(plan("train"), "failed")
    made = Step("k", "fleet.make", ResourceKey("fleet", "local"))
    progress.step_finished(made, "")
    progress.step_finished(made, "no room\nat all")
    for state in (RunState.PREPARING, RunState.RUNNING):
        progress.run_changed(run("train", state), "")
    ended = run("train", RunState.FAILED, started_at_ms=NOW_MS, finished_at_ms=NOW_MS + 3000)
    progress.run_changed(ended, "exit code 1")
    progress.run_changed(run("eval", RunState.DONE), "")
    progress.notice(
        "blocked: run/x",
        event="change.blocked",
        level=LogLevel.WARNING,
        details={"resource": "run/x"},
    )
    progress.output("train", 0, b"one\ntw")


def test_a_line_has_time_level_and_what_happened():
    """One event is one line, also where its text has several; passing states have none."""
    out = io.StringIO()
    all_events(LogProgress(Screen(out, environ={}), Clock()))
    at = "2026-11-22T20:01:02Z"
    assert out.getvalue().splitlines() == [
        f"{at} INFO applied 3f2a1b0c9d8e+dirty: +2 runs (train, eval)",
        f"{at} ERROR failed to apply 3f2a1b0c9d8e+dirty: +1 run (train)",
        f"{at} INFO fleet/local: created",
        f"{at} ERROR fleet/local: no room | at all",
        f"{at} INFO train: running",
        f"{at} ERROR train: failed after 3s: exit code 1",
        f"{at} INFO eval: done",
        f"{at} WARNING blocked: run/x",
    ]


def test_json_has_one_object_a_line_with_a_constant_event():
    """A program filters by `event` and `level`, and finds values without reading the sentence."""
    out = io.StringIO()
    progress = LogProgress(Screen(out, environ={}), Clock(), form="json", show_output=True)
    all_events(progress)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert all(line["time"] == "2026-11-22T20:01:02Z" for line in lines)
    assert [(line["event"], line["level"]) for line in lines] == [
        ("plan.applied", "INFO"),
        ("plan.failed", "ERROR"),
        ("step.done", "INFO"),
        ("step.failed", "ERROR"),
        ("run.started", "INFO"),
        ("run.ended", "ERROR"),
        ("run.ended", "INFO"),
        ("change.blocked", "WARNING"),
        ("run.output", "INFO"),
    ]
    assert lines[0]["commit"] == "3f2a1b0c9d8e7f6a5b4c+dirty"
    assert lines[0]["summary"] == "+2 runs (train, eval)"
    assert (lines[5]["run"], lines[5]["state"]) == ("train", "failed")
    assert lines[7]["resource"] == "run/x"


def test_only_the_level_has_a_colour():
    """A terminal shows at a glance what failed; nothing in a message acts on it."""
    out = io.StringIO()
    progress = LogProgress(Screen(out, environ={"FORCE_COLOR": "1"}), Clock())
    progress.notice("a\x1b[2Kb", level=LogLevel.ERROR)
    assert re.fullmatch(r"\S+Z \x1b\[1;31mERROR\x1b\[0m a\\u001b\[2Kb\n", out.getvalue())
