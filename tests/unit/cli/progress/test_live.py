"""The screen of an apply on a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from fleetform.cli.progress.live import LiveProgress
from fleetform.model.plan import Step
from fleetform.spec.desired import ResourceKey


def test_a_failed_step_is_shown_until_the_summary_says_it() -> None:
    """It stands on the screen that goes away, so that its cause is printed once."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100, no_color=True)
    progress = LiveProgress(console)
    for number in range(5):
        step = Step(str(number), "fleet.make", ResourceKey("fleet", f"f{number}"))
        progress.step_started(step)
        progress.step_finished(step, "no such disk")
    assert stream.getvalue() == ""
    console.print(progress._draw())
    assert stream.getvalue().splitlines() == [
        f"fleet/f{number}: no such disk" for number in range(3)
    ]
