"""
That names in the code are the words of the glossary: no name of the list, and none in a first line.

A name is read before its docstring, and a newcomer searches for names. The tables give the word to
write instead. `test_phrases` keeps the same order in what users read; its phrases are forbidden in
the first lines of docstrings here.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

NAMES = {
    "anew": "again, or recreated",
    "anybody": "the user, or the caller",
    "awaited": "waiting for, or synchronous",
    "beside": "next to, or with",
    "carried_out": "supported, or applied",
    "crowd": "equivalence class",
    "crowds": "equivalence classes",
    "go_on": "continue, or resume",
    "homeless": "hostless",
    "inert": "harmless, or ineffective",
    "left_data": "retained data",
    "let_go": "released",
    "lets_go": "releases",
    "near": "overlapping, or next to",
    "nobody": "no controller, no host",
    "nursery": "task group",
    "ours": "fleetform",
    "overlooked": "ignored",
    "patience": "wait",
    "recall": "incremental",
    "restless": "changed",
    "somebody": "the user, or the controller",
    "stake": "impact",
    "strays": "orphans",
    "suspicion": "host health",
    "taken_in": "adopted",
    "taken_up": "picked up",
    "taking_in": "adoption",
    "tenure": "manager lease",
    "told": "reported",
    "unsought": "not asked for",
    "unswept": "(name the pause)",
    "untold": "omitted",
    "verdicts": "transitions",
    "whereabouts": "location",
    "whoever": "the caller",
    "world": "actual state, or host access",
    "worlds": "actual states",
}
"""
Words that no name contains, and what to write instead.

A name is split at underscores and capitals: `_LET_GO`, `LetGo` and `let_go` are one name.
"""

MODULES = {
    "above": "overrides",
    "answering": "api_server",
    "book": "scheduler_state",
    "closing": "rollouts",
    "ground": "dependencies",
    "guarded": "fencing",
    "postponed": "lazy_import",
    "sealing": "redaction",
    "seen": "change_detection",
    "skeletons": "job_dir_pool",
    "standing": "status",
    "taken": "adoption",
    "telling": "integrity",
    "unbuilt": "unsupported",
    "writing": "serialize, or digest_text",
}
"""Words that are no name of a module, and what one was called instead."""

FIRST_LINES = {
    "above the tree": "override",
    "anew": "again",
    "anybody": "a user",
    "at stake": "impact",
    "bears": "has",
    "beside": "next to, or with",
    "declared no more": "removed from the configuration",
    "foretold": "forecast",
    "in vain": "without effect",
    "let go": "released",
    "lets go": "releases",
    "made anew": "created again",
    "nobody": "no process, no user: say which",
    "of ours": "of fleetform",
    "put aside": "kept as a snapshot",
    "somebody": "a user, another process: say which",
    "take in": "adopt, or read",
    "taken in": "adopted, or read",
    "takes in": "adopts, or reads",
    "the world": "the actual state, or hosts",
    "told": "reported",
    "what is there": "(name the thing)",
    "what was there": "(name the thing)",
    "who holds": "the holder, or the manager",
    "whoever": "the caller, the process: say which",
}
"""Phrases that no first line of a docstring contains, and what to write instead."""

ALLOWED = {
    ("reconciler/fleetform/model/plan.py", "at_stake"): "a key of recorded plans",
    ("reconciler/fleetform/model/plan.py", "awaited"): "a key of recorded plans",
    ("reconciler/fleetform/model/plan.py", "stake"): "a key of recorded plans",
    ("reconciler/fleetform/store/generations.py", "told_commits"): "a key of the file",
    ("reconciler/fleetform/store/generations.py", "told_epoch"): "a key of the file",
    ("reconciler/fleetform/views/plan/schema.py", "at_stake"): "a key of `plan --json`",
    ("reconciler/fleetform/views/plan/schema.py", "stake"): "a key of `plan --json`",
    ("spec/fleetform/spec/explain.py", "carried_out_by"): "a key of `explain --json`",
}
"""Names that stay, by file, and why."""

LATER = {
    "providers/fleetform/providers/registry.py": {"_OURS"},
    "reconciler/fleetform/app/generations.py": {"note_told"},
    "reconciler/fleetform/controllers/fleets.py": {"_let_go", "_nursery"},
    "reconciler/fleetform/controllers/hosts.py": {
        "_nursery",
        "REACH_TOLD_SECONDS",
        "note_told",
    },
    "reconciler/fleetform/controllers/manager.py": {"_note_told", "note_told"},
    "reconciler/fleetform/plan/draft.py": {"at_stake"},
    "reconciler/fleetform/plan/kinds/fleet.py": {"at_stake"},
}
"""Names that are still to be changed, by file. The table only shrinks."""

LATER_FIRST_LINES = {
    "providers/fleetform/providers/contract/errors.py": {"anew", "the world"},
    "providers/fleetform/providers/contract/hosts.py": {
        "bears",
        "beside",
        "nobody",
        "what is there",
        "whoever",
    },
    "providers/fleetform/providers/contract/observed.py": {"of ours", "the world", "whoever"},
    "providers/fleetform/providers/local/daemon.py": {"nobody", "somebody"},
    "providers/fleetform/providers/local/folder.py": {"anybody", "nobody", "somebody"},
    "providers/fleetform/providers/local/places.py": {"bears"},
    "reconciler/fleetform/controllers/fleets.py": {"told", "whoever"},
    "reconciler/fleetform/controllers/hosts.py": {"anew", "nobody", "somebody", "takes in", "told"},
}
"""Phrases that first lines still contain, by file. The table only shrinks."""

_CODE = ("agents/", "providers/", "reconciler/", "spec/")


def test_names_are_words_of_the_glossary() -> None:
    """Of classes, functions, parameters, attributes, fields and constants of the product."""
    found = [one for path in _tracked(*_CODE) for one in _found_in_names(path)]
    assert not found, "\n".join(found)


def test_first_lines_are_words_of_the_glossary() -> None:
    """Of docstrings: of modules, classes and functions, and below fields and constants."""
    found = [one for path in _tracked(*_CODE) for one in _found_in_first_lines(path)]
    assert not found, "\n".join(found)


def test_modules_are_words_of_the_glossary() -> None:
    """Of the product and of the tests, whose modules are searched for as well."""
    words = NAMES | MODULES
    found = [
        f"{path}: `{word}` → {words[word]}"
        for path in _tracked(*_CODE, "tests/")
        for word in words
        if _contains(path.stem.removeprefix("test_"), word) and not _is_excepted(path, path.stem)
    ]
    assert not found, "\n".join(found)


def test_exceptions_are_needed() -> None:
    """An exception whose name is gone goes as well."""
    excepted = {*ALLOWED, *((path, name) for path, names in LATER.items() for name in names)}
    used = {(str(path), path.stem) for path in _tracked(*_CODE, "tests/")}
    used |= {(str(path), name) for path in _tracked(*_CODE) for _, name in _names(path)}
    assert sorted(excepted - used) == []
    said = {(str(path), one) for path in _tracked(*_CODE) for _, one in _phrases(path)}
    later = {(path, one) for path, phrases in LATER_FIRST_LINES.items() for one in phrases}
    assert sorted(later - said) == []


def test_a_word_is_found_in_any_spelling() -> None:
    """As a part of a name too, and not inside another word."""
    assert _contains("_LET_GO_IS_KEPT", "let_go")
    assert _contains("LetGoError", "let_go")
    assert not _contains("nearest", "near")


def _tracked(*folders: str) -> list[Path]:
    listed = subprocess.run(
        [
            "git",
            "-C",
            ROOT,
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            *(f"{folder}*.py" for folder in folders),
        ],
        capture_output=True,
        check=True,
        text=True,
    )
    return [Path(path) for path in listed.stdout.split("\0") if path and (ROOT / path).exists()]


def _found_in_names(path: Path) -> Iterator[str]:
    for line, name in _names(path):
        for word, instead in NAMES.items():
            if _contains(name, word) and not _is_excepted(path, name):
                yield f"{path}:{line}: `{name}`: `{word}` → {instead}"


def _found_in_first_lines(path: Path) -> Iterator[str]:
    for line, phrase in _phrases(path):
        if phrase not in LATER_FIRST_LINES.get(str(path), ()):
            yield f"{path}:{line}: `{phrase}` → {FIRST_LINES[phrase]}"


def _is_excepted(path: Path, name: str) -> bool:
    return (str(path), name) in ALLOWED or name in LATER.get(str(path), ())


def _contains(name: str, word: str) -> bool:
    return f"_{word}_" in _spelled(name)


@functools.cache
def _spelled(name: str) -> str:
    spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return f"_{spelled}_"


_Said = tuple[tuple[int, str], ...]


@functools.cache
def _read(path: Path) -> tuple[_Said, _Said]:
    """Return the names and the phrases of a module; its nodes would slow down all later tests."""
    nodes = list(ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))))
    phrases = (
        (line, found[0].lower())
        for line, text in _first_lines(nodes)
        for found in _PATTERN.finditer(text)
    )
    return tuple(_named(nodes)), tuple(phrases)


def _names(path: Path) -> _Said:
    return _read(path)[0]


def _phrases(path: Path) -> _Said:
    return _read(path)[1]


def _named(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
        if isinstance(node, ast.Module | ast.ClassDef):
            yield from _assigned(node)


def _assigned(node: ast.Module | ast.ClassDef) -> Iterator[tuple[int, str]]:
    for statement in node.body:
        match statement:
            case ast.Assign(targets=targets):
                pass
            case ast.AnnAssign(target=target):
                targets = [target]
            case _:
                continue
        for one in targets:
            for name in ast.walk(one):
                if isinstance(name, ast.Name):
                    yield name.lineno, name.id


_PATTERN = re.compile(
    "|".join(rf"\b{re.escape(phrase)}\b" for phrase in sorted(FIRST_LINES, key=len, reverse=True)),
    re.IGNORECASE,
)


def _first_lines(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))) if text.strip():
                yield node.lineno, text.strip().splitlines()[0]
