"""
YAML that people wrote, changed in place: what is not touched stays as it is, byte for byte.

Each operation is a function from text to text. It finds places by the scanner of the loader
(`layout`), replaces as little as it can (`change`), and reads the result again: unless that says
exactly what was intended, in every document of the file, the edit is refused. So a file with
anchors, odd indentation or several documents is either changed as asked or not at all.

Comments, quotes, blank lines and line ends need no special care that way: nothing writes them
anew. `write` puts a text into a file at once.
"""

from fleetform.spec.edit.change import (
    add_item,
    append_document,
    remove,
    remove_document,
    rename_key,
    set_value,
)
from fleetform.spec.edit.layout import Layout, read_layout
from fleetform.spec.edit.refused import EditRefused
from fleetform.spec.edit.same import same_values
from fleetform.spec.edit.write import FileChanged, create_file, remove_file, replace_file

__all__ = [
    "EditRefused",
    "FileChanged",
    "Layout",
    "add_item",
    "append_document",
    "create_file",
    "read_layout",
    "remove",
    "remove_document",
    "remove_file",
    "rename_key",
    "replace_file",
    "same_values",
    "set_value",
]
