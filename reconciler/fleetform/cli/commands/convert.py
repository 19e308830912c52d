"""`fleetform convert`: documents from what people have for dstack and Slurm."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.exit import Exit
from fleetform.cli.failure import Refused
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.tree import print_findings
from fleetform.model.figures import counted

if TYPE_CHECKING:
    from fleetform.spec.convert import Conversion, Copied, Partitions, Placement, Written
    from fleetform.spec.findings import Finding

_EXAMPLES = (
    ("fleetform convert train.dstack.yml --to my-lab", "Convert a configuration of dstack"),
    ("fleetform convert train.sh --to my-lab", "Convert a batch script of Slurm into a task"),
    ("fleetform convert train.sh --to my-lab -- --lr 0.1", "Pass arguments to the script"),
    (
        "fleetform convert train.sh --to my-lab --partition gpu=a100s",
        "Use the fleet a100s for the partition gpu",
    ),
    ("fleetform convert old-project --to my-lab", "Convert every file of a folder"),
    ("fleetform convert old-project --to my-lab --dry-run", "Show what would be written"),
)


@make_command("convert", examples=_EXAMPLES)
@click.argument("source", type=click.Path(exists=True), metavar="FILE|FOLDER")
@click.option(
    "--to", "target", required=True, type=click.Path(file_okay=False), metavar="FOLDER",
    help="Folder of an environment, or a folder in it, to write into; created if it does not exist.",
)  # fmt: skip
@click.argument("arguments", nargs=-1, metavar="[-- ARG...]")
@click.option(
    "--partition", "partitions", multiple=True, metavar="NAME=QUEUE|FLEET",
    help="Queue or fleet of the environment that stands for the partition NAME of Slurm.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Write nothing; show what would be written.")
def command(
    source: str, target: str, arguments: tuple[str, ...], partitions: tuple[str, ...], dry_run: bool
) -> Exit:
    """
    Convert configurations of dstack and batch scripts of Slurm into documents of an environment.

    FOLDER stands for all such files in it and below: `.dstack.yml`, `*.dstack.yml`, dstack's
    config.yml, and scripts with #SBATCH lines. ARG are arguments of the script, as after `sbatch`.

    The files that a run uses are copied: those in `files:`, and those that a script names in its
    own folder or in a folder above it, up to the git repository or the current folder. Comments
    are kept. Existing files are never overwritten: equal ones are used as they are. A note reports each setting that has another
    form here. A warning, with its line, reports each setting that is lost or needs your decision.
    """
    from fleetform.spec.convert import convert, place
    from fleetform.spec.convert.conversion import derive_name

    if arguments and Path(source).is_dir():
        raise Refused(
            f"{source} is a folder, and its scripts would all get the same arguments",
            advice="convert the script that uses them separately",
        )
    root = Path(target)
    result = convert(Path(source), arguments=arguments, partitions=_partitions(root, partitions))
    result.copied = [one for one in result.copied if not _is_in_place(root, one)]
    print_findings(result.findings)
    if not result.written:
        raise Refused(
            f"nothing in {source} can be converted",
            advice="files of dstack's end in .dstack.yml, batch scripts have lines with #SBATCH",
        )
    written = [*_environment(root), *_in_order(result)]
    placement = place(root, written, result.copied)
    own_folder = root / derive_name(Path(source).stem)
    if dry_run:
        _show(root, written, result.copied)
    _refuse_to_overwrite(root, placement, own_folder)
    if not dry_run:
        _write(root, placement, result.copied)
    return Exit.ERROR if _errors(result.findings) else Exit.OK


def _partitions(root: Path, renamed: tuple[str, ...]) -> Partitions:
    """Return the queues and fleets that the environment has, and what people say partitions are."""
    from fleetform.spec.convert import Partitions
    from fleetform.spec.desired import FILE_NAME
    from fleetform.spec.tree import load_tree

    names: dict[str, str] = {}
    for text in renamed:
        name, equals, meant = text.partition("=")
        if not (name and equals and meant):
            raise Refused(f"`{text}` names no partition", advice="write --partition gpu=FLEET")
        names[name] = meant
    environment = _environment_of(root)
    desired = load_tree(environment).desired if (environment / FILE_NAME).exists() else None
    kinds: dict[str, set[str]] = {"fleet": set(), "queue": set()}
    for key in desired.resources if desired is not None else ():
        kinds.setdefault(key.kind, set()).add(key.name)
    known = kinds["fleet"] | kinds["queue"]
    for name, meant in names.items():
        if meant not in known:
            raise Refused(
                f"{root} declares no queue and no fleet `{meant}` for the partition `{name}`",
                advice=f"it declares {', '.join(sorted(known)) or 'none'}",
            )
    return Partitions(frozenset(kinds["queue"]), frozenset(kinds["fleet"]), names)


def _is_in_place(root: Path, copy: Copied) -> bool:
    return (root / copy.path).resolve() == copy.source.resolve()


def _environment_of(root: Path) -> Path:
    """Return the environment that the folder is in, or the folder itself: it becomes one."""
    from fleetform.spec.desired import FILE_NAME

    if (root / FILE_NAME).exists():
        return root
    above = root.resolve().parents
    return next((one for one in above if (one / FILE_NAME).is_file()), root)


def _environment(root: Path) -> list[Written]:
    """Return the file that makes an environment of the folder, unless it is in one."""
    from fleetform.spec.convert import Written
    from fleetform.spec.desired import FILE_NAME

    if (_environment_of(root) / FILE_NAME).exists():
        return []
    import uuid

    from fleetform.spec.convert.conversion import derive_name

    name = derive_name(root.resolve().name, otherwise="lab")
    text = f"type: environment\nname: {name}\n# Never change it: hosts and volumes of this environment are marked with it.\nuid: {uuid.uuid4().hex}\n"
    return [Written(FILE_NAME, text)]


def _in_order(result: Conversion) -> list[Written]:
    """Return the files as `fmt` would leave them, so that its first use changes nothing."""
    from fleetform.spec.syntax.format import format_bytes

    return [
        file._replace(text=format_bytes(file.text.encode(), file.path).data.decode())
        for file in result.written
    ]


def _show(root: Path, written: list[Written], copied: list[Copied]) -> None:
    out = screen()
    for number, file in enumerate(written):
        if number:
            out.line()
        out.line(f"# {root / file.path}", "bold")
        out.stream.write(file.text)
    for copy in copied:
        out.line(f"# {root / copy.path}, a copy of {copy.source}", "bold")


def _refuse_to_overwrite(root: Path, placement: Placement, own_folder: Path) -> None:
    """
    Refuse if a file with other content is in the way of one of the conversion.

    Raises:
        Refused: All such files are named. The advice keeps the tasks that use them as they are.
    """
    documents, files = placement.other_documents, placement.other_files
    if not (documents or files):
        return
    named = [str(root / path) for path in (*documents, *files)]
    advice = []
    if documents:
        listed = ", ".join(named[: len(documents)])
        advice.append(f"to convert again, move {listed} away first")
    if files:
        advice.append(
            f"tasks that were converted before use {'this file' if len(files) == 1 else 'these files'}: write"
            f" the new task and its files into a folder of their own with `--to {shlex.quote(str(own_folder))}`"
        )
    raise Refused(
        f"nothing was written: {counted(len(named), 'file')} with other content"
        f" {'exists' if len(named) == 1 else 'exist'} already: {', '.join(named)}",
        advice="; ".join(advice),
    )


def _write(root: Path, placement: Placement, copied: list[Copied]) -> None:
    from fleetform.spec.convert import copy_single

    out = screen()
    whole = {one.path for one in copied if not os.path.lexists(root / one.path)}
    for copy in placement.copied:
        path = root / copy.path
        copy_single(copy.source, path)
        if not any(copy.path.startswith(f"{folder}/") for folder in whole):
            out.line(f"copied {path}", "good")
    for one in copied:
        if one.path in whole and one.source.is_dir():
            out.line(f"copied {root / one.path}", "good")
    if placement.same:
        listed = ", ".join(str(root / path) for path in placement.same)
        verb = "is" if len(placement.same) == 1 else "are"
        error_screen().labelled(
            "note",
            f"{listed} {verb} there already with the same content, and {verb} used as before",
        )
    for file in placement.written:
        path = root / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="") as stream:
            stream.write(file.text)
        out.line(f"wrote {path}", "good")
    out.line()
    environment = _environment_of(root)
    where = shlex.quote(os.path.relpath(environment) if environment != root else str(root))
    out.line(f"Next: `fleetform validate -C {where}` lists what is left to correct.")
    if not _has_fleet(environment):
        out.line(
            f"The environment has no fleet, so its runs would wait: `fleetform init {where}` adds"
            " this machine as a fleet."
        )


def _has_fleet(root: Path) -> bool:
    """Tell whether an environment declares a fleet; one that cannot be read has errors to correct first."""
    from fleetform.spec.tree import load_tree

    desired = load_tree(root).desired
    return desired is None or any(key.kind == "fleet" for key in desired.resources)


def _errors(findings: list[Finding]) -> bool:
    from fleetform.spec.findings import Level

    return any(finding.level is Level.ERROR for finding in findings)
