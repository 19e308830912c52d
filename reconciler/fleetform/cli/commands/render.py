"""`fleetform render`: what a tree comes to with its base, patches, values and profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, folder_first, format_option
from fleetform.cli.exit import Exit
from fleetform.cli.failure import Refused
from fleetform.cli.screen import screen
from fleetform.cli.tree import print_findings, print_warnings

if TYPE_CHECKING:
    from fleetform.spec.render import Rendered

_EXAMPLES = (
    ("fleetform render", "Print every document of the configuration"),
    ("fleetform render -C production run/train", "Print one run of another environment"),
    ("fleetform render 'fleet/gpu-*' --origins all", "Show the origin of every value"),
    (
        "fleetform render -C staging --origins none > staging.yaml",
        "Save the configuration, to compare it later",
    ),
    ("fleetform render --format json", "Print JSON, with the origin of each value"),
)


@make_command("render", examples=_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[NAME]...", callback=folder_first)
@directory_option
@format_option("yaml", "json")
@click.option(
    "--origins",
    type=click.Choice(["none", "inherited", "all"]),
    default="inherited",
    show_default=True,
    help="Which values show their origin; inherited: those that are not from their own document.",
)
def command(names: tuple[str, ...], path: str | None, form: str, origins: str) -> Exit:
    """
    Print the resolved configuration: each document with all values that it inherits.

    Includes the documents of bases, applies patches, merges profiles and fills in values. The
    output can be read again and declares the same resources. Elements of a sweep are not listed,
    and secrets are printed as names only. NAME is a run, `run/train`, or a pattern, 'fleet/gpu-*'.
    """
    from fleetform.app.workspace import find_root
    from fleetform.spec.render import Origins, render_tree

    rendered = render_tree(find_root(path), names, origins=Origins(origins))
    if rendered.loaded.errors:
        print_findings(rendered.loaded.errors)
        print_warnings(rendered.loaded)
        return Exit.ERROR
    if names and not rendered.documents:
        raise _no_such(names, rendered)
    if form == "json":
        screen().json([document.json() for document in rendered.documents])
    else:
        screen().stream.write("---\n".join(document.yaml() for document in rendered.documents))
    return Exit.OK


def _no_such(names: tuple[str, ...], rendered: Rendered) -> Refused:
    from fleetform.spec.names import nearest

    close = nearest(names[0], [*rendered.names, *(one.partition("/")[2] for one in rendered.names)])
    listed = ", ".join(rendered.names[:10]) + (", …" if len(rendered.names) > 10 else "")
    return Refused(
        f"no document is called {' or '.join(names)}",
        advice=f"did you mean {close}?" if close else f"there is {listed}" if listed else "",
    )
