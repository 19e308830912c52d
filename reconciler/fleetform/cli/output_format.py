"""
The option `--format`: how a command prints, chosen in the same way everywhere.

The flags of earlier releases (`--json`, `--markdown`) are in scripts and pipelines, so each is
a hidden spelling of `--format`. Two spellings that ask for different formats are an error: the
last one winning would depend on where a script appends its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleetform.cli.failure import Refused

if TYPE_CHECKING:
    from fleetform.cli.command import Function, Options

_ASKED = "fleetform.cli.output_format"

_FLAGS = ("json", "markdown")
"""Formats that had a flag in an earlier release; a new format gets none."""

_HELP = {
    "text": "for people",
    "yaml": "for documents",
    "json": "for scripts",
    "markdown": "for a pull request",
    "github": "for annotations of a workflow",
    "sarif": "for code scanning",
    "junit": "for a test report",
}
"""Every format that a command may have, in the order in which help lists them."""


def format_option(*formats: str) -> Options:
    """
    Take `--format`; the command's function gets the format as `form`.

    Args:
        formats: What the command can print, a key of `_HELP` each. The first is the default.
    """
    return _option("form", formats)


def json_option(function: Function) -> Function:
    """Take `--format text|json`; the function gets whether JSON is wanted, as `as_json`."""
    return _option("as_json", ("text", "json"))(function)


def _option(parameter: str, formats: tuple[str, ...]) -> Options:
    def take(ctx: click.Context, option: click.Parameter, typed: object) -> None:
        asked: dict[str, str] = ctx.meta.setdefault(_ASKED, {})
        if isinstance(typed, tuple):
            asked.update({f"--format {one}": one for one in typed})
        elif typed:
            asked[option.opts[0]] = option.opts[0].removeprefix("--")
        if len(set(asked.values())) > 1:
            raise Refused(
                f"{' and '.join(asked)} contradict each other",
                advice=f"pass one of: --format {'|'.join(formats)}",
            )
        form = next(iter(asked.values()), formats[0])
        ctx.params[parameter] = form == "json" if parameter == "as_json" else form

    def give(function: Function) -> Function:
        meanings = ", ".join(f"{one} {_HELP[one]}" for one in formats)
        for flag in (one for one in _FLAGS if one in formats):
            function = click.option(
                f"--{flag}",
                is_flag=True,
                hidden=True,
                expose_value=False,
                callback=take,
                help=f"The same as --format {flag}.",
            )(function)
        return click.option(
            "--format",
            type=click.Choice(formats),
            multiple=True,
            expose_value=False,
            callback=take,
            help=f"Output format: {meanings}.  [default: {formats[0]}]",
        )(function)

    return give
