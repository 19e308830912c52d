"""
What every command looks like: help with examples, and the options that many share.

A command's function returns its exit code, or None for 0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import click

from fleetform.cli.directory import settle_directory

Function = TypeVar("Function", bound=Callable[..., Any])

# People copy from examples and skip prose, so each command must have one; a test sees to it.
Examples = Sequence[tuple[str, str]]

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Command(click.Command):
    """A command whose help ends in its exit codes, where they say more than usual, and in examples."""

    def __init__(
        self,
        name: str | None = None,
        *,
        examples: Examples = (),
        codes: Sequence[tuple[int, str]] = (),
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("context_settings", _SETTINGS)
        super().__init__(name, **kwargs)
        self.examples = tuple(examples)
        self.codes = tuple(codes)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        settle_directory(ctx)
        return rest

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_codes(self.codes, formatter)
        write_examples(self.examples, formatter)


class Group(click.Group):
    """A noun with verbs below it: `fleet list`, `fleet show`. Without one it lists, shows or helps."""

    command_class = Command

    def __init__(self, name: str | None = None, *, examples: Examples = (), **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", _SETTINGS)
        kwargs.setdefault("no_args_is_help", False)
        super().__init__(name, **kwargs)
        self.examples = tuple(examples)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        default = next((verb for verb in ("list", "show") if verb in self.commands), "--help")
        return super().parse_args(ctx, args or [default])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)


def write_codes(codes: Sequence[tuple[int, str]], formatter: click.HelpFormatter) -> None:
    """Write what each exit code means, in the order in which they are judged."""
    if codes:
        with formatter.section("Exit codes (the first that fits)"):
            formatter.write_dl([(str(int(code)), meaning) for code, meaning in codes])


def write_examples(examples: Examples, formatter: click.HelpFormatter) -> None:
    """Write each example above what it does, unwrapped, so that it can be copied."""
    if not examples:
        return
    with formatter.section("Examples"):
        for typed, meaning in examples:
            formatter.write(f"{'':>{formatter.current_indent}}{typed}\n")
            formatter.write(f"{'':>{formatter.current_indent}}    {meaning}\n")


def command(
    name: str, *, examples: Examples, codes: Sequence[tuple[int, str]] = ()
) -> Callable[[Callable[..., Any]], Command]:
    """Make a function the command `name`; its docstring is the help."""
    return click.command(name, cls=Command, examples=examples, codes=codes)


def group(name: str, *, examples: Examples) -> Callable[[Callable[..., Any]], Group]:
    """Make a function the group `name`."""
    return click.group(name, cls=Group, examples=examples)


class Options(Protocol):
    """What gives a command's function one option or several."""

    def __call__(self, function: Function, /) -> Function: ...


def several_options(*choices: Options) -> Options:
    """Take several options at once, which help lists in this order."""

    def take(function: Function) -> Function:
        # Whoever decorates first is listed last.
        for choice in reversed(choices):
            function = choice(function)
        return function

    return take


def limit_option(default: int) -> Callable[[Function], Function]:
    """Take `--limit N`; whoever types a number that no list can have means all of it."""
    return click.option(
        "--limit",
        type=click.IntRange(min=1),
        callback=lambda _context, _option, typed: min(typed, sys.maxsize),
        default=default,
        show_default=True,
        help="Print at most N.",
    )
