"""
A backend: a cloud or a cluster that hosts can be had from, and how it is reached.

Its `type:` is the cloud's, and its name too unless it says one. Keys may stand in the document,
since files of dstack have them there; `credentials` says what becomes of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from fleetform.spec.field_facts import SECRET, control, identity
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Document, Name
from fleetform.spec.kinds.credentials import Guarded, warn_in_clear
from fleetform.spec.kinds.offers import Text, Texts


class Credentials(Guarded):
    """The credentials for a backend; `type` decides which fields are required."""

    needed: ClassVar[dict[str, tuple[str, ...]]] = {}
    """By what `type:` says: the fields that go with it, any others of them in no other."""

    def problems(self) -> Iterator[Problem]:
        """What is missing or too much for the type; paths begin below `creds`."""
        chosen = str(getattr(self, "type", ""))
        here = self.needed.get(chosen, ())
        for name in here:
            if getattr(self, name) is None:
                yield Problem(
                    "missing-field",
                    (),
                    f"Credentials of the type `{chosen}` have `{name}`, which is missing.",
                    f"Add `{name}: ${{{{ secrets.NAME }}}}`."
                    if name in self.guarded()
                    else f"Add `{name}:`.",
                    at_key=True,
                )
        others = {name for names in self.needed.values() for name in names} - set(here)
        for name in sorted(others):
            if getattr(self, name) is not None:
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


class KeyCredentials(Credentials):
    """An API key."""

    type: Literal["api_key"]
    """The type of the credentials. `api_key`: an API key. Example: `api_key`."""

    api_key: Annotated[Text, SECRET]
    """The API key, as a reference to a secret. Example: `${{ secrets.lambda_key }}`."""


class PairCredentials(Credentials):
    """An access key and its secret."""

    type: Literal["access_key"]
    """
    The type of the credentials. `access_key`: an access key and its secret. Example: `access_key`.
    """

    access_key: Text
    """The id of the access key. Example: `AKIAIOSFODNN7EXAMPLE`."""

    secret_key: Annotated[Text, SECRET]
    """
    The secret of the access key, as a reference to a secret. Example: `${{ secrets.crusoe_key }}`.
    """
