"""
One spelling for each value, and its digest.

A digest decides whether something runs again, so this form must never change by itself: not
with the order in which fields are written, not with the hash seed, not with a release of this
program. When it has to change on purpose, `VERSION` changes with it, and the ledger can tell
an old digest from a different document.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

__all__ = ["VERSION", "canonical_json", "digest", "plain_json"]

VERSION = "fleetform-1"


def canonical_json(value: Any) -> str:
    """
    Return `value` as JSON with sorted keys and without spaces.

    Text stays as it is (UTF-8 when encoded), floats are written as `repr` does, which is the
    shortest text that reads back as the same float; `1` and `1.0` stay different, for a
    program that is given one of them can tell.

    Raises:
        ValueError: For NaN and infinities, which `documents` lets nobody declare.
        TypeError: For anything that JSON does not have, keys other than text included.
    """
    _assert_keys_are_text(value)
    return plain_json(value)


def digest(value: Any) -> str:
    """Return the SHA-256 in hex of `VERSION`, a newline, and the canonical JSON of `value`."""
    text = f"{VERSION}\n{canonical_json(value)}"
    # A lone surrogate can come out of a quoted escape ("\ud800"); it must not stop a digest.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


plain_json = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode
"""`canonical_json` without its assertion, for values that have passed it, or were JSON before."""

_NESTED = frozenset({dict, list, tuple})


def _assert_keys_are_text(value: Any) -> None:
    # The encoder would write the key 1 as "1", and two documents would share a digest. By type
    # and not by isinstance, which takes twice as long for the hundred thousand fields of a tree.
    kind = type(value)
    if kind is str or kind is int or value is None:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            if type(key) is not str:
                raise TypeError(f"a key of a canonical document is text, not {key!r}")
            if type(inner) in _NESTED:
                _assert_keys_are_text(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            if type(inner) in _NESTED:
                _assert_keys_are_text(inner)
