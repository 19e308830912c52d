"""
A backend: a cloud or a cluster that hosts can be had from, and how it is reached.

Its `type:` is the cloud's, and its name too unless it says one. Keys may stand in the document,
since files of dstack have them there; `credentials` says what becomes of them.

Types that differ in nothing but their fields are tables of `backends.toml`, and models are built
from it. A type with rules of its own, as `kubernetes` and `slurm`, has a class.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, create_model, model_validator

from fleetform.spec.field_facts import SECRET, Facts, control, identity
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Document, Flag, Model, Name
from fleetform.spec.kinds.credentials import Guarded, warn_in_clear
from fleetform.spec.kinds.offers import Text, Texts


class With(NamedTuple):
    """The type of credentials that requires a field, and that alone may have it."""

    type: str


class Credentials(Guarded):
    """The credentials for a backend; `type` decides which fields are required."""

    def problems(self) -> Iterator[Problem]:
        """What is missing or too much for the type; paths begin below `creds`."""
        chosen = str(getattr(self, "type", ""))
        for name, field in type(self).model_fields.items():
            needed_by = [one.type for one in field.metadata if isinstance(one, With)]
            is_set = getattr(self, name) is not None
            if chosen in needed_by and not is_set:
                yield Problem(
                    "missing-field",
                    (),
                    f"Credentials of the type `{chosen}` have `{name}`, which is missing.",
                    f"Add `{name}: ${{{{ secrets.NAME }}}}`."
                    if name in self.guarded()
                    else f"Add `{name}:`.",
                    at_key=True,
                )
            elif needed_by and chosen not in needed_by and is_set:
                yield Problem(
                    "contradiction",
                    (name,),
                    f"`{name}` does not go with credentials of the type `{chosen}`.",
                    "Remove it, or choose the type that it goes with.",
                    at_key=True,
                )


class Backend(Document):
    """A cloud or cluster that provides hosts."""

    type: str
    """The type of the cloud or cluster. Example: `aws`."""

    # Nothing is nobody's name; a schema would show it as the default.
    name: Annotated[
        Name, Field(json_schema_extra=lambda schema: schema.pop("default", None)), identity()
    ] = ""
    """
    The name of the backend. A document with another name declares another backend. Default: the
    type. Example: `aws-research`.
    """

    region: Annotated[Text | None, control()] = None
    """One region, in place of `regions`. Example: `eu-west-1`."""

    regions: Annotated[Texts | None, control()] = None
    """
    The regions in which hosts may be created. Default: all regions. Example: `[eu-west-1,
    us-east-1]`.
    """

    left_out: ClassVar[frozenset[str]] = Document.left_out | {"region"}
    leading: ClassVar[tuple[str, ...]] = ("region", "regions", "creds")

    @model_validator(mode="after")
    def _named_by_type(self) -> Self:
        if not self.name:
            # Not said, so that it stands in no set of said fields; frozen is for everybody else.
            self.__dict__["name"] = self.type
        return self

    def to_canonical(self) -> dict[str, Any]:
        # The name may be any, so that it does not tell the type as that of other kinds does.
        canonical = {"type": self.type, **super().to_canonical()}
        if self.region is not None:
            canonical["regions"] = sorted({self.region, *canonical.get("regions", ())})
        return canonical

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.region is not None and self.regions is not None:
            yield Problem(
                "said-twice",
                ("region",),
                "`region` and `regions` are the same field.",
                "Keep `regions`.",
                at_key=True,
            )
        creds = self.credentials
        if creds is not None:
            for problem in creds.problems():
                yield problem.below("creds")
        yield from warn_in_clear(
            self.guarded_parts(),
            "Declare a `type: secret`, and write `${{ secrets.NAME }}` here.",
        )

    @property
    def credentials(self) -> Credentials | None:
        """Its `creds`, if it has such a field and says it."""
        creds = getattr(self, "creds", None)
        return creds if isinstance(creds, Credentials) else None

    def guarded_parts(self) -> Iterator[tuple[tuple[str | int, ...], Guarded | None]]:
        """The parts that may have a secret, with where they stand."""
        yield ("creds",), self.credentials


_TABLE = Path(__file__).with_name("backends.toml")
_BASES: Mapping[str, type[Model]] = {"Backend": Backend, "Credentials": Credentials, "Model": Model}
_TYPES: Mapping[str, Any] = {"text": Text, "texts": Texts, "flag": Flag, "by-key": dict[str, str]}


def __getattr__(name: str) -> type[Model]:
    """A model of the table, by its name or by what `type:` says; built when it is first needed."""
    for table, row in _rows().items():
        if name == table or name in row.get("types", ()):
            return _model(table)
    raise AttributeError(name)


@functools.cache
def _rows() -> dict[str, Any]:
    # Few configurations declare a backend, and each start would pay for the import.
    import tomllib

    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


@functools.cache
def _model(name: str) -> type[Model]:
    if name in _BASES:
        return _BASES[name]
    row = _rows()[name]
    base_name = row.get("base", "Backend")
    base = _model(base_name)
    about, types = row["about"], tuple(row.get("types", ()))
    fields: dict[str, Any] = {}
    if types:
        example = row.get("example") or _rows()[base_name]["example"]
        example = example.replace("TYPE", types[0])
        about = f"{about}\n\nExample:\n{textwrap.indent(example, '    ')}"
        names = ", or its former name ".join(f"`{one}`" for one in types)
        kind = Field(description=f"The kind of the document: {names}.")
        fields["type"] = Annotated[Literal[types], kind]
    facts = [control()] if issubclass(base, Backend) else []
    for field, said in row.get("fields", {}).items():
        fields[field] = _field(said, facts)
    return create_model(name, __base__=base, __module__=__name__, __doc__=about, **fields)


def _field(said: Mapping[str, Any], facts: Sequence[Facts]) -> Any:
    """A field of a model, as `create_model` takes it."""
    written = said.get("type", "text")
    read = Literal[tuple(written)] if isinstance(written, list) else _TYPES.get(written)
    read = _model(written) if read is None else read
    notes = [*facts, Field(description=" ".join(said["text"].split()))]
    if said.get("secret"):
        notes.append(SECRET)
    if "with" in said:
        notes.append(With(said["with"]))
    if said.get("required"):
        return Annotated[read, *notes]
    return (Annotated[read | None, *notes], None)
