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
    ("fleetform schema", "Print the schema of any document"),
    ("fleetform schema --draft 07 > fleetform.json", "Print it in the draft that editors support"),
    ("fleetform schema --write", "Update the copies that `init` wrote"),
    ("fleetform schema --check", "Check whether the copies are current"),
)

_API = "openapi.json"
_PLAN = "plan.json"


@make_command("schema", examples=_EXAMPLES)
@click.option(
    "--draft",
    type=click.Choice(["2020-12", "07"]),
    default="2020-12",
    show_default=True,
    help="Draft of JSON Schema to print.",
)
@click.option("--write", is_flag=True, help="Write the files.")
@click.option("--check", is_flag=True, help="Exit with 1 if a file is not current.")
@click.option(
    "--into",
    type=click.Path(file_okay=False),
    help="Folder of the files.  [default: .fleetform/schemas if it exists, else schemas]",
)
def command(draft: str, write: bool, check: bool, into: str | None) -> int:
    """
    Print, write or check the JSON schemas.

    Without an option, prints the schema of any document. --write and --check work on files: one for
    each type, in draft 2020-12; one of any document for editors, in draft 07; one of the output of
    `plan --format json`; and the description of the API, if the extra `server` is installed.
    """
    if write and check:
        raise Refused("--write and --check exclude each other")
    folder = _folder(into)
    out = screen()
    if not write and not check:
        out.stream.write(_printed(draft))
        return Exit.OK
    files = _files(folder)
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
    for name in stale:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
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


def _printed(draft: str) -> str:
    from fleetform.spec.schema import ALL_KINDS, editor_files, generate

    return editor_files()[ALL_KINDS] if draft == "07" else generate()[ALL_KINDS]


def _files(folder: Path) -> dict[str, str]:
    from fleetform.spec.schema import editor_files, generate

    # An environment needs what editors read, and nothing of the API.
    if folder.parent.name == ".fleetform":
        return editor_files()
    from fleetform.views.plan.schema import schema_text

    files = generate()
    files[_PLAN] = schema_text()
    if importlib.util.find_spec("fastapi") is not None:
        from fleetform.api.app import openapi_text

        files[_API] = openapi_text()
    return files


def _is_current(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except FileNotFoundError:
        return False
