"""
When a job is to end against its will, and by which signal: values in, values out.

A job ends at its longest duration, at a stop, or when its controller has been silent for too long,
whichever comes first. The checkpoint signal comes `checkpoint_lead_ms` before TERM, and
KILL `grace_ms` after it. All moments are milliseconds of a clock that counts suspend, given by the caller.

The controller counts the job as dead `silence_ms`, lead and grace after it was heard. So after a silence all
moments count from when `silence_ms` were over, also where the host notices that late.

A job that was only warned of its time limit and ends by itself before TERM keeps its own
outcome: whether it is done it says by its exit code (`requeue_exit_codes`).
"""

from __future__ import annotations

import enum

from fleetform.agents.protocol.states import Cause


class Step(enum.Enum):
    CHECKPOINT = "checkpoint"
    TERM = "term"
    KILL = "kill"


class Ending:
    """
    The schedule of one job's end.

    Attributes:
        cause: Why the job is being ended; None as long as it is not.
    """

    def __init__(
        self,
        *,
        started_ms: int,
        max_duration_ms: int | None,
        grace_ms: int,
        checkpoint_lead_ms: int | None,
        silence_ms: int | None = None,
    ) -> None:
        """
        `checkpoint_lead_ms` is None for a job without a checkpoint signal.

        `silence_ms` is None where the controller may be silent for ever. Otherwise `hear` says when it
        was heard.
        """
        self._silence_ms = silence_ms
        self._heard_ms = 0
        self.cause: Cause | None = None
        self._grace_ms = grace_ms
        self._lead_ms = checkpoint_lead_ms
        self._moments: dict[Step, int] = {}
        self._taken: set[Step] = set()
        if max_duration_ms is not None:
            term = started_ms + max_duration_ms
            self._moments = {Step.TERM: term, Step.KILL: term + grace_ms}
            if checkpoint_lead_ms is not None:
                self._moments[Step.CHECKPOINT] = max(term - checkpoint_lead_ms, started_ms)

    def ask(self, cause: Cause, grace_ms: int | None, now_ms: int) -> None:
        """
        Accept a request to stop; a further one can only make it faster.

        A grace of 0 means at once: no checkpoint is waited for either. None means the job's own.
        """
        self.cause = self.cause or cause
        grace = self._grace_ms if grace_ms is None else grace_ms
        lead = 0
        if self._lead_ms is not None and grace > 0:
            lead = self._lead_ms
            self._bring_forward(Step.CHECKPOINT, now_ms)
        self._bring_forward(Step.TERM, now_ms + lead)
        self._bring_forward(Step.KILL, self._moments[Step.TERM] + grace)

    def hear(self, heard_ms: int) -> None:
        """Note when the controller was heard; an earlier moment than is known changes nothing."""
        self._heard_ms = max(self._heard_ms, heard_ms)

    def is_silent(self, now_ms: int) -> bool:
        """Tell whether the controller has been silent for too long, and the job is not ended for that yet."""
        return self._silence_ms is not None and now_ms >= self._heard_ms + self._silence_ms

    def end_silence(self, now_ms: int) -> None:
        """End the job if the controller is silent; one that is heard again later does not change that."""
        if self.is_silent(now_ms):
            assert self._silence_ms is not None
            self.ask(Cause.LOST, None, self._heard_ms + self._silence_ms)
            self._silence_ms = None

    def skip_checkpoint(self, now_ms: int) -> None:
        """No process has a handler for the checkpoint signal: waiting for it has no effect."""
        if self.cause is not None and Step.TERM not in self._taken:
            grace = self._moments[Step.KILL] - self._moments[Step.TERM]
            self._bring_forward(Step.TERM, now_ms)
            self._bring_forward(Step.KILL, now_ms + grace)

    def due(self, now_ms: int) -> Step | None:
        """Take the next step whose moment has come; None when there is none yet."""
        for step in Step:
            if step not in self._taken and self._moments.get(step, now_ms + 1) <= now_ms:
                self._taken.add(step)
                if step is Step.TERM:
                    self.cause = self.cause or Cause.MAX_DURATION
                return step
        return None

    def wait_ms(self, now_ms: int) -> int | None:
        """Return how long nothing is due; None: for ever."""
        left = [moment for step, moment in self._moments.items() if step not in self._taken]
        if self._silence_ms is not None:
            left.append(self._heard_ms + self._silence_ms)
        return max(min(left) - now_ms, 0) if left else None

    def _bring_forward(self, step: Step, moment_ms: int) -> None:
        self._moments[step] = min(moment_ms, self._moments.get(step, moment_ms))
