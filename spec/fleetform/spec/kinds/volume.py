"""
A volume: a directory that outlives the runs that mount it.
"""

from __future__ import annotations

import posixpath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from fleetform.spec.kinds.base import Document, Name, refuse
from fleetform.spec.quantities.ranges import shown


def directory(value: str) -> str:
    """
    A directory's path in its one spelling.

    `..` is refused: what it means depends on links on the host, so that nobody could tell from
    the tree what is meant.
    """
    if "\0" in value or "\n" in value:
        raise refuse("bad-path", "A path has neither newlines nor null characters.")
    if ".." in value.split("/"):
        raise refuse("bad-path", f"{shown(value)} contains `..`.", "Write the path it leads to.")
    # normpath keeps two leading slashes, which POSIX lets mean something of its own.
    path = posixpath.normpath(value)
    return path[1:] if path.startswith("//") else path


Directory = Annotated[str, Field(min_length=1, max_length=4000), AfterValidator(directory)]


class Volume(Document):
    """
    A directory kept from run to run.

    Example:
        type: volume
        name: checkpoints
        fleet: local
        path: checkpoints
    """

    type: Literal["volume"]
    """The kind of the document: `volume`."""

    fleet: Name
    """The fleet on whose hosts it lies. Another fleet is another volume. Example: `local`."""

    path: Directory
    """
    Where it lies: absolute, or relative to where fleetform keeps this environment's volumes.
    Another path is another volume; the data stays where it is. Example: `checkpoints`.
    """

    deletion_policy: Literal["retain", "delete"] | None = None
    """
    What becomes of the data when the volume is removed from the tree. `retain`: it is left
    alone. `delete`: it is deleted, by a step that the plan shows as destructive.
    Example: `retain`.
    """
