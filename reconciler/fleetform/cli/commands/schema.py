"""`fleetform schema`: the JSON schemas that editors use, and the API's description."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.exit import Exit
from fleetform.cli.failure import Refused
from fleetform.cli.screen import error_screen, screen

_EXAMPLES = (
    ("fleetform schema", "Print the schema of all kinds, for an editor"),
    ("fleetform schema --write", "Renew the copies that `init` made"),
    ("fleetform schema --check", "Say whether the copies are current"),
)

_ALL_KINDS = "fleetform.json"
_API = "openapi.json"


@make_command("schema", examples=_EXAMPLES)
@click.option("--write", is_flag=True, help="Write the files.")
@click.option("--check", is_flag=True, help="Exit with 1 when a file is not current.")
@click.option(
    "--into",
    type=click.Path(file_okay=False),
    help="Folder of the files.  [default: .fleetform/schemas where there is one, else schemas]",
)
def command(write: bool, check: bool, into: str | None) -> int:
    """
    Print the JSON schema of all kinds, or write or check the files with the schema of each.

    The description of the API is among the files where the extra `server` is installed.
    """
    if write and check:
        raise Refused("--write and --check exclude each other")
    folder = _folder(into)
    # An environment needs what editors read, and nothing of the API.
    files = _files(with_api=folder.parent.name != ".fleetform")
    out = screen()
    if not write and not check:
        out.stream.write(files[_ALL_KINDS])
        return Exit.OK
    stale = [name for name, text in files.items() if not _is_current(folder / name, text)]
    if check:
        for name in stale:
            error_screen().labelled("error", f"{folder / name} is not current")
        if stale:
            raise Refused(
                "generated files are not current", advice="run `fleetform schema --write`"
            )
        out.line(f"{len(files)} files are current", "good")
        return Exit.OK
    folder.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (folder / name).write_text(files[name], encoding="utf-8")
        out.line(f"wrote {folder / name}", "good")
    if not stale:
        out.line(f"{len(files)} files are current", "dim")
    return Exit.OK


def _folder(into: str | None) -> Path:
    if into is not None:
        return Path(into)
    of_environment = Path(".fleetform", "schemas")
    return of_environment if of_environment.is_dir() else Path("schemas")


def _files(*, with_api: bool) -> dict[str, str]:
    from fleetform.spec.schema import generate

    files = generate()
    if with_api and importlib.util.find_spec("fastapi") is not None:
        from fleetform.api.openapi import openapi_text

        files[_API] = openapi_text()
    return files


def _is_current(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except FileNotFoundError:
        return False
