"""
What every command looks like: help with examples, and the options that many share.

A command's function returns its exit code, or None for 0.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import click

from fleetform.cli.failure import Refused

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
        # The decorator that runs first is listed last.
        for choice in reversed(choices):
            function = choice(function)
        return function

    return take


def limit_option(default: int) -> Callable[[Function], Function]:
    """Take `--limit N`; a number that no list can have means all of it."""
    return click.option(
        "--limit",
        type=click.IntRange(min=1),
        callback=lambda _context, _option, typed: min(typed, sys.maxsize),
        default=default,
        show_default=True,
        help="Print at most N.",
    )


# Which environment a command is about: `-C PATH`, before the command's name or after it.
# One spelling is shown everywhere. Those of earlier releases (`--path`, and the folder as an argument)
# are hidden and still work. Paths of files stay relative to the current folder, as for `make -f`: the
# file that `submit` runs and the plan that `apply` carries out need not lie in the environment.


_FOLDER = click.Path(exists=True, file_okay=False)
_NAMED = f"{__name__}.named"
"""In the context that all levels of a command line share: each folder that was named, in any spelling."""


class DirectoryOption(click.Option):
    """The option that names the environment; a command that has it gets the folder as `path`."""


class _HiddenArgument(click.Argument):
    """An argument that usage does not show."""

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        return []


def note_folder(ctx: click.Context, _parameter: click.Parameter, folder: str | None) -> str | None:
    """Remember a folder that names the environment; `settle_directory` compares them."""
    if folder is not None:
        ctx.meta.setdefault(_NAMED, []).append(folder)
    return folder


def note_folders(
    ctx: click.Context, parameter: click.Parameter, folders: tuple[str, ...]
) -> str | None:
    """Remember each folder of an option, which click would reduce to the last one."""
    for folder in folders:
        note_folder(ctx, parameter, folder)
    return folders[0] if folders else None


def directory_option(function: Function) -> Function:
    """Take the environment as -C PATH or --directory PATH; None: the nearest one upward."""
    older = click.option(
        "--path",
        "older_path",
        type=_FOLDER,
        hidden=True,
        expose_value=False,
        multiple=True,
        callback=note_folders,
        help="The same as -C PATH; for scripts of earlier releases.",
    )
    shown = click.option(
        "-C",
        "--directory",
        "path",
        cls=DirectoryOption,
        type=_FOLDER,
        metavar="PATH",
        multiple=True,
        callback=note_folders,
        help="Folder of the environment.  [default: the current folder or the nearest one above it with environment.yaml]",
    )
    return shown(older(function))


def directory_argument(function: Function) -> Function:
    """Take the environment as `directory_option`, and as the argument of earlier releases."""
    older = click.argument(
        "folder",
        cls=_HiddenArgument,
        required=False,
        type=_FOLDER,
        metavar="PATH",
        expose_value=False,
        callback=note_folder,
    )
    return directory_option(older(function))


def take_folder(ctx: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """Take an argument that is a folder as the environment: it is a file otherwise."""
    if path is None or not os.path.isdir(path):  # noqa: PTH112 -- pathlib takes 10 ms
        return path
    note_folder(ctx, parameter, path)
    return None


def folder_first(
    ctx: click.Context, parameter: click.Parameter, typed: tuple[str, ...]
) -> tuple[str, ...]:
    """Take the first of several names as the environment where a folder with one is called so."""
    from fleetform.cli.tree import is_environment

    if typed and is_environment(typed[0]):
        note_folder(ctx, parameter, typed[0])
        return typed[1:]
    return typed


def settle_directory(ctx: click.Context) -> None:
    """
    Give the command the one folder that was named as its parameter `path`.

    Raises:
        Refused: Several were named, or the command does not work on an environment.
    """
    named: list[str] = ctx.meta.get(_NAMED, [])
    if not named:
        return
    if not any(isinstance(one, DirectoryOption) for one in ctx.command.params):
        if not ctx.resilient_parsing:
            raise Refused(
                f"`{ctx.command_path}` does not work on an environment", advice="leave -C out"
            )
        return
    others = [one for one in named if os.path.realpath(one) != os.path.realpath(named[0])]
    if others and not ctx.resilient_parsing:
        raise Refused(
            f"two environments are named: `{named[0]}` and `{others[0]}`",
            advice="name one, with -C PATH",
        )
    ctx.params["path"] = named[0]


# The option `--format`: how a command prints, chosen in the same way everywhere.
#
# The flags of earlier releases (`--json`, `--markdown`) are in scripts and pipelines, so each is
# a hidden spelling of `--format`. Two spellings that ask for different formats are an error: the
# last one winning would depend on where a script appends its own.

_ASKED = "fleetform.cli.command"

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
