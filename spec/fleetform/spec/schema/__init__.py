"""
JSON Schema of the language, from the models: for editors, for people, and for other programs.

Types come from pydantic, words from the docstrings under the fields, and what a change does
from `fields`. Editors read the files; loading does not, so a schema only has to accept every
valid document and catch what an editor should underline: names, choices, shapes.
"""

from fleetform.spec.schema.docstrings import documentation, examples
from fleetform.spec.schema.files import ALL_KINDS, editor_files, generate, stale, write
from fleetform.spec.schema.models import MODELS

__all__ = [
    "ALL_KINDS",
    "MODELS",
    "documentation",
    "editor_files",
    "examples",
    "generate",
    "stale",
    "write",
]
