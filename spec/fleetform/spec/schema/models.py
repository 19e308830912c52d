"""
Which models there are, and pydantic's raw schema of each with the names of the models in it.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from fleetform.spec.environment import EnvironmentDocument
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.base import Model

_ENVIRONMENT = "environment"


class _Models(Mapping[str, type[Model]]):
    """Imports a model when it is asked for: to explain one field takes one of forty kinds."""

    def __getitem__(self, name: str) -> type[Model]:
        return EnvironmentDocument if name == _ENVIRONMENT else KINDS[name].model

    def __iter__(self) -> Iterator[str]:
        return iter(sorted([_ENVIRONMENT, *KINDS]))

    def __len__(self) -> int:
        return len(KINDS) + 1

    def __contains__(self, name: object) -> bool:
        return name == _ENVIRONMENT or name in KINDS


MODELS: Mapping[str, type[Model]] = _Models()
"""By what `type:` says, in order of their names."""

MARK = "x-model"
"""The keyword under which a raw schema names the model that it was made from."""


class _Marking(GenerateJsonSchema):
    """Pydantic names a definition by its class alone, and two rooms may have a class of one name."""

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        model = schema["cls"]
        return {**super().model_schema(schema), MARK: f"{model.__module__}:{model.__qualname__}"}


@functools.cache
def raw_schema(kind: str) -> dict[str, Any]:
    """Pydantic's schema of a kind, each object marked with its model. Shared: not to be changed."""
    return MODELS[kind].model_json_schema(mode="validation", schema_generator=_Marking)


def marked_model(schema: Mapping[str, Any]) -> type[Model] | None:
    """The model that an object's schema was made from; None where the schema was written by hand."""
    if MARK not in schema:
        return None
    module, _, name = schema[MARK].partition(":")
    model = getattr(importlib.import_module(module), name)
    assert isinstance(model, type), name
    assert issubclass(model, Model), name
    return model


def shares_run_fields(kind: str) -> bool:
    """Whether documents of this type are runs, in which `${{ … }}` may stand."""
    return kind in KINDS and KINDS[kind].name == "run"
