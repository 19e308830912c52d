"""
What somebody has at hand, as the text of one document: a document itself, or a script.

A batch script of Slurm's is read for its directives; any other script becomes the one command of
a task, run by what its name or its first line says.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fleetform.spec.kinds import KINDS
from fleetform.wiring.locating import documents_of
from fleetform.wiring.problems import EditProblem

if TYPE_CHECKING:
    from fleetform.spec.convert.slurm import Partitions
    from fleetform.spec.findings import Finding

__all__ = ["Made", "document_of"]

_DOCUMENTS = (".yaml", ".yml")
_INTERPRETERS = {".py": "python", ".sh": "sh", ".bash": "bash", ".pl": "perl", ".R": "Rscript"}


class Made(NamedTuple):
    """The text of one document, and what could not be said in it."""

    text: str
    findings: tuple[Finding, ...] = ()
    name: str = ""
    """What the script calls the job itself."""


def document_of(
    file: Path, arguments: Sequence[str], *, name: str, partitions: Callable[[], Partitions]
) -> Made:
    """
    Read a file as the document of one run.

    Args:
        file: A document or a script.
        arguments: For a script.
        name: What the run is called.
        partitions: Returns what partitions of a cluster are in the environment; only batch scripts ask.

    Raises:
        EditProblem: It cannot be read as one.
    """
    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError:
        raise EditProblem(f"{file} is no text", "submit a document or a script") from None
    if file.suffix in _DOCUMENTS:
        if arguments:
            raise EditProblem(
                f"{file} is a document, and takes no arguments", "set variables with -e NAME=VALUE"
            )
        return _document(file, text)
    return _script(file, text, arguments, name, partitions)


def _document(file: Path, text: str) -> Made:
    documents = documents_of(text)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise EditProblem(
            f"{file} has {len(documents)} documents that can be read, and one is submitted",
            "put the run into a file of its own; `fleetform validate FILE` shows mistakes",
        )
    kind = KINDS.get(str(documents[0].get("type", "")))
    if kind is None or kind.name != "run":
        raise EditProblem(
            f"{file} declares no run: only tasks, dev environments and services are submitted",
            "what others share, such as a fleet, belongs into the tree",
        )
    return Made(text)


def _script(
    file: Path, text: str, arguments: Sequence[str], name: str, partitions: Callable[[], Partitions]
) -> Made:
    from fleetform.spec.convert.slurm.sbatch import is_batch_script, read_script
    from fleetform.spec.edit import append_document

    command = shlex.join([*_program(file, text), *arguments])
    if not is_batch_script(text):
        return Made(append_document("", {"type": "task", "name": name, "commands": [command]}))
    from fleetform.spec.convert.naming import derive_name
    from fleetform.spec.convert.slurm import convert_slurm
    from fleetform.spec.edit import set_value

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
        partitions=partitions(),
    )
    if not found.text:
        raise EditProblem(
            f"{file} cannot be taken over", "see what is said above", findings=tuple(found.findings)
        )
    # The script itself is part of the bundle: it runs as it is, with what stands beside it.
    made = (
        found.text if found.has_own_commands else set_value(found.text, 0, ("commands",), [command])
    )
    return Made(made, tuple(found.findings), own_name)


def _program(file: Path, text: str) -> list[str]:
    """Return how the script is called where it lies."""
    if text.startswith("#!"):
        first = text[2:].splitlines()[0].split() if text[2:].strip() else []
        if os.access(file, os.X_OK):
            return [f"./{file.name}"]
        if first:
            return [*first, file.name]
    interpreter = _INTERPRETERS.get(file.suffix)
    if interpreter == "python" and shutil.which("python") is None:
        interpreter = "python3"  # Debian has no `python` outside of a virtual environment.
    if interpreter is None:
        raise EditProblem(
            f"no interpreter is known for {file}",
            "make it executable with a first line such as `#!/usr/bin/env python`",
        )
    return [interpreter, file.name]
