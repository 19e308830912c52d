"""Why somebody does it, as they type it: it stands within sentences, tables and commits."""

from __future__ import annotations

from typing import Any

import click


class Reason(click.ParamType[str]):
    """
    A reason on the command line; the command gets one line, whatever somebody pastes.

    It is empty where nothing but blanks was typed: what a command says to that is its own.
    """

    name = "reason"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        del param, ctx  # anything is a reason
        return " ".join(str(value).split())


REASON = Reason()
