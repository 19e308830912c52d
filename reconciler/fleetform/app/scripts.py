"""
A submitted file as the text of one document: a document itself, or a script.

A batch script of Slurm's is read for its directives and for the files that it uses; any other script
becomes the one command of a task, run by what its name or its first line says.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fleetform.app.problems import EditProblem
from fleetform.model.figures import counted
from fleetform.spec.findings import Level
from fleetform.spec.kinds import KINDS
from fleetform.spec.names import EXPRESSION_MARK
from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents
from fleetform.spec.syntax.edit import set_value

if TYPE_CHECKING:
    from fleetform.spec.convert.slurm import Partitions
    from fleetform.spec.findings import Finding

__all__ = ["Made", "document_of", "file_mappings", "is_document"]

_DOCUMENTS = (".yaml", ".yml")
_COMMANDS = ("commands", "init")
_ARGUMENTS = re.compile(r"(?<!\$)\$\{\{\s*run\.args\s*\}\}")
_SHELL_SCRIPTS = (".bash", ".sh")
_INTERPRETERS = {".py": "python", ".sh": "sh", ".bash": "bash", ".pl": "perl", ".R": "Rscript"}


class Made(NamedTuple):
    """
    The text of one document, and what it takes to run it.

    Attributes:
        text: The document.
        folder: The folder of this machine in which its commands expect to start.
        findings: What could not be said in the document.
        name: What FILE calls the run itself; empty where it does not.
        files: What `files:` lists.
        found: What a batch script uses: it is sent too.
        uses: What the commands seem to use, whether it is sent or not.
        unresolved: Dependencies of a batch script that the document does not have.
    """

    text: str
    folder: Path
    findings: tuple[Finding, ...] = ()
    name: str = ""
    files: tuple[Path, ...] = ()
    found: tuple[Path, ...] = ()
    uses: tuple[Path, ...] = ()
    unresolved: tuple[Finding, ...] = ()


def document_of(
    file: Path,
    arguments: Sequence[str],
    *,
    name: str,
    partitions: Callable[[], Partitions],
    variables: frozenset[str] = frozenset(),
    known: frozenset[str] = frozenset(),
) -> Made:
    """
    Read a file as the document of one run.

    Args:
        file: A document or a script.
        arguments: Of a script; of a document, they replace `${{ run.args }}` in its commands.
        name: What the run is called.
        partitions: Returns what partitions of a cluster are in the environment; only batch scripts ask.
        variables: What the command line sets; the notes about a batch script leave them out.
        known: Runs that a dependency of a batch script may name.

    Raises:
        EditProblem: It cannot be read as one.
    """
    from fleetform.spec.convert.slurm.sbatch import is_batch_script

    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError:
        raise EditProblem(f"{file} is not text", "submit a document or a script") from None
    if is_document(file):
        return _document(file, text, arguments)
    if is_batch_script(text):
        return _batch_script(file, text, arguments, name, partitions, variables, known)
    return _script(file, text, arguments, name)


def is_document(file: Path) -> bool:
    """Tell whether a file is read as a document, and not as a script."""
    return file.suffix in _DOCUMENTS


def _document(file: Path, text: str, arguments: Sequence[str]) -> Made:
    nodes, findings = read_documents(text.encode(), str(file))
    if wrong := tuple(one for one in findings if one.level is Level.ERROR):
        raise EditProblem(
            f"{file} is not submitted: {counted(len(wrong), 'error')}", findings=wrong
        )
    documents = [plain(node) for node in nodes]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise EditProblem(
            f"{file} has {counted(len(documents), 'document')}, and `submit` takes a file with one",
            "put the run into a file of its own",
        )
    (said,) = documents
    kind = KINDS.get(str(said.get("type", "")))
    if kind is None or kind.name != "run":
        raise EditProblem(
            f"{file} declares no run: only tasks, dev environments and services are submitted",
            "declare fleets and volumes in a configuration, and apply it with `fleetform apply`",
        )
    own = said.get("name")
    name = own if isinstance(own, str) and EXPRESSION_MARK not in own else ""
    files = tuple(file.parent / Path(local).expanduser() for local, _ in file_mappings(said))
    commands = said.get("commands")
    lines = [one for one in commands if isinstance(one, str)] if isinstance(commands, list) else []
    uses = _used_by_shell("\n".join(lines), file.parent)
    return Made(
        _with_arguments(file, text, said, arguments), file.parent, name=name, files=files, uses=uses
    )


def _with_arguments(file: Path, text: str, said: dict[str, Any], arguments: Sequence[str]) -> str:
    """
    Put the arguments in the place of `${{ run.args }}`, as `dstack apply` does; without any, nothing.

    Raises:
        EditProblem: There are arguments and no place for them.
    """
    value = _escaped(shlex.join(arguments))
    has_place = False
    for field in _COMMANDS:
        commands = said.get(field)
        for number, command in enumerate(commands if isinstance(commands, list) else ()):
            if isinstance(command, str) and _ARGUMENTS.search(command):
                has_place = True
                filled = _ARGUMENTS.sub(lambda _: value, command)
                text = set_value(text, 0, (field, number), filled)
    if arguments and not has_place:
        raise EditProblem(
            f"the commands of {file} have no `${{{{ run.args }}}}`, so it takes no arguments",
            "write it into a command where they belong, or set variables with -e NAME=VALUE",
        )
    return text


def _script(file: Path, text: str, arguments: Sequence[str], name: str) -> Made:
    from fleetform.spec.syntax.edit import append_document

    program = _program(file, text)
    command = _escaped(shlex.join([*program, *arguments]))
    document = append_document("", {"type": "task", "name": name, "commands": [command]})
    uses: tuple[Path, ...] = ()
    if file.suffix == ".py":
        uses = tuple(_imported_by(file, text))
    elif file.suffix in _SHELL_SCRIPTS:
        uses = _used_by_shell(text, file.parent)
    return Made(document, file.parent, uses=uses)


def _batch_script(
    file: Path,
    text: str,
    arguments: Sequence[str],
    name: str,
    partitions: Callable[[], Partitions],
    variables: frozenset[str],
    known: frozenset[str],
) -> Made:
    """Read the directives, and find the files, as `convert` does; the script itself is what runs."""
    from fleetform.spec.convert.conversion import derive_name
    from fleetform.spec.convert.slurm import convert_slurm
    from fleetform.spec.convert.slurm.local_files import submit_folders
    from fleetform.spec.convert.slurm.sbatch import read_script

    named = next(
        (one.value for one in read_script(text).options[::-1] if one.name == "job-name"), ""
    )
    own_name = derive_name(named) if named else ""
    found = convert_slurm(
        text,
        str(file),
        name=own_name or name,
        script=file.name,
        arguments=arguments,
        known=known,
        partitions=partitions(),
        folders=submit_folders(file.parent, file.parent),
        call=partial(_call, file, text, arguments),
        variables=variables,
    )
    if not found.text:
        raise EditProblem(
            f"{file} cannot be converted", "see the findings above", findings=tuple(found.findings)
        )
    used = tuple(found.carried.values())
    imported = tuple(_imported_by(file, text)) if file.suffix == ".py" else ()
    folder = found.folder or file.parent
    return Made(
        found.text,
        folder,
        tuple(one for one in found.findings if one not in found.unresolved),
        own_name,
        found=used,
        uses=(*used, *imported),
        unresolved=tuple(found.unresolved),
    )


def _call(file: Path, text: str, arguments: Sequence[str], folder: Path) -> str:
    """Return the command that runs a batch script from `folder`, as sbatch does; without `#!` by bash."""
    path = os.path.relpath(file, folder)
    program = _program(file, text, path) if text.startswith("#!") else ["bash", path]
    return _escaped(shlex.join([*program, *arguments]))


def _program(file: Path, text: str, path: str = "") -> list[str]:
    """Return how the script is called; `path` leads to it from where the commands start."""
    path = path or file.name
    if text.startswith("#!"):
        first = text[2:].splitlines()[0].split() if text[2:].strip() else []
        if os.access(file, os.X_OK):
            return [path if "/" in path else f"./{path}"]
        if first:
            return [*first, path]
    interpreter = _INTERPRETERS.get(file.suffix)
    if interpreter == "python" and shutil.which("python") is None:
        interpreter = "python3"  # Debian has no `python` outside of a virtual environment.
    if interpreter is None:
        raise EditProblem(
            f"no interpreter is known for {file}",
            "make it executable with a first line such as `#!/usr/bin/env python`",
        )
    return [interpreter, path]


def _escaped(command: str) -> str:
    """Return a command whose `${{` is text, and no expression of a document."""
    return command.replace(EXPRESSION_MARK, f"${EXPRESSION_MARK}")


# -- the files that it uses -----------------------------------------------------------------------


def file_mappings(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each file that `files:` names, and where it is to lie; empty: where it lies."""
    files = said.get("files")
    if files is None:
        return
    for entry in files if isinstance(files, list) else [files]:
        if isinstance(entry, dict):
            yield str(entry.get("local_path") or ""), str(entry.get("path") or "")
        else:
            local, _, there = str(entry).partition(":")
            yield local, there


def _used_by_shell(text: str, folder: Path) -> tuple[Path, ...]:
    """Return the files that lines of shell name, when they run in `folder`."""
    from fleetform.spec.convert.slurm.local_files import code_lines, find_local_files
    from fleetform.spec.convert.slurm.variables import Line

    lines = [Line(number, line) for number, line in enumerate(code_lines(text.splitlines()), 1)]
    return tuple(folder / one for one in find_local_files(lines, folder).found)


def _imported_by(file: Path, text: str) -> Iterator[Path]:
    """Yield the modules and packages in the folder of a program that it imports, also by way of each other."""
    from fleetform.spec.convert.slurm.local_files import imported_files

    seen, texts = {file}, [text]
    while texts:
        for found in imported_files(texts.pop(), (file.parent,)):
            if found not in seen:
                seen.add(found)
                yield found
                # What a package imports is a question of its own once the package is sent.
                if found.is_file():
                    texts.append(found.read_text("utf-8", errors="replace"))
