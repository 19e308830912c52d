"""
Progress as JSON lines in a file, for programs that follow an apply.

Every line has `type` (`step`, `run`, `output`, `notice`, `result`) and `at_ms`; lines are whole
when they are written, so that a reader may tail the file.
"""

from __future__ import annotations

import json
import time
from typing import Any, TextIO

from fleetform.model.plan import Step
from fleetform.model.run import Run


class JsonProgress:
    """Writes each thing that happens as one line to `file`."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def step_started(self, step: Step) -> None:
        self._write_step(step, "started", "")

    def step_finished(self, step: Step, error: str) -> None:
        self._write_step(step, "failed" if error else "done", error)

    def run_changed(self, run: Run, message: str) -> None:
        self.write(
            "run",
            name=run.name,
            uid=run.uid,
            state=run.state,
            attempt=run.attempt,
            cause=run.cause,
            message=message or run.message,
        )

    def output(self, run_name: str, rank: int, data: bytes) -> None:
        self.write("output", run=run_name, rank=rank, text=data.decode("utf-8", "replace"))

    def notice(self, text: str) -> None:
        self.write("notice", text=text)

    def result(self, state: str, exit_code: int) -> None:
        """Write the last line: how the apply ended."""
        self.write("result", state=state, exit_code=exit_code)

    def write(self, kind: str, **values: Any) -> None:
        record = {"type": kind, "at_ms": time.time_ns() // 1_000_000, **values}
        self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
        self._file.flush()

    def _write_step(self, step: Step, state: str, error: str) -> None:
        self.write(
            "step",
            key=step.key,
            verb=step.verb,
            resource=str(step.resource),
            state=state,
            error=error,
        )
