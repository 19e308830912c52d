"""
Which hosts a new controller hears before it places runs.

The row of a host may be days old. The host may be off by now, and a run that is placed there is
unknown until it answers; or other programs may use its GPUs. So no run is placed until each host of
another machine, and each host with GPUs, has said hello to this process, or has failed to, which makes
it unreachable in its row. Hosts that hang are waited for `WAIT_MS`, and from then on only they get no
runs. To leave hosts out from the beginning would give all runs to the host that answers first,
whatever the order of hosts. This machine without GPUs is there as long as this process is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fleetform.controllers.hosts import HostSessions
from fleetform.model import figures
from fleetform.model.figures import counted, first_of
from fleetform.model.instance import LOCAL, Instance, InstanceState
from fleetform.model.ports import Clock, Progress
from fleetform.model.run import Run

WAIT_MS = 10_000
"""A host over SSH answers within three seconds, and one that hangs must not delay the others."""

_ANSWERED = frozenset({InstanceState.READY, InstanceState.RECOVERING})
"""What a row says of a host that answered an earlier controller, until it ended or soon before."""

NOTICE_MS = 3000
"""How long runs wait before a notice says for which hosts."""


class FirstAnswers:
    """The hosts that a new controller has not heard yet."""

    def __init__(self, *, hosts: HostSessions, clock: Clock, progress: Progress) -> None:
        self._hosts = hosts
        self._clock = clock
        self._progress = progress
        self._until_ms = clock.boot_ms() + WAIT_MS
        self._silent: Sequence[Instance] | None = None
        self._is_reported = False

    def wait_ms(self, runs: Sequence[Run], instances: Sequence[Instance]) -> int:
        """Return for how long at most none of these runs may be placed; 0: they may be."""
        if self._silent == () or not runs:
            return 0
        self._silent = tuple(one for one in instances if self._is_silent(one))
        left_ms = self._until_ms - self._clock.boot_ms()
        if not self._silent or left_ms <= 0:
            return 0
        notice_in_ms = left_ms - WAIT_MS + NOTICE_MS
        if notice_in_ms <= 0 and not self._is_reported:
            self._is_reported = True
            self._tell(self._silent, left_ms)
        return left_ms if self._is_reported else notice_in_ms

    def placeable(self, instances: Sequence[Instance]) -> Sequence[Instance]:
        """Return the instances for a round; those that did not answer in time are not ready."""
        if not self._silent:
            return instances
        return tuple(
            replace(one, state=InstanceState.PROVISIONING) if self._is_silent(one) else one
            for one in instances
        )

    def _is_silent(self, instance: Instance) -> bool:
        is_asked = instance.provider != LOCAL or bool(instance.gpus)
        if not is_asked or instance.state not in _ANSWERED:
            return False
        session = self._hosts.session(instance.uid)
        # Without a session it is leaving.
        return session is not None and not session.generation

    def _tell(self, silent: Sequence[Instance], left_ms: int) -> None:
        names = [one.name for one in silent]
        self._progress.notice(
            f"runs wait for the first answer of {counted(len(names), 'host')}"
            f" ({first_of(names, 3)}), at most {figures.span(left_ms)} more",
            event="host.first-answer",
        )
