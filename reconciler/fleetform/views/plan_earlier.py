"""Runs that ended earlier other than `done`, by what a person does about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fleetform.model.figures import counted
from fleetform.model.plan import Plan, Settled
from fleetform.model.run_state import RunState
from fleetform.spec.names import natural_order

__all__ = ["EarlierRuns", "earlier_runs"]


class EarlierRuns(NamedTuple):
    """Those of one sort. `summary` fits into a plan's last line, `headline` stands above the list."""

    summary: str
    headline: str
    runs: tuple[Settled, ...]


def earlier_runs(plan: Plan) -> Iterator[EarlierRuns]:
    """Tell the failed, the unknown and the stopped apart, in this order; what is empty is left out."""
    settled = sorted(plan.settled, key=lambda one: natural_order(one.key.name))
    unknown = tuple(one for one in settled if one.state == RunState.UNKNOWN)
    stopped = tuple(one for one in settled if not one.is_failure)
    failed = tuple(one for one in settled if one not in {*unknown, *stopped})
    for runs, summary, what, cure in (
        (failed, "failed earlier", "failed earlier", _FAILED),
        (unknown, "unknown", "may have run, and no host knows", _AGAIN),
        (stopped, "stopped earlier", "stopped before the end", _AGAIN),
    ):
        if runs:
            headline = f"{counted(len(runs), 'run')} {what}; {cure}"
            yield EarlierRuns(f"{len(runs)} {summary}", headline, runs)


_AGAIN = "`fleetform rerun NAME`"
_FAILED = f"{_AGAIN}, or change the configuration"
