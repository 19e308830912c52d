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
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

NAMES = {
    "anew": "again, or recreated",
    "anybody": "the user, or the caller",
    "awaited": "waiting for, or synchronous",
    "beside": "next to, or with",
    "carried_out": "supported, or applied",
    "crowd": "equivalence class",
    "go_on": "continue, or resume",
    "inert": "harmless, or ineffective",
    "let_go": "released",
    "lets_go": "releases",
    "near": "overlapping, or next to",
    "nobody": "no controller, no host",
    "ours": "fleetform",
    "patience": "wait",
    "restless": "changed",
    "somebody": "the user, or the controller",
    "stake": "impact",
    "strays": "orphans",
    "taken_in": "adopted",
    "taken_up": "picked up",
    "taking_in": "adoption",
    "told": "reported",
    "untold": "omitted",
    "whoever": "the caller",
    "world": "actual state, or host access",
}
"""
Words that no name contains, and what to write instead.

A name is split at underscores and capitals: `_LET_GO`, `LetGo` and `let_go` are one name.
"""

MODULES = {
    "above": "overrides",
    "nursery": "task_group",
    "seen": "change_detection",
    "taken": "adoption",
}
"""Words that are no name of a module, and what one was called instead."""

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
    "reconciler/fleetform/app/ledger.py": {"told"},
    "reconciler/fleetform/controllers/fleets.py": {"_let_go"},
    "reconciler/fleetform/controllers/hosts.py": {
        "REACH_TOLD_SECONDS",
        "_note_told",
        "note_told",
        "told",
    },
    "reconciler/fleetform/controllers/manager.py": {"_note_told", "note_told"},
    "reconciler/fleetform/model/live.py": {"let_go", "let_go_names"},
    "reconciler/fleetform/model/plan.py": {"LET_GO"},
    "reconciler/fleetform/plan/draft.py": {"at_stake"},
    "reconciler/fleetform/plan/hosts.py": {"taken_in"},
    "reconciler/fleetform/plan/kinds/fleet.py": {
        "at_stake",
        "hosts_at_stake",
        "propose_taking_in",
        "waits_for_nobody",
    },
    "reconciler/fleetform/store/fleets.py": {"_let_go_from"},
}
"""Names that are still to be changed, by file. The table only shrinks."""

_CODE = ("agents/", "providers/", "reconciler/", "spec/")


def test_names_are_words_of_the_glossary() -> None:
    """Of classes, functions, parameters, attributes, fields and constants of the product."""
    assert [one for path in _tracked(*_CODE) for one in _found_in_names(path)] == []


def test_modules_are_words_of_the_glossary() -> None:
    """Of the product and of the tests, whose modules are searched for as well."""
    words = NAMES | MODULES
    found = [
        f"{path}: `{word}` → {words[word]}"
        for path in _tracked(*_CODE, "tests/")
        for word in words
        if _contains(path.stem.removeprefix("test_"), word) and not _is_excepted(path, path.stem)
    ]
    assert found == []


def test_exceptions_are_needed() -> None:
    """An exception whose name is gone goes as well."""
    excepted = {*ALLOWED, *((path, name) for path, names in LATER.items() for name in names)}
    used = {(str(path), path.stem) for path in _tracked(*_CODE, "tests/")}
    used |= {(str(path), name) for path in _tracked(*_CODE) for _, name in _names(path)}
    assert sorted(excepted - used) == []


def test_a_word_is_found_in_any_spelling() -> None:
    """As a part of a name too, and not inside another word."""
    assert _contains("_LET_GO_IS_KEPT", "let_go")
    assert _contains("LetGoError", "let_go")
    assert not _contains("nearest", "near")


def _tracked(*folders: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", *(f"{folder}*.py" for folder in folders)],
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


def _is_excepted(path: Path, name: str) -> bool:
    return (str(path), name) in ALLOWED or name in LATER.get(str(path), ())


def _contains(name: str, word: str) -> bool:
    spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return f"_{word}_" in f"_{spelled}_"


@functools.cache
def _names(path: Path) -> tuple[tuple[int, str], ...]:
    return tuple(_named(ast.parse((ROOT / path).read_text(encoding="utf-8"))))


def _named(module: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module):
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
