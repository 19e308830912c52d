"""
The document of a submitted run: what FILE says, completed by the command line, the shell and the code.

It is written as `fmt` leaves it, because `keep` moves it to the reviewed documents as it is.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from fleetform.app.edit import ABSENT
from fleetform.app.locate import documents_of, value_at, written_path
from fleetform.app.problems import EditProblem
from fleetform.model.figures import counted
from fleetform.spec.findings import Finding, Level, Place
from fleetform.spec.kinds import KINDS
from fleetform.spec.names import EXPRESSION_MARK
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, Span, plain, spot
from fleetform.spec.syntax import read_documents
from fleetform.spec.syntax.edit import remove, set_value
from fleetform.spec.syntax.layout import EditRefused

if TYPE_CHECKING:
    from fleetform.source.bundle import Bundle
    from fleetform.spec.convert.slurm import Partitions
    from fleetform.spec.findings import Finding

# A submitted file as the text of one document: a document itself, or a script.
#
# A batch script of Slurm's is read for its directives and for the files that it uses; any other script
# becomes the one command of a task, run by what its name or its first line says.

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


MAX_DURATION: Final = "8h"
"""Of an experiment that says nothing: a working day, and not the weekend that was forgotten."""

_FROM_SHELL: Final = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX")
"""
What decides which programs a person's commands find. A job has none of it by itself, so a submission
writes it into the document, where it can be seen and changed.
"""


class Setting(NamedTuple):
    """
    A field that the document is to have.

    Attributes:
        path: In the document.
        value: As JSON has it, or ABSENT.
        option: What sets it on the command line, without its value; empty where no option does.
    """

    path: tuple[str | int, ...]
    value: Any
    option: str = ""


def variables_of_shell(
    text: str, settings: Sequence[Setting], shell: Callable[[str], str | None]
) -> tuple[tuple[Setting, ...], tuple[str, ...]]:
    """
    Return what the document gets from the shell: what it and the command line leave open.

    Args:
        text: The document.
        settings: Of the command line, which are stronger.
        shell: Returns a variable of the shell as a value of a document, or None where it is not set.

    Returns:
        Variables with their values, and the names that `env:` has without a value and the shell has not.
    """
    (said,) = documents_of(text)
    env = said.get("env")
    if any(one.path == ("env",) for one in settings) or not isinstance(env, dict | list | None):
        return (), ()
    known = {str(one.path[1]): True for one in settings if one.path[0] == "env"}
    known = {**_has_value(env), **known}
    names = [name for name, has_value in known.items() if not has_value]
    # The folders of this machine are not in a container.
    if said.get("image") is None and said.get("runtime", "process") == "process":
        names += [name for name in _FROM_SHELL if name not in known and shell(name)]
    values = {name: shell(name) for name in names}
    found = (Setting(("env", name), value) for name, value in values.items() if value is not None)
    return tuple(found), tuple(name for name, value in values.items() if value is None)


def _has_value(env: dict[str, Any] | list[Any] | None) -> dict[str, bool]:
    """Return the names of variables, and whether each has a value."""
    if isinstance(env, dict):
        return dict.fromkeys(map(str, env), True)
    items = [one for one in env or () if isinstance(one, str)]
    return {one.partition("=")[0].strip(): "=" in one for one in items}


def complete_document(
    made: Made, name: str, file: Path, bundle: Bundle, settings: Sequence[Setting]
) -> str:
    """
    Return the text of the document.

    Args:
        made: What FILE says.
        name: Of the run.
        file: FILE, for errors.
        bundle: The code.
        settings: Of the command line and the shell.

    Raises:
        EditProblem: A setting cannot be made, or a file is wanted elsewhere than where it lies.
    """
    (said,) = documents_of(made.text)
    code = {"sha256": bundle.sha256, **({"commit": bundle.commit} if bundle.commit else {})}
    text = set_value(made.text, 0, ("name",), name, after="type")
    text = _without_files(text, said, file)
    for setting in (*settings, *_bounds(said, settings)):
        text = _with_setting(text, setting, file)
    (now,) = documents_of(text)
    for setting in _place(now, made.folder, bundle):
        text = _with_setting(text, setting, file)
    return _in_order(set_value(text, 0, ("code",), code), f"{name}.yaml")


def _with_setting(text: str, setting: Setting, file: Path) -> str:
    (now,) = documents_of(text)
    steps, item = written_path(now, setting.path, setting.value, absent=ABSENT)
    try:
        if item is not ABSENT:
            return set_value(text, 0, steps, item)
        return text if value_at(now, steps) is None else remove(text, 0, steps)
    except EditRefused as refusal:
        raise EditProblem(f"{setting.option or file}: {refusal.message}", refusal.advice) from None


def _in_order(text: str, path: str) -> str:
    from fleetform.spec.syntax.format import format_bytes

    return format_bytes(text.encode(), path).data.decode()


def _bounds(said: Mapping[str, Any], settings: Sequence[Setting]) -> Iterator[Setting]:
    if "max_duration" not in said and all(one.path[0] != "max_duration" for one in settings):
        yield Setting(("max_duration",), MAX_DURATION)


def _place(said: Mapping[str, Any], folder: Path, bundle: Bundle) -> Iterator[Setting]:
    """Commands run in `folder`: where the file is, as they do when they are typed there."""
    where = said.get("working_dir")
    if isinstance(where, str) and where.startswith(("/", "~")):
        return
    below = os.path.relpath(folder.resolve(), bundle.root)
    whole = os.path.normpath(f"{below}/{where}" if where else below)
    if whole != ".":
        yield Setting(("working_dir",), whole)


def _without_files(text: str, said: Mapping[str, Any], file: Path) -> str:
    """
    Take out what the bundle brings: files that lie where they lay, and the checkout itself.

    Raises:
        EditProblem: A file is wanted elsewhere than where it lies.
    """
    if said.get("repos") in (".", ["."]):
        text = remove(text, 0, ("repos",))
    if said.get("files") is None:
        return text
    for local, there in file_mappings(said):
        if there and os.path.normpath(there) != os.path.normpath(local):
            raise EditProblem(
                f"{file}: `{local}` is mapped to `{there}`, but submitted code keeps its layout",
                "copy it there in the commands, or declare the run in the configuration",
            )
    return remove(text, 0, ("files",))


# Where a person wrote what a submitted document says: a line of FILE, or an option.
# `submit` writes a document of its own, and findings about it name its lines. A person has never seen
# that file, so each finding is moved to the field that FILE has under the same path, or to the option
# that set it.

_Steps: TypeAlias = tuple[str | int, ...]


class TypedPlaces:
    """Moves findings about one submitted document."""

    def __init__(self, source: Path, file: str, text: str, settings: Sequence[Setting]) -> None:
        """
        Args:
            source: FILE, as typed.
            file: The document, relative to the configuration.
            text: Of the document.
            settings: Of the command line.
        """
        self._source = source
        self._file = file
        self._node = _root(text)
        self._settings = [one for one in settings if one.option]
        # A script has no fields with lines.
        self._written = source.read_text("utf-8") if is_document(source) else ""
        self._original = _root(self._written)

    def moved(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return the findings about the document where a person can correct them; drop all others."""
        return tuple(self._move(one) for one in findings if one.place.file == self._file)

    def _move(self, finding: Finding) -> Finding:
        path, is_key = _path_at(self._node, finding.place.line, finding.place.column)
        if option := self._option(path, finding):
            return replace(finding, place=Place(option), text="")
        if self._original is None:
            return replace(finding, place=Place(str(self._source)), text="")
        span = spot(self._original, path, of="key" if is_key else "value")
        line = self._written.splitlines()[span.line - 1]
        return replace(finding, place=span.in_file(str(self._source)), text=finding.text and line)

    def _option(self, path: _Steps, finding: Finding) -> str:
        for one in self._settings:
            if path[: len(one.path)] == one.path:
                return one.option
        # What is wrong with one variable is shown at `env`, and `env` may be a list.
        for one in self._settings:
            if path[:1] == one.path[:1] and f"`{one.path[-1]}`" in finding.detail:
                return one.option
        return ""


def _root(text: str) -> Node | None:
    nodes, _ = read_documents(text.encode(), "")
    return nodes[0] if nodes else None


def _path_at(node: Node | None, line: int, column: int) -> tuple[_Steps, bool]:
    """Return the field at a place, or the last one before it, and whether its key is there."""
    before = [
        (span[:2], path, is_key)
        for path, span, is_key in (() if node is None else _spans(node, ()))
        if span[:2] <= (line, column)
    ]
    if not before:
        return (), False
    # Of those at one place, the first is the outer one.
    _span, path, is_key = max(before, key=lambda one: one[0])
    return path, is_key


def _spans(node: Node, path: _Steps) -> Iterator[tuple[_Steps, Span, bool]]:
    """Yield the keys and values below a node, each with its path, in the order of the text."""
    if isinstance(node, MappingNode):
        for key, value in node.entries:
            yield (*path, key.raw), key.place, True
            if isinstance(value, ScalarNode):
                yield (*path, key.raw), value.place, False
            yield from _spans(value, (*path, key.raw))
    elif isinstance(node, SequenceNode):
        for number, item in enumerate(node.items):
            yield (*path, number), item.place, False
            yield from _spans(item, (*path, number))
