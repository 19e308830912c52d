"""All runtimes of an agent as one: a job goes to the runtime that its document names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fleetform.agents.host import runtimes
from fleetform.agents.host.job_command import Command, Started
from fleetform.agents.host.recovery import Found
from fleetform.agents.host.result import Result
from fleetform.agents.host.runtimes.base import Listener, Runtime
from fleetform.agents.host.runtimes.means import Means
from fleetform.agents.protocol.messages import StartJob
from fleetform.agents.protocol.states import Cause


class RoutedRuntime:
    """Fills `base.Runtime`; `name_of` returns the runtime of a job that the journal knows."""

    def __init__(self, means: Means, name_of: Callable[[str], str]) -> None:
        self._runtimes: Mapping[str, Runtime] = {
            name: runtimes.load(name)(means) for name in runtimes.RUNTIMES
        }
        self._name_of = name_of

    def _of(self, job_uid: str) -> Runtime:
        # A later release that gave way to this one may have prepared a job with a runtime that this
        # agent lacks. Its supervisor is like all others.
        return self._runtimes.get(self._name_of(job_uid)) or self._runtimes[runtimes.PROCESS]

    def listen(self, listener: Listener) -> None:
        for runtime in self._runtimes.values():
            runtime.listen(listener)

    def prepare(self, job: StartJob, digest: str) -> None:
        self._runtimes[job.runtime].prepare(job, digest)

    def start(self, job_uid: str) -> None:
        self._of(job_uid).start(job_uid)

    def attach(self, job_uid: str, ended: Callable[[], None]) -> None:
        self._of(job_uid).attach(job_uid, ended)

    def stop(self, job_uid: str, cause: Cause, grace_seconds: int | None) -> bool:
        return self._of(job_uid).stop(job_uid, cause, grace_seconds)

    def exec(self, job_uid: str, command: Command) -> Started:
        return self._of(job_uid).exec(job_uid, command)

    def repair(self, job_uid: str) -> bool:
        return self._of(job_uid).repair(job_uid)

    def inspect(self, job_uid: str) -> Found:
        return self._of(job_uid).inspect(job_uid)

    def result(self, job_uid: str) -> Result | None:
        return self._of(job_uid).result(job_uid)

    def is_supervised(self, job_uid: str) -> bool:
        return self._of(job_uid).is_supervised(job_uid)

    def end_leftovers(self, job_uid: str, tag: int, left: Sequence[int] | None) -> str:
        return self._of(job_uid).end_leftovers(job_uid, tag, left)

    def remove(self, job_uid: str) -> None:
        self._of(job_uid).remove(job_uid)

    def flush(self) -> None:
        for runtime in self._runtimes.values():
            runtime.flush()

    def close(self) -> None:
        for runtime in self._runtimes.values():
            runtime.close()
