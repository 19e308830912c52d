"""
The environment of commands that are typed outside of any: where it is, and how it is created.

`submit` has to work in the first folder that a person tries it in, so it creates this one. It is not
in git and has no reviews. Commands that submit, follow and end runs use it, and so do those that show
what exists and what was done. Commands that check, plan, apply or edit a configuration never do:
outside an environment they would change, or find right, another one than the person thinks of.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Final

from fleetform.app.paths import CONFIG_VARIABLE, absolute_folder, config_home
from fleetform.app.problems import WorkspaceProblem
from fleetform.spec.private_folder import make_private_folder

__all__ = ["FLEET", "VARIABLE", "create_default", "default_root", "is_created_here"]

VARIABLE: Final = "FLEETFORM_ENVIRONMENT"
"""Names another environment's folder, which is used as it is and never created."""

FLEET: Final = "local"
"""The fleet of the default environment: this machine."""

_FILE: Final = "environment.yaml"
_FILES: Final = {
    _FILE: "type: environment\nname: default\n"
    "# Stamped on everything that is created from this folder: never change it.\nuid: {uid}\n",
    "fleet.yaml": f"# This machine, with what it has.\ntype: fleet\nname: {FLEET}\nnodes: 1\nlocal: true\n",
}


def default_root() -> Path | None:
    """
    Return the folder of the default environment; None where there is none yet.

    Raises:
        WorkspaceProblem: FLEETFORM_ENVIRONMENT names no environment, or the folder is damaged.
    """
    if named := os.environ.get(VARIABLE):
        root = absolute_folder(VARIABLE, named)
        if (root / _FILE).is_file():
            return root
        raise WorkspaceProblem(
            f"{VARIABLE} is `{named}`, which is not an environment: it has no {_FILE}",
            f"set it to the folder of one (`fleetform init {named}` creates one), or unset it",
        )
    place = _place()
    if place is None or not os.path.lexists(place):
        return None
    if (place / _FILE).is_file():
        return place
    if place.is_dir() and not any(place.iterdir()):
        return None
    raise WorkspaceProblem(
        f"the default environment {place} is damaged: it has no {_FILE}",
        "put the file back, which has the uid of its runs; or move the folder away, and"
        " `fleetform submit` creates a new one without them",
    )


def create_default() -> Path:
    """
    Create the default environment, unless another process was faster; returns its folder.

    Raises:
        WorkspaceProblem: There is no folder for it, or it cannot be written.
    """
    place = _place()
    if place is None:
        raise WorkspaceProblem(
            f"there is no folder for a default environment: {CONFIG_VARIABLE} is empty, or there is"
            " no home folder",
            f"set {VARIABLE} to the folder of an environment, or name one with `-C PATH`",
        )
    try:
        make_private_folder(place.parent)
        # Complete before it has its name: a second `submit` never reads half of it.
        made = Path(tempfile.mkdtemp(prefix=".default-", dir=place.parent))
        try:
            _write(made)
            # Onto a folder that has anything in it, this fails.
            made.rename(place)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as problem:
        if (place / _FILE).is_file():
            return place
        raise WorkspaceProblem(
            f"the default environment {place} cannot be created: {problem.strerror}",
            f"set {VARIABLE} to the folder of an environment, or name one with `-C PATH`",
        ) from problem
    return place


def is_created_here(root: Path) -> bool:
    """Tell whether an environment is the one that `create_default` creates: its fleet may be applied."""
    return root == _place()


def _place() -> Path | None:
    home = config_home()
    return None if home is None else home / "default"


def _write(folder: Path) -> None:
    for name, text in _FILES.items():
        path = folder / name
        path.write_text(text.format(uid=uuid.uuid4().hex), encoding="utf-8")
        path.chmod(0o600)
