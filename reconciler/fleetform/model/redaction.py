"""
Versions in place of values that are not shown; equal values have equal versions.

A version is the HMAC-SHA256 of the value under the environment's uid, cut to twelve digits. It
tells that a password is another one and nothing else. Two environments with one password have two
versions.

Who can do what. Whoever has the uid can try words at a version, and finds a weak secret within
minutes. The uid is in `environment.yaml`, in the ledger and in the marks that lie on hosts. Who
reads the tree reads the secrets of its documents anyway; who reads it after a secret has left it,
and has a plan from before, can try words. Who has only what is shown can do neither: plans, in all
their forms, the answers of the API and sentences that name an environment bear its fingerprint or
the first eight digits of its uid, of which no key is made. The digests of a plan and of a resource
that are shown would let words be tried as well, so the uid is in them too.

What is not covered: folders of the state, and a schema on PostgreSQL, are called by the uid. So a
sentence about such a path has it: where a ledger cannot be read, where a step on a volume with a
relative path fails, where such a volume was found elsewhere. Commits and `tree_digest` are over
whole files, of which who knows all the rest could try the rest.

A file of `plan --out` has the values in the steps that it carries out, for the job is given what
its author wrote. It is its owner's alone, and what was there before is sealed in it as well.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fleetform.spec.fields import is_sensitive, sensitive_tops
from fleetform.spec.names import scalar_text
from fleetform.spec.secrecy import PASSWORD_IN_ADDRESS

__all__ = ["SEALED_MARK", "Seal", "fingerprint", "sensitive_part"]


SEALED_MARK = "sensitive:"

# A name of a secret is none: `${{ secrets.ngc_api_key }}`.
_REFERENCE = re.compile(r"\s*\$\{\{[^{}]*\}\}\s*", re.ASCII)

_DIGITS = 12
"""Of 64: as many as name a commit; that two values share them is one chance in 2**48."""

_VERSION = re.compile(rf"{SEALED_MARK}[0-9a-f]{{{_DIGITS}}}(?![0-9a-f])", re.ASCII)


class Seal:
    """One environment's way of writing versions."""

    def __init__(self, environment_uid: str) -> None:
        # Copied for each value: of ten thousand tasks each has variables, and one key.
        self._keyed = hmac.new(environment_uid.encode(), None, hashlib.sha256)

    def version(self, value: str) -> str:
        """
        The version of a value; a reference to a secret stays.

        Of a version as well: by its form nobody can tell one from what a person wrote so. Whoever
        seals knows what was sealed before.
        """
        if _REFERENCE.fullmatch(value):
            return value
        return f"{SEALED_MARK}{self._digits(value)[:_DIGITS]}"

    def digest(self, digest: str) -> str:
        """
        What is shown in the stead of a digest over values that are not: equal where it is.

        Returns:
            32 hex digits, or no text of no text.
        """
        return self._digits(f"digest\0{digest}")[:32] if digest else ""

    def _digits(self, text: str) -> str:
        keyed = self._keyed.copy()
        keyed.update(text.encode("utf-8", "surrogatepass"))
        return keyed.hexdigest()

    def value(self, kind: str, path: str, value: Any) -> Any:
        """
        The value as it may be shown: the same object where nothing in it is sensitive.

        Args:
            kind: The resource's kind, for what is known of its fields.
            path: As in `FieldChange.path`; empty for a whole document.
            value: JSON value.
        """
        # Most of ten thousand documents have nothing to seal: nothing is made for those.
        if not _may_hold(kind, path, value):
            return value
        if isinstance(value, str):
            return self._text(kind, path, value)
        # A parameter that could be a number is one, whatever it is called.
        if isinstance(value, int | float) and path.startswith("matrix."):
            return self.version(scalar_text(value)) if is_sensitive(kind, path) else value
        if isinstance(value, Mapping):
            shown = {name: self.value(kind, _below(path, name), value[name]) for name in value}
            return shown if any(shown[name] is not value[name] for name in value) else value
        if isinstance(value, list | tuple):
            items = [self.value(kind, path, item) for item in value]
            return (
                items
                if any(new is not old for new, old in zip(items, value, strict=True))
                else value
            )
        return value

    def _text(self, kind: str, path: str, value: str) -> str:
        if not value:
            return value
        if is_sensitive(kind, path):
            return self.version(value)
        # Nearly no value has both: that is faster than the expression.
        if "@" in value and "://" in value:
            return PASSWORD_IN_ADDRESS.sub(self._password, value)
        return value

    def _password(self, found: re.Match[str]) -> str:
        start, end = found.span("password")
        whole, offset = found[0], found.start()
        version = self.version(found["password"])
        return f"{whole[: start - offset]}{version}{whole[end - offset :]}"


def _may_hold(kind: str, path: str, value: Any) -> bool:
    """Tell whether there may be something to seal, without looking at which field it would be."""
    if not path and isinstance(value, Mapping):
        tops = sensitive_tops(kind)
        return any(name in tops or _has_address(value[name]) for name in value)
    return _is_in_sensitive(kind, path) or _has_address(value)


@lru_cache(maxsize=4096)  # A hundred thousand documents of a kind have the same few fields.
def _is_in_sensitive(kind: str, path: str) -> bool:
    return path.partition(".")[0].partition("[")[0] in sensitive_tops(kind)


def _has_address(value: Any) -> bool:
    if isinstance(value, str):
        return "@" in value and "://" in value
    # Before the map, of which it takes longest to say that a number is none.
    if value is None or isinstance(value, int | float):
        return False
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 -- a dict is told at once
        return any(map(_has_address, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_address, value))
    return False


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def sensitive_part(value: Any) -> Any:
    """
    Say which parts of a sealed value have versions: `{"env": {"HF_TOKEN": True}}`, True, or {}.

    By their form: it is for those who read a plan, and hides nothing from them.

    Lists keep their places up to the last such item, so that a part is found where it is.
    """
    if isinstance(value, str):
        return True if SEALED_MARK in value and _VERSION.search(value) else {}
    if isinstance(value, Mapping):
        found = {name: sensitive_part(inner) for name, inner in value.items()}
        return {name: inner for name, inner in found.items() if inner}
    if isinstance(value, list | tuple):
        items = [sensitive_part(item) for item in value]
        while items and not items[-1]:
            items.pop()
        return items or {}
    return {}


# What stands for an environment where its uid must not be shown, since that is a key (`redaction`).
# A fingerprint where programs compare, and the beginning of the uid where people are to find out
# whose something is: they have the names of their environments, and look for those digits there.

_DOMAIN = b"fleetform environment\0"
"""So that it is no digest of a uid that stands anywhere else."""


def fingerprint(environment_uid: str) -> str:
    """
    Give 32 hex digits, from which the uid cannot be found; no text for no uid.

    Two plans are of one environment when it is the same.
    """
    if not environment_uid:
        return ""
    return hashlib.sha256(_DOMAIN + environment_uid.encode()).hexdigest()[:32]
