"""The lines around the output of one run, in whatever order its state and its output are read."""

from __future__ import annotations

import io

from fleetform.cli.run_output import EndLast
from fleetform.cli.screen import Screen
from fleetform.model.run import RunState
from unit.cli.progress.test_plain import run_in

RUNNING = run_in(RunState.RUNNING)
DONE = run_in(RunState.DONE, started=0, finished=3000)


def test_output_that_comes_first_says_that_the_run_is_running() -> None:
    """The state may be read after the output, and after the end."""
    for states in ([RUNNING, DONE], [DONE]):
        stream = io.StringIO()
        progress = EndLast(Screen(stream, environ={}))
        progress.say_running("train")
        for run in states:
            progress.run_changed(run, "")
        assert stream.getvalue() == "train: running\n"
        progress.say_end()
        assert stream.getvalue() == "train: running\ntrain: done after 3s\n"


def test_a_short_run_without_output_was_running() -> None:
    """The same lines come each time, however short it is."""
    for states in ([RUNNING, DONE], [DONE]):
        stream = io.StringIO()
        progress = EndLast(Screen(stream, environ={}))
        for run in states:
            progress.run_changed(run, "")
        progress.say_end()
        assert stream.getvalue() == "train: running\ntrain: done after 3s\n"
