"""
Find the files that a script uses from the folder it is submitted in: programs, configurations, lists of inputs.

A batch script of Slurm runs in that folder. A job of fleetform has a directory of its own, with the
files that its document names, so the conversion has to find them. Nothing is executed: words of the
script are compared with the names that exist, and a word with a variable in it is a pattern. A file
of code names further files: modules that it imports, and names of files in quotes.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fleetform.spec.convert.slurm.variables import (
    SUBMIT_DIR,
    UNKNOWN,
    Line,
    expand,
    split_commands,
    take_assignments,
)

__all__ = [
    "CODE_ENDINGS",
    "LocalFiles",
    "code_lines",
    "find_local_files",
    "imported_files",
    "named_in_code",
    "submit_folders",
]


_QUOTED: Final = re.compile(r"""["']([\w./-]{3,200})["']""")


def named_in_code(file: Path, text: str, folder: Path) -> Iterator[Path]:
    """
    Yield files and packages that `file` uses and that exist.

    Args:
        file: A program or a module.
        text: Its content.
        folder: The directory that it runs in: names in quotes are relative to it, or to the file.
    """
    for quoted in _QUOTED.findall(text):
        for path in (folder / quoted, file.parent / quoted):
            if not quoted.startswith("/") and path.is_file():
                yield path
    if file.suffix == ".py":
        yield from imported_files(text, (file.parent, folder))


def imported_files(text: str, folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the modules and packages in `folders` that the Python code `text` imports."""
    for name in _imported(text):
        parts = name.split(".")
        for root in folders:
            module, package = root.joinpath(*parts).with_suffix(".py"), root / parts[0]
            if package.is_dir() and any(package.glob("*.py")):
                yield package
            elif module.is_file():
                yield module


def _imported(text: str) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield node.module
            elif node.level:
                yield from (one.name for one in node.names)


CODE_ENDINGS: Final = (
    ".R", ".jl", ".m", ".nf", ".pl", ".py", ".r", ".sh", ".smk", "Makefile", "Snakefile", "makefile",
)  # fmt: skip
_READ_ENDINGS: Final = (*CODE_ENDINGS, ".cfg", ".in", ".ini", ".json", ".toml", ".yaml", ".yml")
"""Endings of files that a script reads: one that is missing is reported."""

_IMPLIED: Final = {
    "poetry": ("pyproject.toml", "poetry.lock"),
    "make": ("Makefile", "makefile"),
    "snakemake": ("Snakefile", "workflow/Snakefile"),
}
"""Files that a program reads by default."""

_FILES_MAX: Final = 500
_BYTES_MAX: Final = 64 << 20
"""More belongs into a volume: a document's files are copied to each host and are part of its digest."""

_WORD: Final = re.compile(r"""[^\s;|&<>()=,:'"\[\]{}]+|>""")
_TEXT: Final = re.compile(r"^\s*(?:(?:do|then|else|time)\s+)?(?:echo|printf)\s[^>]*")
"""What a script prints: words for people, and no names of files."""
_CD: Final = re.compile(
    r"""^\s*(?:popd|(?:cd|pushd)\s+(?:--\s+)?["']?([^\s"';&|]+)["']?)\s*(?:$|[;&#|])"""
)
_OUTPUT: Final = re.compile(
    r"-o|--?(?!-?no)\S*(?:out|log|save|result|ckpt|checkpoint)\S*|tee|>", re.IGNORECASE
)
_MAKERS: Final = frozenset({"mkdir", "rm", "touch"})
_COPIERS: Final = frozenset({"cp", "rsync"})
_BUILD: Final = re.compile(
    r"\b(?:make|ninja|\w*gcc|\w*g\+\+|mpicc|mpif\d+|nvcc|gfortran|cargo|go build)\b"
)
"""Commands after which there are programs that did not exist before."""


class LocalFiles(NamedTuple):
    """
    What a script names.

    Attributes:
        found: Paths relative to the folder that the script is submitted in; some begin with `..`.
        missing: Files that the script reads and that do not exist, with their lines.
        elsewhere: Absolute paths that this machine does not have, with their lines.
        large: Files and directories that are too large to be files of a document, with their lines.
        directories: Directories that exist and that the script writes to.
        matches: How many names exist, less those that do not: it is highest for the folder that was meant.
    """

    found: tuple[str, ...] = ()
    missing: tuple[tuple[int, str], ...] = ()
    elsewhere: tuple[tuple[int, str], ...] = ()
    large: tuple[tuple[int, str], ...] = ()
    directories: tuple[str, ...] = ()
    matches: int = 0


def find_local_files(lines: Sequence[Line], folder: Path) -> LocalFiles:
    """Return the files that the lines of a shell script name, when it is submitted in `folder`."""
    search = _Search(folder)
    search.read_shell(lines)
    return search.result()


def submit_folders(folder: Path, root: Path) -> list[Path]:
    """Return where a script may have been submitted: its folder, and those above up to the project's."""
    folder = folder.resolve()
    above = [folder, *folder.parents]
    last = next((number for number, one in enumerate(above) if (one / ".git").exists()), None)
    if last is None:
        tops = {root.resolve(), Path.cwd()}
        last = max((number for number, one in enumerate(above) if one in tops), default=0)
    return above[: last + 1]


class _Search:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[str, None] = {}
        self._contents: set[str] = set()
        self._missing: dict[str, int] = {}
        self._elsewhere: dict[str, int] = {}
        self._large: dict[str, int] = {}
        self._directories: dict[str, None] = {}

    def result(self) -> LocalFiles:
        named = len({one for one in self._found if not self._is_below_another(one)})
        self._found |= dict.fromkeys(self._contents)
        kept = [one for one in self._found if not self._is_below_another(one)]
        return LocalFiles(
            tuple(sorted(kept)),
            _pairs(self._missing),
            _pairs(self._elsewhere),
            _pairs(self._large),
            tuple(sorted(self._directories)),
            named - len(self._missing),
        )

    def _is_below_another(self, path: str) -> bool:
        return any(path.startswith(f"{other}/") for other in self._found)

    def read_shell(self, lines: Iterable[Line], *, where: str = ".") -> None:
        """Go over the lines of a shell script; `where` is the directory that it runs in."""
        variables: dict[str, str] = {}
        made: set[str] = set()
        before, is_built = where, False
        for number, line in lines:
            for written in split_commands(line):
                for command in expand(written, variables, is_moved=where != "."):
                    values, rest = take_assignments(command, variables)
                    # A directory is a part of the names that follow.
                    used = [
                        one for one in values if (self._folder / self._path(where, one)).is_file()
                    ]
                    if moved := _CD.match(rest):
                        before, where = where, self._move(number, moved[1] or "-", where, before)
                        rest = rest[moved.end() :]
                    is_built = is_built or _BUILD.search(rest) is not None
                    words = [*used, *_WORD.findall(_TEXT.sub("", rest))]
                    self._take_words(number, words, where, made, is_built=is_built)

    def _move(self, number: int, target: str, where: str, before: str) -> str:
        """Return the directory behind `cd`: `/` where it is not in the folder, so nothing is looked for."""
        if target == "-":
            return before
        if target.startswith("~") or _is_pattern(target):
            return "/"
        if target.startswith("/"):
            self._take_absolute(number, target)
        return self._path(where, target)

    @staticmethod
    def _path(where: str, word: str) -> str:
        """Return the path of a word; one that begins at the submit directory does not depend on `where`."""
        base, word = (".", f"./{word[1:]}") if word.startswith(SUBMIT_DIR) else (where, word)
        return posixpath.normpath(posixpath.join(base, word))

    def _take_words(
        self, number: int, words: list[str], where: str, made: set[str], *, is_built: bool
    ) -> None:
        for place, word in enumerate(words):
            before = words[place - 1] if place else ""
            path = self._path(where, word)
            if _OUTPUT.fullmatch(before) or words[0] in _MAKERS:
                made.add(path)
                self._write_to(path)
            elif path in {".", "*"}:
                if _COPIERS.intersection(words[:place]) and place + 1 < len(words):
                    self._take_folder(number)
            elif path not in made and (word.startswith(SUBMIT_DIR) or not where.startswith("/")):
                # A command without a folder is on PATH, and one that is built is not there yet.
                is_found = (not place and "/" not in word) or (is_built and word.startswith("./"))
                self._take(number, word, where, before, is_needed=not is_found)

    def _write_to(self, path: str) -> None:
        """Remember a directory that exists next to the script, and that the script writes to."""
        for one in (path, posixpath.dirname(path)):
            is_inside = one not in {"", "."} and not one.startswith(("/", "..", "-", "~"))
            if is_inside and not _is_pattern(one) and (self._folder / one).is_dir():
                self._directories[one] = None
                return

    def _take(self, number: int, word: str, where: str, before: str, *, is_needed: bool) -> None:
        if (
            "#" in word
            or "\\" in word
            or word.startswith(("-", "~", "http", "$"))
            or not re.search(r"\w", word)
        ):
            return
        if word.startswith("/"):
            self._take_absolute(number, word)
            return
        names = [word, *_IMPLIED.get(word, ())]
        if before == "-m":
            names += [word.replace(".", "/") + ".py", word.split(".", maxsplit=1)[0]]
        elif before in {"-batch", "-r"}:
            names.append(f"{word}.m")
        paths = [self._path(where, name) for name in names]
        added = {self._add(number, path) for path in paths}
        if True not in added and is_needed and _is_read(word, before):
            self._missing.setdefault(paths[0], number)

    def _take_absolute(self, number: int, word: str) -> None:
        is_system = word.startswith(("/bin", "/dev", "/etc", "/proc", "/sys", "/tmp", "/usr"))  # noqa: S108 -- a name in a script
        if not is_system and not _is_pattern(word) and not os.path.lexists(word):
            self._elsewhere.setdefault(word, number)

    def _take_folder(self, number: int) -> None:
        """Add all that is in the folder, which the script copies to work in the copy."""
        entries = [one for one in self._folder.iterdir() if not one.name.startswith(".")]
        if _are_small(entries):
            self._contents |= {one.name for one in entries}
        else:
            self._large.setdefault(f"{self._folder.resolve().name}/", number)

    def _add(self, number: int, path: str) -> bool:
        """Add a path, or what a pattern matches; returns whether there is anything."""
        if _is_pattern(path):
            return self._add_matches(number, path)
        if path in self._found:
            return True
        real = self._folder / path
        if path.rsplit("/", maxsplit=1)[-1] in {".", ".."} or ":" in path:
            return False
        try:
            is_file, is_directory = real.is_file(), real.is_dir()
        except (OSError, ValueError):
            return False
        if not (is_file or is_directory):
            return False
        if _are_small([real]):
            self._found[path] = None
            for one in [real] if is_file else sorted(real.rglob("*")):
                self._follow(number, one)
        else:
            self._large.setdefault(path, number)
        return True

    def _add_matches(self, number: int, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        if UNKNOWN in path and not re.search(r"\w", folder + posixpath.splitext(name)[0]):
            return False  # It could be any file.
        pattern = path.replace(UNKNOWN, "*")
        try:
            matches = sorted(one for one in self._folder.glob(pattern) if one.is_file())
        except (ValueError, NotImplementedError, OSError):
            return False
        if not _are_small(matches):
            self._large.setdefault(pattern, number)
            return True
        for one in matches:
            self._add(number, os.path.relpath(one, self._folder))
        return bool(matches)

    def _follow(self, number: int, file: Path) -> None:
        """Add what a file of code names itself: modules, sourced scripts, and data."""
        if (
            not file.name.endswith(CODE_ENDINGS)
            or not file.is_file()
            or file.stat().st_size > 1 << 20
        ):
            return
        text = file.read_text("utf-8", errors="replace")
        if file.name.endswith((".sh", "akefile")):
            self.read_shell([Line(number, line) for line in code_lines(text.splitlines())])
            return
        for named in named_in_code(file, text, self._folder):
            path = posixpath.normpath(os.path.relpath(named, self._folder))
            if not self._is_below_another(path):
                self._add(number, path)


def code_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines with those that are only comments left blank."""
    for line in lines:
        yield "" if line.lstrip().startswith("#") else line


def _is_pattern(path: str) -> bool:
    return any(one in path for one in (UNKNOWN, "*", "?"))


def _is_read(word: str, before: str) -> bool:
    is_program = word.startswith(("./", f"{SUBMIT_DIR}/")) and not before.startswith("-")
    return not _is_pattern(word) and (
        is_program or (before in {"source", "."} and "/" in word) or word.endswith(_READ_ENDINGS)
    )


def _are_small(paths: Iterable[Path]) -> bool:
    """Tell whether files and folders are together small enough to be files of a task."""
    size = count = 0
    for path in paths:
        for one in (path, *path.rglob("*")) if path.is_dir() else (path,):
            size += one.lstat().st_size
            count += 1
            if count > _FILES_MAX or size > _BYTES_MAX:
                return False
    return True


def _pairs(found: dict[str, int]) -> tuple[tuple[int, str], ...]:
    return tuple(sorted((number, path) for path, number in found.items()))
