"""
Which steps may run now.

A thin layer over the standard library's `graphlib`: it hands out ready sets, and a step that
fails is never marked done, so that only what needs it is held back.
"""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import TopologicalSorter

from fleetform.model.plan import Step


class StepGraph:
    """
    The steps of one plan, consumed from the front.

    Every step key appears once; the checker has proved that needs exist and have no cycle.
    """

    def __init__(self, steps: Iterable[Step], done: frozenset[str]) -> None:
        self._steps = {step.key: step for step in steps}
        self._sorter: TopologicalSorter[str] = TopologicalSorter(
            {step.key: step.needs for step in self._steps.values()}
        )
        self._sorter.prepare()
        self._done = done

    def take_ready(self) -> list[Step]:
        """Return steps whose needs are all done, each once; what is done already is passed over."""
        ready: list[Step] = []
        while keys := self._sorter.get_ready():
            for key in sorted(keys):
                if key in self._done or key not in self._steps:
                    self._sorter.done(key)
                else:
                    ready.append(self._steps[key])
        return ready

    def mark_done(self, keys: Iterable[str]) -> None:
        self._sorter.done(*keys)
