from __future__ import annotations

import io

from fleetform.cli.progress.plain import PlainProgress
from fleetform.cli.screen import Screen
from fleetform.model.plan import Step
from fleetform.model.run import Run, RunState, RunUid, Template
from fleetform.spec.desired import ResourceKey


def run_in(state, *, name="train", message="", attempt=1, started=None, finished=None, parent=""):
    template = Template(name, "task", ("true",), parent=parent)
    return Run(
        uid=RunUid(name), name=name, template=template, state=state,
        number=1, attempt=attempt, message=message, started_at_ms=started, finished_at_ms=finished,
    )  # fmt: skip


class Clock:
    seconds = 0.0

    def __call__(self):
        return self.seconds


def written(*, show_output=False, clock=None):
    stream = io.StringIO()
    return stream, PlainProgress(
        Screen(stream, environ={}), show_output=show_output, clock=clock or Clock()
    )


def test_few_runs_get_a_line_for_each_change():
    """A build log tells the story of a small apply."""
    stream, progress = written()
    progress.step_finished(Step("1", "fleet.make", ResourceKey("fleet", "local")), "")
    progress.step_finished(Step("2", "run.submit", ResourceKey("run", "train")), "")
    progress.run_changed(run_in(RunState.RUNNING), "")
    progress.run_changed(run_in(RunState.RUNNING), "")
    progress.run_changed(run_in(RunState.DONE, started=0, finished=3000), "")
    assert stream.getvalue().splitlines() == [
        "fleet/local: created",
        "train: running",
        "train: done after 3s",
    ]


def test_many_runs_are_counted_and_bad_news_still_gets_its_line():
    """A thousand elements do not bury the one that failed."""
    clock = Clock()
    stream, progress = written(clock=clock)
    for number in range(1000):
        progress.run_changed(run_in(RunState.RUNNING, name=f"a[{number}]"), "")
    clock.seconds = 60.0
    progress.run_changed(run_in(RunState.DONE, name="a[0]"), "")
    progress.run_changed(run_in(RunState.FAILED, name="a[1]", message="exit code 7"), "")
    lines = stream.getvalue().splitlines()
    assert len(lines) < 50
    assert lines[-2:] == ["999 running, 1 done", "a[1]: failed: exit code 7"]


def test_a_large_array_is_counted_and_its_first_failures_are_named():
    """Fifty elements that fail one after the other give twelve lines and the counts."""
    stream, progress = written()
    names = [f"arr[{number}]" for number in range(1, 61)]
    for state in (RunState.SUBMITTED, RunState.RUNNING):
        for name in names:
            progress.run_changed(run_in(state, name=name, parent="arr"), "")
    progress.run_changed(run_in(RunState.RUNNING, name="train"), "")
    for number, name in enumerate(names):
        state = RunState.FAILED if number < 50 else RunState.DONE
        progress.run_changed(run_in(state, name=name, message="exit code 7", parent="arr"), "")
    lines = stream.getvalue().splitlines()
    assert lines[:2] == ["train: running", "arr[1]: failed: exit code 7"]
    assert lines[-3:] == [
        "arr[10]: failed: exit code 7",
        "arr: more elements failed; `fleetform ps arr --state failed` lists them",
        "arr: 50 failed, 10 done",
    ]
    assert len(lines) == 13


def test_a_large_array_is_counted_at_intervals():
    """While it goes on, its counts come every other second and no element has a line."""
    clock = Clock()
    stream, progress = written(clock=clock)
    names = [f"arr[{number}]" for number in range(1, 21)]
    for name in names:
        progress.run_changed(run_in(RunState.SUBMITTED, name=name, parent="arr"), "")
    for name in names[:5]:
        clock.seconds += 1
        progress.run_changed(run_in(RunState.RUNNING, name=name, parent="arr"), "")
    assert stream.getvalue().splitlines() == [
        "arr: 2 running, 18 submitted",
        "arr: 4 running, 16 submitted",
    ]


def test_output_comes_in_whole_lines():
    """Two runs that print at once do not mix within a line."""
    stream, progress = written(show_output=True)
    progress.output("a", 0, b"ep")
    progress.output("b", 0, b"other\n")
    progress.output("a", 0, b"och 1\nepoch")
    assert stream.getvalue() == "b | other\na | epoch 1\n"


def test_a_failed_step_says_why():
    """The error stands beside the resource's address."""
    stream, progress = written()
    progress.step_finished(Step("1", "fleet.make", ResourceKey("fleet", "x")), "no such disk")
    assert stream.getvalue() == "fleet/x: no such disk\n"


def test_no_terminal_obeys_a_notice_or_a_message():
    """They may hold what somebody typed, or what a program wrote."""
    stream, progress = written()
    progress.notice("resting: a\x1b[2Kb\nsecond")
    progress.run_changed(run_in(RunState.FAILED, message="c\x1b[1Ad"), "")
    assert stream.getvalue() == ("resting: a\\u001b[2Kb\nsecond\ntrain: failed: c\\u001b[1Ad\n")
