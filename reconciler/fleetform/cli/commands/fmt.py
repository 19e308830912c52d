"""`fleetform fmt`: documents in the one way of writing them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option
from fleetform.cli.exit import Exit
from fleetform.cli.failure import Refused
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.tree import print_findings
from fleetform.model.figures import counted

if TYPE_CHECKING:
    from fleetform.spec.tree.format import FormattedFile

_EXAMPLES = (
    ("fleetform fmt", "Format every document of the configuration"),
    ("fleetform fmt runs fleets/gpu.yaml", "Format a folder and a file"),
    (
        "fleetform fmt --check",
        "List the files that are not formatted, and exit with 1 if there are any",
    ),
    ("fleetform fmt --diff --check", "Show what would change, and write nothing"),
    ("fleetform fmt - < train.yaml", "Format standard input, for an editor"),
)


@make_command("fmt", examples=_EXAMPLES)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@directory_option
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
def command(paths: tuple[str, ...], path: str | None, check: bool, diff: bool) -> Exit:
    """
    Format documents: one order, indentation and quoting for all; comments are kept.

    PATH is a file, a folder, or - for standard input; without it, the whole configuration. The
    meaning of a document never changes. Three sorts of files are left as they are: files that
    cannot be read, YAML that declares nothing, and files that runs use (`files:`).
    """
    if paths and path is not None:
        raise Refused(
            "-C formats the whole configuration, and paths were named too",
            advice="leave one of them out",
        )
    if "-" in paths:
        return _format_input(paths, check=check)
    changed, in_order, is_bad = 0, 0, False
    for folder, file in _files(paths, path):
        is_bad |= _show_findings(file)
        if file.formatted.data == file.before:
            in_order += not file.formatted.findings
            continue
        changed += 1
        _take(folder, file, check=check, diff=diff)
    _show_summary(changed, in_order, is_written=not (check or diff))
    return Exit.ERROR if is_bad or (check and changed) else Exit.OK


def _files(paths: Sequence[str], directory: str | None) -> Iterator[tuple[Path, FormattedFile]]:
    """Each file with the folder that its path is relative to; none twice."""
    from fleetform.spec.tree.format import format_files

    if not paths:
        from fleetform.app.workspace import find_root

        root = find_root(directory)
        yield from ((root, file) for file in format_files(root))
        return
    seen: set[Path] = set()
    for typed in paths:
        path = Path(typed)
        here = path if path.is_dir() else path.parent
        found = format_files(path) if path.is_dir() else [_one(path)]
        for file in found:
            place = (here / file.path).resolve()
            if place not in seen:
                seen.add(place)
                yield here, file


def _one(path: Path) -> FormattedFile:
    from fleetform.spec.syntax.format import format_bytes
    from fleetform.spec.tree.format import FormattedFile

    if not path.is_file():
        raise Refused(f"{path} is not a file or a folder", advice="name an existing one")
    data = path.read_bytes()
    return FormattedFile(path.name, data, format_bytes(data, str(path)))


def _take(folder: Path, file: FormattedFile, *, check: bool, diff: bool) -> None:
    """Write the file, or say what would be written."""
    shown = _shown(folder / file.path)
    if diff:
        _show_diff(file, shown)
    elif check:
        screen().line(shown)
    else:
        from fleetform.spec.syntax.files import FileChanged, replace_file

        try:
            replace_file(folder / file.path, file.before, file.formatted.data)
        except FileChanged:
            raise Refused(
                f"{shown} changed while it was formatted, and was not written",
                advice="run the command again",
            ) from None
        screen().line(f"formatted {shown}", "good")


def _show_diff(file: FormattedFile, shown: str) -> None:
    from fleetform.views.text_diff import text_diff

    before, after = (data.decode() for data in (file.before, file.formatted.data))
    screen().exact_lines(text_diff(shown, before, after))


def _show_findings(file: FormattedFile) -> bool:
    """Print why a file is left alone; True when that is an error."""
    findings = file.formatted.findings
    if not findings:
        return False
    from fleetform.spec.findings import Level

    print_findings(findings)
    return any(finding.level is Level.ERROR for finding in findings)


def _show_summary(changed: int, in_order: int, *, is_written: bool) -> None:
    verb = "formatted" if is_written else "would be formatted"
    rest = f"{counted(in_order, 'file')} in order"
    error_screen().line(f"{counted(changed, 'file')} {verb}, {rest}" if changed else rest, "dim")


def _format_input(paths: Sequence[str], *, check: bool) -> Exit:
    from fleetform.spec.syntax.format import format_bytes
    from fleetform.spec.tree.format import FormattedFile

    if len(paths) > 1:
        raise Refused("standard input is formatted alone", advice="leave the other paths out")
    data = sys.stdin.buffer.read()
    file = FormattedFile("-", data, format_bytes(data, "-"))
    is_bad = _show_findings(file)
    if not check:
        # What an editor puts in the place of its text: on any finding, the text as it was.
        sys.stdout.buffer.write(file.formatted.data)
    return Exit.ERROR if is_bad or (check and file.formatted.data != data) else Exit.OK


def _shown(path: Path) -> str:
    """Return a path as people would type it from here."""
    here = Path.cwd()
    return (
        str(path.relative_to(here))
        if path.is_absolute() and path.is_relative_to(here)
        else str(path)
    )
