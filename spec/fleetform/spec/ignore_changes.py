"""
A declaration with some of its fields ignored: their values stay as they are.

`ignore:` names fields that keep the value they have, whatever is declared. `initial:` names fields
that count when something is made, or run, and not between: a difference of them alone changes
nothing. Both count as declared for what is not there yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from fleetform.spec.desired import Declared
from fleetform.spec.renaming import digests_of

__all__ = ["kept_values", "overlook", "overlooks"]


def overlooks(declared: Declared) -> bool:
    """Whether any of its fields may keep another value than the declared one."""
    return "ignore" in declared.document or "initial" in declared.document


def overlook(
    declared: Declared, document: str, digest: str, own_digest: str, *, making: bool = False
) -> Declared:
    """
    The declaration with the values that stay.

    Args:
        declared: What the tree says.
        document: Last applied, as JSON.
        digest: Of that; empty: it was never made in whole, and everything counts.
        own_digest: Of what that document said itself.
        making: It is made anew, or runs again: `initial:` counts.
    """
    said = declared.document
    paths = [*said.get("ignore", ()), *(() if making else said.get("initial", ()))]
    if not paths or not digest:
        return declared
    kept = kept_values(said, json.loads(document), paths)
    if kept == said:
        return declared
    whole, execution = digests_of(declared.key.kind, kept)
    inherits = declared.own_digest != declared.digest or own_digest != digest
    return replace(
        declared,
        document=kept,
        digest=whole,
        execution_digest=execution,
        # What it says itself cannot be told from what it inherits here, and a value that does not
        # count must never be why something runs again.
        own_digest=own_digest if inherits else whole,
    )


def kept_values(
    declared: Mapping[str, Any], there: Mapping[str, Any], paths: Iterable[str]
) -> dict[str, Any]:
    """The declared document with the values last applied at the paths."""
    kept = dict(declared)
    for path in paths:
        kept = _kept(kept, there, path.split("."))
    return kept


def _kept(
    declared: Mapping[str, Any], there: Mapping[str, Any], steps: list[str]
) -> dict[str, Any]:
    step, *below = steps
    kept = dict(declared)
    for name in dict.fromkeys((*declared, *there)):
        if not fnmatchcase(name, step):
            continue
        if not below:
            if name in there:
                kept[name] = there[name]
            else:
                kept.pop(name, None)
            continue
        inner, old = kept.get(name, {}), there.get(name, {})
        if isinstance(inner, Mapping) and isinstance(old, Mapping):
            merged = _kept(inner, old, below)
            if merged:
                kept[name] = merged
            else:
                kept.pop(name, None)
    return kept
