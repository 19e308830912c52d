"""Durations as people type them, `90s`, `1h30m`, `2d`: the words of the documents."""

from __future__ import annotations

from typing import Any

import click


class Duration(click.ParamType[int]):
    """A duration on the command line; the command gets milliseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from fleetform.spec.quantities.duration import parse_duration

        if isinstance(value, int):
            return value
        try:
            return parse_duration(value) * 1000
        except ValueError as problem:
            # The sentence names the value itself.
            self.fail(str(problem), param, ctx)


DURATION = Duration()
