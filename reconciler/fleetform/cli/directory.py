"""
Which environment a command is about: `-C PATH`, before the command's name or after it.

One spelling is shown everywhere. Those of earlier releases (`--path`, and the folder as an argument)
are hidden and still work. Paths of files stay relative to the current folder, as for `make -f`: the
file that `submit` runs and the plan that `apply` carries out need not lie in the environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from fleetform.cli.failure import Refused

__all__ = [
    "DirectoryOption",
    "directory_argument",
    "directory_option",
    "folder_first",
    "note_folders",
    "settle_directory",
    "take_folder",
]

Function = TypeVar("Function", bound=Callable[..., Any])

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
