"""
A file or folder of dstack's or Slurm's: which files are taken, and what becomes of each.

A document goes to the same folder in the new tree, because what it names lies relative to it, and
what it names goes along. Files of tools have names of their own there: `.dstack.yml` is a file
that nobody sees, and a tree is to be read.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fleetform.spec.convert.conversion import Conversion, Copied, Names, Notes, Written, derive_name
from fleetform.spec.convert.dstack import convert_dstack
from fleetform.spec.convert.slurm import NO_PARTITIONS, Partitions, convert_slurm
from fleetform.spec.convert.slurm.local_files import submit_folders
from fleetform.spec.convert.slurm.sbatch import is_batch_script, read_script
from fleetform.spec.findings import Finding
from fleetform.spec.names import name_problem
from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents
from fleetform.spec.tree.format import named_files
from fleetform.spec.tree.walk import read_file

__all__ = ["convert"]

_ENDINGS = (".dstack.yml", ".dstack.yaml")
_SCRIPT_ENDINGS = (".job", ".sbatch", ".sh", ".slurm")
# dstack's own, below a folder `.dstack`.
_CONFIGS = ("config.yml", "profiles.yaml", "profiles.yml")
_YAML = (".yaml", ".yml")


def convert(
    source: Path, *, arguments: Sequence[str] = (), partitions: Partitions = NO_PARTITIONS
) -> Conversion:
    """
    Return what becomes of a file or folder; nothing is written.

    Args:
        source: An existing file, whatever it is called, or a folder, of which files are taken by
            their names, and scripts by their directives.
        arguments: Those of a batch script.
        partitions: What a cluster's partitions are in the environment.
    """
    root = source if source.is_dir() else source.parent
    files = sorted(_files(source)) if source.is_dir() else [source.name]
    return _Converter(root, source.is_file(), arguments, partitions).convert(files)


def _files(root: Path) -> Iterator[str]:
    """Paths of files that may be of dstack or Slurm, relative to the folder."""
    for folder, folders, names in os.walk(root):
        inside = Path(folder).relative_to(root).as_posix()
        # Not into what tools keep for themselves, but for what dstack does.
        folders[:] = sorted(
            name
            for name in folders
            if (not name.startswith(".") or name == ".dstack")
            and not Path(folder, name).is_symlink()
        )
        for name in names:
            path = name if inside == "." else f"{inside}/{name}"
            is_config = name in _CONFIGS and ".dstack" in inside.split("/")
            if name.endswith((*_ENDINGS, *_SCRIPT_ENDINGS)) or is_config:
                yield path


class _Converter:
    def __init__(
        self, root: Path, is_chosen: bool, arguments: Sequence[str], partitions: Partitions
    ) -> None:
        self._root = root
        self._is_chosen = is_chosen
        self._arguments = arguments
        self._partitions = partitions
        self._names = Names()
        self._taken: set[str] = set()
        self._known: frozenset[str] = frozenset()
        self._result = Conversion()

    def convert(self, files: list[str]) -> Conversion:
        texts = {file: text for file in files if (text := self._read(file)) is not None}
        scripts = [file for file in texts if self._is_script(file, texts[file])]
        self._known = frozenset(_job_name(file, texts[file]) for file in scripts)
        for file, text in texts.items():
            if file in scripts:
                self._convert_script(file, text)
            elif file.endswith(_YAML):
                self._convert_documents(file, text)
            elif self._is_chosen:
                self._tell_unknown(file)
        return self._result

    def _read(self, file: str) -> str | None:
        data = read_file(self._root, file)
        if isinstance(data, Finding):
            self._result.findings.append(data)
            return None
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            if file.endswith(_YAML):
                self._result.findings += read_documents(data, file)[1]
            elif self._is_chosen:
                self._tell_unknown(file)
            return None

    def _is_script(self, file: str, text: str) -> bool:
        if is_batch_script(text):
            return True
        return self._is_chosen and not file.endswith(_YAML) and text.startswith("#!")

    def _tell_unknown(self, file: str) -> None:
        notes = Notes(file, [])
        notes.refused(
            0,
            "This is neither YAML (`.yml`, `.yaml`) nor a script that begins with `#!`.",
            "Name a file of dstack, a batch script, or a folder of these.",
        )
        self._result.findings += notes.findings

    # dstack

    def _convert_documents(self, file: str, text: str) -> None:
        fallback = _stem(file) or self._folder_name(file)
        converted, findings = convert_dstack(text, file, fallback=fallback, names=self._names)
        self._result.findings += findings
        if not converted:
            return
        values = [plain(node) for node in read_documents(converted.encode(), file)[0]]
        folder = _target_folder(file)
        stem = _list_name(values) or _stem(file) or _first_name(values) or fallback
        name = f"{stem}.yaml"
        self._result.written.append(Written(self._free(posixpath.join(folder, name)), converted))
        for value in values:
            self._carry_along(file, folder, value)

    def _folder_name(self, file: str) -> str:
        folder = posixpath.basename(posixpath.dirname(file))
        return derive_name(folder or self._root.resolve().name)

    def _carry_along(self, file: str, folder: str, value: Any) -> None:
        """Note what a run names under `files:`, as far as it lies in the folder."""
        for local in named_files(value):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(file), local))
            is_inside = not local.startswith(("/", "~")) and path.split("/")[0] != ".."
            if is_inside and (self._root / path).exists() and path != ".":
                target = posixpath.normpath(posixpath.join(folder, local))
                self._copy(path, target)
            else:
                self._tell_apart(file, local)

    def _tell_apart(self, file: str, local: str) -> None:
        notes = Notes(file, (self._root / file).read_text(encoding="utf-8-sig").splitlines())
        line = next((n for n, text in enumerate(notes.lines, 1) if local in text), 1)
        notes.lost(
            line,
            f"`{local}` is outside of the converted folder, so it was not copied.",
            "Put it next to the new document, or large data into a volume.",
        )
        self._result.findings += notes.findings

    def _copy(self, source: str, target: str) -> None:
        copied = Copied(self._root / source, target)
        if copied not in self._result.copied:
            self._result.copied.append(copied)

    # Slurm

    def _convert_script(self, file: str, text: str) -> None:
        name = self._names.take("run", _job_name(file, text))
        script = posixpath.basename(file)
        task = convert_slurm(
            text,
            file,
            name=name,
            script=script,
            arguments=self._arguments,
            known=self._known - {name},
            partitions=self._partitions,
            folders=submit_folders((self._root / file).parent, self._root),
        )
        self._result.findings += task.findings
        if not task.text:
            return
        self._result.findings += _renamed(file, text, name)
        folder = posixpath.dirname(file)
        stem = posixpath.splitext(script)[0]
        self._result.written.append(
            Written(self._free(posixpath.join(folder, f"{derive_name(stem)}.yaml")), task.text)
        )
        for path, source in task.carried.items():
            copied = Copied(source, posixpath.join(folder, path))
            if copied not in self._result.copied:
                self._result.copied.append(copied)

    def _free(self, path: str) -> str:
        """Return the path, or one like it that no other file of the conversion has."""
        stem, ending = posixpath.splitext(path)
        chosen, number = path, 2
        while chosen in self._taken:
            chosen, number = f"{stem}-{number}{ending}", number + 1
        self._taken.add(chosen)
        return chosen


def _stem(file: str) -> str:
    """Return a file's name without its endings; empty for `.dstack.yml`."""
    name = posixpath.basename(file)
    for ending in (*_ENDINGS, *_YAML):
        if name.endswith(ending):
            return derive_name(name.removesuffix(ending)) if name != ending else ""
    return derive_name(posixpath.splitext(name)[0])


def _target_folder(file: str) -> str:
    """Return the folder of a document in the new tree: dstack's hidden one is its parent."""
    parts = [part for part in posixpath.dirname(file).split("/") if part]
    hidden = next((place for place, part in enumerate(parts) if part == ".dstack"), len(parts))
    return "/".join(parts[:hidden])


def _list_name(values: list[Any]) -> str:
    """Return `projects` or `profiles` for a file that is a list of them."""
    is_list = len(values) == 1 and "type" not in values[0]
    return next((name for name in ("profiles", "projects") if is_list and name in values[0]), "")


def _first_name(values: list[Any]) -> str:
    name = values[0].get("name") if values and isinstance(values[0], dict) else None
    return name if isinstance(name, str) else ""


def _job_name(file: str, text: str) -> str:
    names = [option.value for option in read_script(text).options if option.name == "job-name"]
    return derive_name(names[-1] if names else posixpath.splitext(posixpath.basename(file))[0])


def _renamed(file: str, text: str, name: str) -> list[Finding]:
    """Report the name of a task that is neither the one in the script nor the one of its file."""
    stem = posixpath.splitext(posixpath.basename(file))[0]
    usual = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")
    has_own = any(option.name == "job-name" for option in read_script(text).options)
    if has_own or name == usual:
        return []
    notes = Notes(file, text.splitlines())
    why = name_problem(usual) or "The name is already used."
    notes.otherwise(
        1,
        f"The script has no `--job-name`, and the name of its file cannot be used. {why} The task is named `{name}`.",
    )
    return notes.findings
