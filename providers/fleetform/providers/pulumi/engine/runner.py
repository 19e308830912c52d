"""
The process that changes one stack: `python -m fleetform.providers.pulumi.engine.runner`.

It reads JSON lines from standard input, settings first and then one request a line, and writes JSON
lines: changes as they happen, and one result or failure for each request. The caller holds its
standard input. When that ends, the caller is gone: the CLI gets SIGINT, which lets calls finish
that have begun, and after `GRACE_SECONDS` every process below is killed. Plugins have process
groups of their own, so they are found as descendants; those that lose their parent come to this
process, because it is a subreaper.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from fleetform.agents.host import kernel, processes
from fleetform.providers.pulumi.engine.failures import Failure, FailureKind, failure
from fleetform.providers.pulumi.engine.program import Program
from fleetform.providers.pulumi.engine.stack_lock import StackBusy, StackLock, take_stack
from fleetform.providers.pulumi.engine.stack_settings import StackSettings

if TYPE_CHECKING:
    from fleetform.providers.pulumi.engine.automation import Engine
    from fleetform.providers.pulumi.engine.changes import Change

GRACE_SECONDS = 30.0
"""A create of an instance answers within seconds; what still waits for capacity is given up."""

PARALLEL = 32
"""Resource operations at a time: more only meet the limits of a cloud on requests."""

_SWEEP_SECONDS = 0.05


def main() -> int:
    """Serve requests until standard input ends."""
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # Its handlers print when the CLI is started.
    answers = _own_stdout()
    kernel.become_subreaper()
    # Ctrl-C is the caller's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = _settings(json.loads(sys.stdin.buffer.readline()))
    runner = _Runner(answers, settings)
    threading.Thread(target=runner.read_requests, daemon=True).start()
    code = runner.serve()
    end_descendants()
    return code


def end_descendants() -> None:
    """Kill every process below this one until there is none."""
    while found := processes.descendants(os.getpid()):
        processes.send(found, signal.SIGKILL)
        _reap()
        time.sleep(_SWEEP_SECONDS)


class _Runner:
    def __init__(self, answers: TextIO, settings: StackSettings) -> None:
        self._answers = answers
        self._settings = settings
        self._requests: queue.Queue[Mapping[str, Any] | None] = queue.Queue()
        self._engine: Engine | None = None
        self._is_ending = False
        self._guard = threading.Lock()

    def serve(self) -> int:
        """Take the stack, then answer requests until standard input ends."""
        lock = self._take()
        if lock is None:
            return 1
        engine = self._start_engine(lock)
        if engine is None:
            return 1
        self._say({"ready": True})
        while (request := self._requests.get()) is not None:
            self._say(self._answer(engine, request))
            end_descendants()
        return 0

    def read_requests(self) -> None:
        """Pass requests on; when they end, end what runs. Runs in a thread of its own."""
        for line in sys.stdin.buffer:
            request = json.loads(line)
            if request["do"] == "interrupt":
                self._interrupt()
            else:
                self._requests.put(request)
        with self._guard:
            self._is_ending = True
        self._requests.put(None)
        self._interrupt()
        time.sleep(GRACE_SECONDS)
        # The main thread still waits for the CLI: no result will come that the caller could read.
        end_descendants()
        os._exit(1)

    def _take(self) -> StackLock | None:
        try:
            return take_stack(self._settings.folder, now_ms=_now_ms(), grace_seconds=GRACE_SECONDS)
        except StackBusy as busy:
            why = f"pid {busy.runner.pid}" if busy.runner else ""
            locked = failure(FailureKind.LOCKED, where=self._settings.name, why=why)
            self._say({"failure": locked.to_json()})
            return None

    def _start_engine(self, lock: StackLock) -> Engine | None:
        from fleetform.providers.pulumi.engine.automation import Engine, EngineFailed

        try:
            engine = Engine(self._settings, lock.inherited)
        except EngineFailed as failed:
            self._say({"failure": failed.failure.to_json()})
            return None
        with self._guard:
            self._engine = engine
        return engine

    def _interrupt(self) -> None:
        with self._guard:
            if self._engine is not None:
                self._engine.interrupt()

    def _answer(self, engine: Engine, request: Mapping[str, Any]) -> dict[str, Any]:
        from fleetform.providers.pulumi.engine.automation import EngineFailed

        with self._guard:
            if not self._is_ending:
                engine.resume()
        try:
            return {"result": self._do(engine, request)}
        except EngineFailed as failed:
            return {"failure": failed.failure.to_json()}

    def _do(self, engine: Engine, request: Mapping[str, Any]) -> Any:
        match request["do"]:
            case "preview":
                engine.preview(Program.from_json(request["program"]), self._report)
                return None
            case "up":
                failures = engine.up(
                    Program.from_json(request["program"]),
                    self._report,
                    parallel=PARALLEL,
                    continue_on_error=request["continue_on_error"],
                )
                return _failures(failures)
            case "refresh":
                engine.refresh(Program.from_json(request["program"]), self._report)
                return None
            case "destroy":
                return _failures(engine.destroy(self._report))
            case "export":
                return engine.export_state()
            case "import":
                return engine.import_state(request["deployment"])
            case "create":
                return engine.create()
            case "remove":
                return engine.remove()
            case other:
                raise AssertionError(f"no request is named {other}")

    def _report(self, change: Change) -> None:
        self._say({"change": change.to_json()})

    def _say(self, answer: Mapping[str, Any]) -> None:
        try:
            # One write: events come from threads of the library.
            self._answers.write(json.dumps(answer) + "\n")
            self._answers.flush()
        except BrokenPipeError:
            pass  # The caller is gone, and the end of standard input says so too.


def _own_stdout() -> TextIO:
    """Return the pipe to the caller; what libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _settings(value: Mapping[str, Any]) -> StackSettings:
    paths = {name: Path(value[name]) for name in ("folder", "passphrase")}
    return StackSettings(**{**value, **paths})


def _failures(failures: list[Failure]) -> list[dict[str, Any]]:
    return [one.to_json() for one in failures]


def _reap() -> None:
    """Take the ends of orphans; the CLI's own is taken by its library."""
    for pid in processes.children(os.getpid()):
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main())
