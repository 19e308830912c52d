"""Small trees, written to a folder and loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fleetform.spec.desired import Desired, Loaded
from fleetform.spec.tree import load_tree

ENVIRONMENT = "type: environment\nname: testing\nuid: 0b2f6a0e-54c5\n"


def load(folder: Path, text: str = "", **files: str) -> Loaded:
    """
    Load a tree of `text` and `files`; in their names `__` stands for a slash and a name without
    an ending is YAML.
    """
    write(folder, "environment.yaml", files.pop("environment", ENVIRONMENT))
    if text:
        write(folder, "tree.yaml", text)
    for name, content in files.items():
        path = name.replace("__", "/")
        write(folder, path if "." in path else f"{path}.yaml", content)
    return load_tree(folder)


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def good(folder: Path, text: str, **files: str) -> Desired:
    """What a tree declares, which has no errors."""
    loaded = load(folder, text, **files)
    assert loaded.errors == ()
    assert loaded.desired is not None
    return loaded.desired


def codes(loaded: Loaded) -> list[str]:
    return [finding.code for finding in loaded.findings]


def spelled(loaded: Loaded) -> str:
    """
    All of it, with what is equal and in another order told apart; names in a set are in order.

    Python shows those in the order of their hashes, which are others in each process, and after
    that in the order in which they came: two sets that are equal may not look it.
    """
    if loaded.desired is None:
        return repr(loaded)
    broken = sorted(loaded.desired.broken)
    return repr((broken, replace(loaded, desired=replace(loaded.desired, broken=frozenset()))))
