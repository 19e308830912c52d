"""Trees of several folders: a base and environments beside it."""

from __future__ import annotations

from pathlib import Path

from fleetform.spec.desired import Declared, Desired, Loaded, ResourceKey
from fleetform.spec.findings import Finding
from fleetform.spec.tree import load_tree
from fleetform.spec.tree.cache import ReadingCache

UID = "0b2f6a0e-54c5"
FLEET = "type: fleet\nname: local\nlocal: true\n"


def environment(more: str = "", *, name: str = "staging") -> str:
    return f"type: environment\nname: {name}\nuid: {UID}\n{more}"


def extending(more: str = "", *, name: str = "staging") -> str:
    return environment(f"extends: ../base\n{more}", name=name)


def write(folder: Path, **files: str) -> Path:
    """Write files; in their names `__` is a slash, and without an ending they are YAML."""
    for name, text in files.items():
        path = name.replace("__", "/")
        file = folder / (path if "." in path else f"{path}.yaml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


_KEPT: dict[Path, ReadingCache] = {}


def load(folder: Path, tree: str = "staging", **files: str) -> Loaded:
    """Write files and load a tree; what is kept of earlier loads of it has to change nothing."""
    root = write(folder, **files) / tree
    loaded = load_tree(root)
    kept = _KEPT.setdefault(root, ReadingCache())
    for _ in range(2):
        again = load_tree(root, cache=kept)
        assert again.findings == loaded.findings
        assert again.desired == loaded.desired
        assert again.bases == loaded.bases
    return loaded


def good(folder: Path, tree: str = "staging", **files: str) -> Desired:
    loaded = load(folder, tree, **files)
    assert loaded.errors == ()
    assert loaded.desired is not None
    return loaded.desired


def run(desired: Desired, name: str = "train") -> Declared:
    return desired.resources[ResourceKey("run", name)]


def places(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    """Each finding's code, and where it points."""
    return [(one.code, f"{one.place.file}:{one.place.line}:{one.place.column}") for one in findings]
