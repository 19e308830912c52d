"""
Secret values: keys and passwords in documents.

They may stand there, because files of dstack have them there. But whoever reads the tree reads
them, so each is a warning with a better place; and a canonical document, which plans and the
ledger show, has a digest in their stead: enough to see that a key is another one.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from fleetform.spec.field_facts import SECRET
from fleetform.spec.findings import Level, Problem
from fleetform.spec.kinds.base import Model
from fleetform.spec.secrecy import PASSWORD_IN_ADDRESS

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
