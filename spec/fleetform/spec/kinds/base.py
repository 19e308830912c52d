"""
What every declared document has, and the scalar types that the kinds are made of.

A model accepts each spelling of the language and holds one meaning; `to_canonical` gives that
meaning as JSON values, of what was set and nothing else. A validator refuses with `refuse`, or
a plain ValueError, in words that are shown to people as they stand.

Attribute docstrings are the fields' documentation, but reading them costs a parse of the source
for each class, some 15 ms in all at every start; so `schema` reads them when it is asked to,
and pydantic's own option stays off. Models build their validators on first use for the same
reason: nested ones are then built once, as a part of their kind's.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from fleetform.spec.field_facts import RECORDED, SECRET, Facts, control, identity, unit
from fleetform.spec.findings import Level, Problem
from fleetform.spec.names import NAME, name_problem
from fleetform.spec.quantities import Cpu, Gpu, Range, cpu_document, gpu_document
from fleetform.spec.quantities.ranges import (
    DIGITS,
    EXPRESSION,
    exact_text,
    parse_count,
    shown,
    unfit,
    whole_text,
)
from fleetform.spec.secrecy import PASSWORD_IN_ADDRESS

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


def refuse(code: str, detail: str, advice: str = "") -> PydanticCustomError:
    """The error a validator raises; `code` is the finding's."""
    # The template has the one placeholder, so that braces in a value are never read as one.
    return PydanticCustomError(code, "{detail}", {"detail": detail, "advice": advice})


def within(error: ValidationError, model: type[Model], type_name: str) -> PydanticCustomError:
    """The errors of a part that a validator reads by another model; reported as the part's own."""
    return PydanticCustomError(
        WITHIN, "a part is wrong", {"error": error, "model": model, "type": type_name}
    )


WITHIN = "within"
"""The type of such an error."""

FORM = "form:"
"""
How the tags of a field with several forms begin. Pydantic puts the tag into the place of an
error, where it is no step of the document.
"""


def not_supported(path: tuple[str | int, ...], detail: str, advice: str = "") -> Problem:
    """A note on what the resource cannot do without: a plan blocks it."""
    return Problem("not-supported", path, detail, advice, level=Level.NOTE, at_key=True)


def no_effect(path: tuple[str | int, ...], detail: str, advice: str = "") -> Problem:
    """A note on what the resource goes on without."""
    return Problem("no-effect", path, detail, advice, level=Level.NOTE, at_key=True)


def contradiction(
    field: str | tuple[str | int, ...],
    detail: str,
    advice: str,
    *,
    for_lack_of: tuple[str, ...] = (),
) -> Problem:
    """An error at the key of a field that does not go with another one."""
    path = (field,) if isinstance(field, str) else field
    return Problem("contradiction", path, detail, advice, at_key=True, for_lack_of=for_lack_of)


def missing(detail: str, advice: str, *fields: str) -> Problem:
    """An error of the document as a whole: it has none of these fields."""
    return Problem("missing-field", (), detail, advice, for_lack_of=fields)


class Refusal(NamedTuple):
    """Why a field that people expect is not there on purpose; `code` is the finding's."""

    code: str
    detail: str
    advice: str = ""


_Entry = TypeVar("_Entry")
Entries = Annotated[list[_Entry], Field(min_length=1)]
"""What a schema says of a list that may not be empty."""

_SCALARS = frozenset({str, int, float, bool})


class Model(BaseModel):
    """A part of a document."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    left_out: ClassVar[frozenset[str]] = frozenset()
    """Fields that belong to the spelling and not to the meaning."""

    refused: ClassVar[Mapping[str, Refusal]] = {}
    """Fields that are missing on purpose, in small letters, and what to do instead."""

    other_facts: ClassVar[Mapping[str, tuple[Facts, ...]]] = {}
    """Facts of paths that no field of the model has: of the canonical form, or of a spelling."""

    def to_canonical(self) -> dict[str, Any]:
        """JSON values of what is set; a null is not set."""
        canonical = {}
        said = self.model_fields_set
        # In the order of the model, not of that set: the order of a document shows in plans.
        for name, value in self.__dict__.items():
            if value is not None and name in said and name not in self.left_out:
                canonical[name] = value if type(value) in _SCALARS else canonical_value(value)
        return canonical


def written_fields(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """A model's fields by the names that documents give them; `from` is a word of Python's."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def models_in(annotation: Any) -> Iterator[type[Model]]:
    """The models anywhere in an annotation, in its order."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def canonical_value(value: Any) -> Any:
    """The JSON value of a field's value."""
    # By type first: nearly all values are scalars, and a tree has a hundred thousand of them.
    if type(value) in _SCALARS or value is None:
        return value
    if isinstance(value, Model):
        return value.to_canonical()
    if isinstance(value, Range):
        return value.document()
    if isinstance(value, Cpu):
        return cpu_document(value)
    if isinstance(value, Gpu):
        document = gpu_document(value)
        # Any of the names will do, so their order says nothing.
        return document | {"name": sorted(document["name"])} if "name" in document else document
    if isinstance(value, Mapping):
        return {key: canonical_value(item) for key, item in value.items()}
    return [canonical_value(item) for item in value]


def text_of(value: Any, what: str) -> str:
    """
    Text where numbers are as good: `{LR: 0.1}` is `{LR: "0.1"}`.

    Truth values are refused: whether a program is to see `true`, `True` or `1` is for whoever
    wrote it to say.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    advice = "Put it in quotes." if isinstance(value, bool) else ""
    raise refuse("wrong-type", f"{what}: {unfit(value, 'text')}", advice)


def storable(value: str) -> str:
    """Text that every ledger can keep, and every program be given."""
    # PostgreSQL refuses it in any text, and execve(2) takes it for the end of one.
    if "\0" in value:
        raise refuse(
            "bad-value",
            "It contains a NUL character, which no ledger on PostgreSQL can keep.",
            "Remove it.",
        )
    return value


def one_or_many(value: Any) -> Any:
    """A list where a single entry may stand alone: `fleets: local`."""
    return [value] if isinstance(value, str | Mapping) else value


def listed(spelled: Any, what: str = "", *, short: str = "") -> tuple[Any, ...]:
    """
    Annotations of a list that is not empty, in which a single entry may stand alone.

    Args:
        spelled: What a schema says of one entry.
        what: What an entry is called, where none may be named twice and their order means nothing.
        short: The field of an entry that a text in its place stands for: `{reason: New disks}`.
    """

    def read(value: Any) -> Any:
        entries = one_or_many(value)
        if not short or not isinstance(entries, list | tuple):
            return entries
        return [{short: item} if isinstance(item, str) else item for item in entries]

    once = (AfterValidator(each_once(what)),) if what else ()
    schema = spelled | Entries[spelled]
    return (Field(min_length=1), BeforeValidator(read, json_schema_input_type=schema), *once)


def add_spellings(schema: dict[str, Any], **names: str) -> None:
    """Add to a model's schema each other name of a field that a validator of the model reads."""
    for spelling, name in names.items():
        field = spelling.rstrip("_")
        schema["properties"][field] = {**schema["properties"][name], "x-same-as": name}


def read_by(
    parse: Callable[[Any], Any], schema: dict[str, Any], unit_name: str = ""
) -> tuple[Any, ...]:
    """Annotations of a value that `parse` reads in each of its spellings, which `schema` describes."""
    units = (unit(unit_name),) if unit_name else ()
    return (PlainValidator(parse), WithJsonSchema(schema), *units)


def each_once(what: str) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """A validator: no entry twice. Gives them sorted, because their order means nothing."""

    def check(values: tuple[Any, ...]) -> tuple[Any, ...]:
        ordered = tuple(sorted(values))
        for one, next_one in itertools.pairwise(ordered):
            if one == next_one:
                raise refuse("said-twice", f"The {what} {shown(one)} is named twice.")
        return ordered

    return check


def _check_name(value: str) -> str:
    problem = name_problem(value)
    if problem is not None:
        raise refuse("bad-name", problem)
    return value


def _tags(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise refuse("wrong-type", str(unfit(value, "a mapping, such as `{team: vision}`")))
    for key in value:
        if not re.fullmatch(r"[_\-a-zA-Z0-9]{1,60}", key, re.ASCII):
            raise refuse(
                "bad-tag",
                f"{shown(key)} cannot be a tag's name.",
                "Use 1 to 60 letters, digits, `-` and `_`.",
            )
    return {key: _tag_value(key, item) for key, item in value.items()}


# As long as a tag's value may be on AWS, and in dstack.
_TAG_LENGTH_MAX = 256


def _tag_value(key: str, value: Any) -> str:
    text = storable(text_of(value, f"The tag `{key}`"))
    if len(text) > _TAG_LENGTH_MAX:
        raise refuse(
            "bad-tag",
            f"The tag `{key}` has {len(text)} characters; it may have {_TAG_LENGTH_MAX}.",
            "Put long texts into `description`.",
        )
    return text


# An expression is resolved before the name is checked.
NAME_PATTERN = rf"{exact_text(NAME.pattern)}|{EXPRESSION}"

Name = Annotated[
    str,
    AfterValidator(_check_name),
    WithJsonSchema({"type": "string", "pattern": NAME_PATTERN}),
]
Whole = Annotated[
    int,
    BeforeValidator(
        parse_count,
        json_schema_input_type=Annotated[int, Field(ge=0)]
        | Annotated[str, Field(pattern=whole_text(DIGITS))],
    ),
]
Flag = Annotated[bool, Field(strict=True)]
Tags = Annotated[
    dict[str, str],
    BeforeValidator(
        _tags,
        json_schema_input_type=dict[
            Annotated[str, Field(pattern=r"^[-_a-zA-Z0-9]{1,60}$")],
            Annotated[str, Field(max_length=_TAG_LENGTH_MAX)] | int | float,
        ],
    ),
]


class Document(Model):
    """The fields of every declared document."""

    left_out: ClassVar[frozenset[str]] = frozenset({"type", "name"})

    leading: ClassVar[tuple[str, ...]] = ()
    """Fields that are written before the others, which read better once these are known."""

    name: Annotated[Name, identity()]
    """
    The name of the resource: 2 to 41 lower-case letters, digits and `-`, beginning with a letter. A
    document with another name declares another resource. Example: `train-llama`.
    """

    description: Annotated[str, AfterValidator(storable), RECORDED] | None = None
    """
    A description for people. It changes nothing. Example: `Nightly evaluation of the last
    checkpoint`.
    """

    tags: Annotated[Tags | None, control("store")] = None
    """
    Labels by which people and commands find and group resources. Keys have up to 60 letters,
    digits, `-` and `_`, values up to 256 characters. Example: `{team: vision, cost-center: "42"}`.
    """

    protect: Annotated[Flag | None, control("plan")] = None
    """
    Whether every plan that would delete, replace or end the resource is blocked. Removing the
    protection is a change of its own, so the resource can be deleted by the next plan at the
    earliest. Default: `false`. Example: `true`.
    """

    ignore: Annotated[tuple[str, ...], *listed(str), control("plan")] | None = None
    """
    Paths of fields whose changes are ignored: the resource keeps its current values, also when it
    is created again. `*` matches any text within one step of a path. Example: `[resources.memory,
    env.AWS_*]`.
    """

    initial: Annotated[tuple[str, ...], *listed(str), control("plan")] | None = None
    """
    Paths of fields that apply only when the resource is created or the run re-runs. A change of
    these fields alone changes nothing. Example: `[env.SEED]`.
    """

    def problems(self) -> Iterator[Problem]:
        """What is wrong between fields that are each right; a kind adds its own."""
        if self.ignore or self.initial:
            # Few documents say it, and looking through models takes longer than reading one.
            from fleetform.spec.kinds import ignore_changes

            yield from ignore_changes.problems(type(self), self.ignore or (), self.initial or ())

    def whole(self) -> Problem | None:
        """
        That nothing carries out the document as a whole, where it depends on what it says: a
        fleet in a cloud, a volume there. Told once, instead of each of its fields.
        """
        return None

    def beyond(self) -> Iterator[Problem]:
        """
        Values that nothing carries out yet, where the field as such is carried out.

        Notes, made with `not_supported` or `no_effect`. Whole fields are told by their rows in
        `fields`.
        """
        yield from ()


# Secret values: keys and passwords in documents.
#
# They may stand there, because files of dstack have them there. But whoever reads the tree reads
# them, so each is a warning with a better place; and a canonical document, which plans and the
# ledger show, has a digest in their stead: enough to see that a key is another one.

# A reference, or what a template has where the value belongs.
_HARMLESS = re.compile(r"\s*(\$\{\{.*\}\}|<[^<>]*>)\s*", re.DOTALL)

Path = tuple[str | int, ...]


class Guarded(Model):
    """A part of a document with fields that are not to be shown."""

    @classmethod
    def guarded(cls) -> frozenset[str]:
        """The fields whose text is a secret."""
        return _guarded(cls)

    def to_canonical(self) -> dict[str, Any]:
        return {
            name: _sealed(value) if name in self.guarded() else value
            for name, value in super().to_canonical().items()
        }

    def in_clear(self) -> list[str]:
        """The fields that have their secret itself, and no reference to it."""
        return sorted(
            name
            for name in self.guarded()
            if isinstance(value := getattr(self, name), str) and not _HARMLESS.fullmatch(value)
        )


@functools.cache
def _guarded(model: type[Guarded]) -> frozenset[str]:
    return frozenset(name for name, field in model.model_fields.items() if SECRET in field.metadata)


def sealed_address(address: str) -> str:
    """The address with a digest in the stead of a password in it."""
    return PASSWORD_IN_ADDRESS.sub(_sealed_part, address)


def _sealed_part(found: re.Match[str]) -> str:
    start, end = (place - found.start() for place in found.span("password"))
    return f"{found[0][:start]}{_sealed(found['password'])}{found[0][end:]}"


def warn_in_clear(parts: Iterable[tuple[Path, Guarded | None]], advice: str) -> Iterator[Problem]:
    """
    A warning for each secret that stands in a document.

    It points to what the secret is in, since a finding quotes the line that it points to.
    """
    for path, part in parts:
        for name in part.in_clear() if part else ():
            yield Problem(
                "secret-in-clear",
                path,
                f"`{name}` is in plaintext: everyone who can read the configuration or its history can read it.",
                advice,
                level=Level.WARNING,
                at_key=True,
            )


def _sealed(text: str) -> str:
    if _HARMLESS.fullmatch(text):
        return text
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
