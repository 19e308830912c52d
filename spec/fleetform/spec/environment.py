"""
`environment.yaml`: which environment a tree is, and what it allows without asking twice.

Without it nothing can be planned: every resource belongs to the environment's uid, and a tree
that does not say whose it is could delete what belongs to another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from fleetform.spec.bounds import PATCHES_MAX
from fleetform.spec.kinds.base import Flag, Model, Name, Whole, refuse
from fleetform.spec.names import EXPRESSION_MARK, is_uid
from fleetform.spec.quantities.ranges import shown, unfit

Scalar = str | int | float | bool

# What `interpolate` reads behind `values.`.
_VALUE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)


def _check_uid(value: str | None, info: ValidationInfo) -> str | None:
    is_abstract = info.data.get("abstract", False)
    if value is None:
        if is_abstract:
            return None
        raise refuse(
            "missing-field",
            "`uid` is missing.",
            "Run `fleetform init`, which writes one; it is committed and never changed. A base that"
            " is never applied itself says `abstract: true` instead.",
        )
    if is_abstract:
        raise refuse(
            "contradiction",
            "An abstract environment has no uid: nothing is ever made for it.",
            "Remove one of the two.",
        )
    if is_uid(value):
        return value
    raise refuse(
        "bad-uid",
        f"{shown(value)} cannot be an environment's uid.",
        "It is written by `fleetform init`, and never changed: 4 to 64 lower-case letters, digits and dashes.",
    )


def _values(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise refuse("wrong-type", str(unfit(value, "a mapping, such as `{bucket: s3://lab}`")))
    for name, item in value.items():
        if not _VALUE_NAME.fullmatch(name):
            raise refuse(
                "bad-name",
                f"{shown(name)} cannot be the name of a value.",
                "Use letters, digits, `_` and `-`, with a letter or `_` in front.",
            )
        if not isinstance(item, Scalar):
            raise refuse(
                "wrong-type",
                f"The value `{name}`: {unfit(item, 'text, a number or a truth value')}",
            )
        if isinstance(item, str) and EXPRESSION_MARK in item:
            raise refuse(
                "bad-value",
                f"The value `{name}` is filled in as it stands, and `{EXPRESSION_MARK}` in it would"
                " not be.",
                "Write the expression where the value is used, beside it.",
            )
    return value


def _target(value: str) -> str:
    kind, slash, name = value.partition("/")
    if kind and slash and name:
        return value
    raise refuse(
        "bad-value",
        f"{shown(value)} does not say which documents it means.",
        "Write kind and name: `run/train`, `fleet/gpu-*`.",
    )


def _steps(value: Any) -> Any:
    # What a step says is read where its place is known (`overlay.operations`).
    if isinstance(value, list) and value:
        return tuple(value)
    raise refuse(
        "bad-patch",
        "A patch is a list of steps.",
        "Write `[{op: replace, path: /nodes, value: 2}]`.",
    )


_STEPS_SCHEMA: dict[str, Any] = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            "op": {
                "description": "What the step does. `add`: set a field, or insert into a list."
                " `remove`: take a value away. `replace`: put another in its place. `move`: take it"
                " from elsewhere. `copy`: take the same as elsewhere. `test`: fail where something"
                " else stands.",
                "enum": ["add", "remove", "replace", "move", "copy", "test"],
            },
            "path": {"description": "Where: `/commands/0`, `/env/LR`.", "type": "string"},
            "from": {"description": "From where, of `move` and `copy`.", "type": "string"},
            "value": {"description": "What, of `add`, `replace` and `test`."},
        },
        "required": ["op", "path"],
        "additionalProperties": False,
    },
}


class PatchDocument(Model):
    """A change of documents that a base or this tree declares: exactly one way to change them."""

    target: Annotated[str, AfterValidator(_target)]
    """
    Which documents: kind and name, `*` for any letters. Instead of the kind, a `type:` may stand.
    Example: `run/train`, `fleet/gpu-*`.
    """

    merge: dict[str, Any] | None = None
    """
    Fields that replace the document's: mappings are merged, null removes a field, a list is
    replaced as a whole (RFC 7386); variables of `env` are merged by name.
    Example: `{nodes: 4, resources: {gpu: H100:8}}`.
    """

    patch: (
        Annotated[
            tuple[dict[str, Any], ...],
            BeforeValidator(_steps),
            WithJsonSchema(_STEPS_SCHEMA),
        ]
        | None
    ) = None
    """
    Steps that are carried out in order, all or none: `add`, `remove`, `replace`, `move`, `copy`
    and `test` (RFC 6902). Example: `[{op: add, path: /commands/-, value: sync}]`.
    """

    file: Annotated[str, Field(min_length=1)] | None = None
    """
    A file of this tree that holds the merge (a mapping) or the steps (a list). It is not read as
    a document. Example: `patches/train.yaml`.
    """

    delete: Literal[True] | None = None
    """Leave the documents out. Example: `true`."""

    @model_validator(mode="after")
    def _check_one_way(self) -> Self:
        ways = [
            name for name in ("merge", "patch", "file", "delete") if getattr(self, name) is not None
        ]
        if len(ways) == 1:
            return self
        said = " and ".join(f"`{way}`" for way in ways) or "nothing"
        raise refuse(
            "bad-patch",
            f"The entry says {said}, and changes its target in exactly one way.",
            "Write one of `merge`, `patch`, `file`, `delete`; further ones in entries of their own.",
        )


def _few(value: tuple[PatchDocument, ...]) -> tuple[PatchDocument, ...]:
    if len(value) <= PATCHES_MAX:
        return value
    raise refuse(
        "bad-value",
        f"There are {len(value)} patches, and {PATCHES_MAX} are carried out at most.",
        "Write what many documents have in common into one patch, or into a profile.",
    )


class RulesDocument(Model):
    """What the environment allows without asking twice."""

    allow_destroy: Flag | None = None
    """Whether deleting and ending running work need no flag. Example: `true`."""

    delete_percent: Annotated[Whole, Field(ge=0, le=100)] | None = None
    """The largest part of a kind's resources that one plan may delete, in percent. Example: `10`."""

    delete_count: Annotated[Whole, Field(ge=0)] | None = None
    """The same as a number; the larger of the two holds. Example: `5`."""


class EnvironmentDocument(Model):
    """
    Which environment this tree is.

    Example:
        type: environment
        name: local
        uid: 0b2f6a0e-54c5-4a8e-8f0c-5d3f2f1c9a77
    """

    type: Literal["environment"]
    """The kind of the document: `environment`."""

    name: Name
    """What people call it. Example: `local`."""

    abstract: Flag | None = None
    """
    Whether this is a base only: others extend it, it has no uid, and nothing can be planned for
    it. Example: `false`.
    """

    uid: Annotated[str | None, Field(validate_default=True), AfterValidator(_check_uid)] = None
    """
    What everything made for it is marked with. Written by `fleetform init`, committed, never
    changed: another uid is another environment. Example: `0b2f6a0e-54c5-4a8e-8f0c-5d3f2f1c9a77`.
    """

    rules: RulesDocument | None = None
    """What is allowed without asking twice. Example: `{allow_destroy: true}`."""

    extends: Annotated[str, Field(min_length=1)] | None = None
    """
    The folder of a base, relative to this one and in the same repository: its documents belong
    to this environment too, as do its `rules`, `values` and patches. Example: `../base`.
    """

    values: (
        Annotated[
            dict[str, Scalar],
            BeforeValidator(_values, json_schema_input_type=dict[str, Scalar]),
        ]
        | None
    ) = None
    """
    What `${{ values.NAME }}` stands for in documents, the base's included. A value said here wins
    over the base's. Example: `{bucket: s3://lab, epochs: 20}`.
    """

    patches: Annotated[tuple[PatchDocument, ...], AfterValidator(_few)] | None = None
    """
    Changes of the base's documents and of this tree's, in order; one that matches nothing is an
    error. Example: `[{target: run/train, merge: {nodes: 4}}]`.
    """
