"""
The document of a submitted run: what FILE says, completed by the command line, the shell and the code.

It is written as `fmt` leaves it, because `keep` moves it to the reviewed documents as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from fleetform.app.edit import ABSENT
from fleetform.app.locate import documents_of, value_at, written_path
from fleetform.app.problems import EditProblem
from fleetform.app.scripts import file_mappings, is_document
from fleetform.spec.findings import Finding, Place
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, Span, spot
from fleetform.spec.syntax import read_documents
from fleetform.spec.syntax.edit import remove, set_value
from fleetform.spec.syntax.layout import EditRefused

if TYPE_CHECKING:
    from fleetform.app.scripts import Made
    from fleetform.source.bundle import Bundle
__all__ = ["MAX_DURATION", "Setting", "TypedPlaces", "complete_document", "variables_of_shell"]


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
            file: The document, relative to the tree.
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
