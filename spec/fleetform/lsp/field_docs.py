"""
What a field is, from the docstring in its model.

The schema says the same to editors that read it. This is for those where only this server runs,
so it costs little: a model's source is parsed once, when somebody first asks.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Sequence
from typing import Any

from fleetform.spec import fields
from fleetform.spec.environment import EnvironmentDocument
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.base import Model, written_fields
from fleetform.spec.schema.docstrings import documentation, words
from fleetform.spec.schema.wording import change_sentence, unbuilt_sentence

__all__ = ["field_doc"]


def field_doc(type_name: str, path: Sequence[str | int]) -> str:
    """The words about a field of a document, and what a change of it does; empty if unknown."""
    if type_name == "environment":
        model: type[Model] = EnvironmentDocument
    elif type_name in KINDS:
        model = KINDS[type_name].model
    else:
        return ""
    names = [step for step in path if isinstance(step, str)]
    if not names:
        return ""
    candidates: list[type[Model]] = [model]
    for name in names[:-1]:
        fields_of = [written_fields(one) for one in candidates]
        annotations = [one[name].annotation for one in fields_of if name in one]
        candidates = [found for one in annotations for found in _models(one)]
    owner = next((one for one in candidates if names[-1] in written_fields(one)), None)
    text = documentation(owner).get(names[-1], "") if owner else ""
    if not text:
        return ""
    dotted = ".".join(names)
    sentences = (
        words(text).whole,
        unbuilt_sentence(type_name, dotted),
        f"_{change_sentence(fields.row(type_name, dotted))}_",
    )
    return "\n\n".join(sentence for sentence in sentences if sentence)


def _models(annotation: Any) -> Iterator[type[Model]]:
    """The models anywhere in an annotation, in its order."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from _models(argument)
