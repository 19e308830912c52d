"""
JSON Schema of the language, from the models: for editors, for people, and for other programs.

Types come from pydantic, words from the docstrings under the fields, and what a change does
from `fields`. Editors read the files; loading does not. A schema accepts every valid document,
and refuses what JSON Schema can express: names, choices, amounts, shapes.
"""

from fleetform.spec.schema.files import ALL_KINDS, editor_files, generate
from fleetform.spec.schema.models import MODELS
from fleetform.spec.schema.wording import documentation, examples

__all__ = [
    "ALL_KINDS",
    "MODELS",
    "documentation",
    "editor_files",
    "examples",
    "generate",
]
