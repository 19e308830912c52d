"""Reports what is worth knowing of hosts while sessions with them are kept; decides nothing."""

from __future__ import annotations

from collections.abc import Iterable

from fleetform.model import figures
from fleetform.model.history import LogLevel
from fleetform.model.instance import Instance
from fleetform.model.offers import RefusedOffer
from fleetform.model.ports import Progress
from fleetform.providers.contract.errors import PermanentError


class HostNotices:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._unanswered: set[str] = set()
        """What was said of batches; each has the moment until which it holds, so none is said of a later one."""

    def note(self, instance: Instance, note: str) -> None:
        """Say what limits a host that works."""
        self._warn(instance, "host.note", f"host {instance.name}: {note}")

    def problem(self, instance: Instance, problem: str) -> None:
        if problem not in self._unanswered:
            self._warn(instance, "host.problem", f"host {instance.name}: {problem}")

    def unanswered(self, instance: Instance, problem: str) -> None:
        """Say once of all hosts of a batch, which `problem` names, that it is not known whether the call has created them."""
        if problem in self._unanswered:
            return
        self._unanswered.add(problem)
        self._progress.notice(
            f"fleet {instance.fleet}: {problem}",
            event="host.problem",
            level=LogLevel.WARNING,
            details={"fleet": instance.fleet},
        )

    def left_out(self, instance: Instance, problem: BaseException | None, known: str) -> None:
        """Say which host its fleet works without; `known` is what is known of it, if anything is."""
        why = known or without_name(instance, "" if problem is None else str(problem))
        advice = problem.advice if isinstance(problem, PermanentError) else ""
        self._progress.notice(
            f"host {instance.name} is not ready{': ' if why else ''}{why}{'; ' if advice else ''}{advice};"
            f" fleet {instance.fleet} works without it, and it joins when it answers"
            f" (`fleetform fleet check {instance.fleet}` says what is wrong)",
            event="host.left-out",
            level=LogLevel.WARNING,
            details={"host": instance.name, "fleet": instance.fleet},
        )

    def waiting(self, instance: Instance, problem: str, seconds: float) -> None:
        """Say why a step waits, and for how long at most."""
        why = f": {problem}" if problem else ""
        limit = figures.span(int(seconds * 1000))
        self._warn(
            instance,
            "host.waiting",
            f"waiting for host {instance.name} to answer, for up to {limit}{why}",
        )

    def creating(self, instance: Instance, said: str) -> None:
        """Say how far the creation of an instance is; `said` may be about others of its batch."""
        self._progress.notice(said, event="host.creating", details={"fleet": instance.fleet})

    def sharing(self, fleet: str, said: str) -> None:
        """Say what changes of that which the hosts of a fleet share."""
        self._progress.notice(said, event="fleet.sharing", details={"fleet": fleet})

    def refused(self, offers: Iterable[RefusedOffer]) -> None:
        """Say which offers a cloud has refused, why, and which are asked for in their place."""
        for one in offers:
            fleet = one.offer.fleet
            self._progress.notice(
                f"fleet {fleet}: {one}",
                event="offer.refused",
                level=LogLevel.WARNING,
                details={"fleet": fleet},
            )

    def releasing(self, instance: Instance) -> None:
        what = "be deleted" if instance.is_bought else "end its jobs and its agent"
        self._warn(instance, "host.waiting", f"waiting for host {instance.name} to {what}")

    def given_up(self, instance: Instance, problem: Exception) -> None:
        self._warn(
            instance,
            "host.given-up",
            f"removed host {instance.name}, which was never set up:"
            f" {without_name(instance, str(problem))}",
        )

    def _warn(self, instance: Instance, event: str, text: str) -> None:
        self._progress.notice(
            text, event=event, level=LogLevel.WARNING, details={"host": instance.name}
        )


def without_name(instance: Instance, problem: str) -> str:
    """Return a problem without the host's name, which every sentence about a host has."""
    return problem.removeprefix(f"instance {instance.name}: ")
