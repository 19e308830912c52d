"""
Progress as JSON lines in a file, for programs that follow an apply.

Each line is an object with `type` and `at_ms`, whole and flushed when it is written, so that a
reader may tail the file. `EVENTS` says what else is in it, a type; `docs/reference` is made of it.
The last line of an apply is of type `result`, whatever came of it, and there is no other: who reads
a growing file stops there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO, Unpack

if TYPE_CHECKING:
    from fleetform.app.apply import ApplyResult
    from fleetform.model.history import NoticeFacts
    from fleetform.model.plan import Plan, Step
    from fleetform.model.run import Run


EVENTS: Mapping[str, Mapping[str, str]] = {
    "plan": {
        "digest": "digest of the plan that is applied; `fleetform show` prints the plan",
        "commit": "commit of the configuration; empty outside git",
        "changes": "number of resources that the plan changes",
        "held": "number of blocked changes",
    },
    "step": {
        "key": "key of the step; the same after a crash",
        "verb": "operation, such as `fleet.make`",
        "resource": "resource, such as `fleet/local`",
        "state": "`started`, `done` or `failed`",
        "error": "why the step failed, one sentence; else empty",
    },
    "run": {
        "name": "name of the run",
        "uid": "uid of this execution",
        "state": "`pending`, `submitted`, `provisioning`, `preparing`, `running`, `finishing`,"
        " `unknown`, `done`, `failed`, `stopped`, `unschedulable` or `aborted`",
        "attempt": "number of the attempt, from 1; 0 before the first",
        "cause": "why the run ended; else empty",
        "message": "the cause as a sentence",
    },
    "output": {
        "run": "name of the run",
        "rank": "rank of the node, from 0",
        "text": "a piece of output, not always whole lines; bytes that are not UTF-8 are replaced",
    },
    "notice": {"text": "a sentence for the user"},
    "result": {
        "state": "`done`, `failed`, `handed-over`, `interrupted` or `refused`",
        "exit_code": "exit code of the command",
        "failed_steps": "one sentence for each failed step",
        "runs": "followed runs: `name`, `uid`, `state`, `attempt`, `cause`",
        "message": "why the apply was refused; else empty",
    },
}
"""The fields of each type other than `type` and `at_ms` (Unix milliseconds), and what they are."""


class JsonProgress:
    """Writes each thing that happens as one line to `file`."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def began(self, plan: Plan) -> None:
        """Write what is carried out: the first line, and once more where it was planned again."""
        self.write(
            "plan",
            digest=plan.digest,
            commit=plan.commit,
            changes=len(plan.changes),
            held=len(plan.held),
        )

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

    def plan_finished(self, plan: Plan, state: str) -> None:
        """Nothing: the last line, of type `result`, says it."""

    def notice(self, text: str, **facts: Unpack[NoticeFacts]) -> None:
        self.write("notice", text=text)

    def result(self, result: ApplyResult | None, exit_code: int) -> None:
        """Write the last line: how the apply ended; None for one that was interrupted."""
        self.write(
            "result",
            state="interrupted" if result is None else result.state,
            exit_code=exit_code,
            failed_steps=[] if result is None else list(result.failed_steps),
            runs=[] if result is None else [_run(each.run) for each in result.runs],
            message="",
        )

    def refused(self, message: str, exit_code: int) -> None:
        """Write the last line of an apply that was not begun, or could not go on, and why."""
        self.write(
            "result",
            state="refused",
            exit_code=exit_code,
            failed_steps=[],
            runs=[],
            message=message,
        )

    def write(self, kind: str, **values: Any) -> None:
        assert values.keys() == EVENTS[kind].keys(), kind
        record = {"type": kind, "at_ms": time.time_ns() // 1_000_000, **values}
        try:
            self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as problem:
            # Of what is written through a handle the machine says no name.
            raise OSError(problem.errno, problem.strerror, self._file.name) from problem

    def _write_step(self, step: Step, state: str, error: str) -> None:
        self.write(
            "step",
            key=step.key,
            verb=step.verb,
            resource=str(step.resource),
            state=state,
            error=error,
        )


def _run(run: Run) -> dict[str, Any]:
    return {
        "name": run.name,
        "uid": run.uid,
        "state": run.state,
        "attempt": run.attempt,
        "cause": run.cause,
    }
