"""
Which environment a tree is, read without the models.

`ps`, `logs` and `why` need `environment.yaml` and nothing else of the language, and importing
pydantic and the kinds took two thirds of their time. So a document that is right and plain is
read here. Of any other this says nothing: `environment` judges it, and what is wrong is told in
one place. A test holds that both read the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from fleetform.spec.bounds import PATCHES_MAX, REASON_MAX, WINDOWS_MAX
from fleetform.spec.desired import Environment, Rules
from fleetform.spec.kinds import ADOPTABLE, RELEASABLE
from fleetform.spec.names import EXPRESSION_MARK, NAME, is_uid, name_problem

__all__ = ["plain_environment"]

_FIELDS = frozenset(
    {"type", "name", "uid", "rules", "extends", "values", "patches", "moved", "removed", "import"}
)
# An element's address has spellings, which the models know.
_ADDRESS = re.compile(rf"(?P<kind>{'|'.join(RELEASABLE)})/{NAME.pattern}")
_VALUE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_RULES: Mapping[str, Callable[[Any], bool]] = {
    # By type: a boolean is an int to isinstance, and not a count.
    "allow_destroy": lambda value: type(value) is bool,
    "delete_percent": lambda value: type(value) is int and 0 <= value <= 100,
    "delete_count": lambda value: type(value) is int and value >= 0,
    # What has been read of it, or None.
    "freeze": lambda value: type(value) is list,
}
_WAYS: Mapping[str, Callable[[Any], bool]] = {
    "merge": lambda value: type(value) is dict,
    "patch": lambda value: (
        type(value) is list and value != [] and all(type(step) is dict for step in value)
    ),
    "file": lambda value: type(value) is str and value != "",
    "delete": lambda value: value is True,
}


def plain_environment(value: object) -> Environment | None:
    """
    The environment that a document's plain value describes, as `EnvironmentDocument` reads it.

    Of what it inherits nothing is known here: `rules` are those that it says itself.

    Returns:
        None for whatever this cannot vouch for, right or wrong.
    """
    if not isinstance(value, dict) or not value.keys() <= _FIELDS:
        return None
    name, uid = value.get("name"), value.get("uid")
    if value.get("type") != "environment" or not isinstance(name, str) or not isinstance(uid, str):
        return None
    if name_problem(name) is not None or not is_uid(uid) or not _inherits_plainly(value):
        return None
    if not _names_plainly(value):
        return None
    rules = _plain_rules(value.get("rules", {}))
    return None if rules is None else Environment(name, uid, rules)


def _inherits_plainly(value: Mapping[str, Any]) -> bool:
    """Whether what the document says of bases, values and patches is right beyond doubt."""
    base, values, patches = value.get("extends", "."), value.get("values", {}), value.get("patches")
    return (
        isinstance(base, str)
        and base != ""
        and isinstance(values, dict)
        and all(_VALUE_NAME.fullmatch(name) for name in values)
        and all(map(_is_plain_value, values.values()))
        and (patches is None or _are_plain_patches(patches))
    )


def _names_plainly(value: Mapping[str, Any]) -> bool:
    """Whether what it says of single resources is right by itself beyond doubt."""
    moved, removed, imports = (value.get(name) for name in ("moved", "removed", "import"))
    return (
        (moved is None or (type(moved) is list and all(map(_is_plain_move, moved))))
        and (removed is None or (type(removed) is list and all(map(_plain_kind, removed))))
        and (
            imports is None
            or (type(imports) is list and all(_plain_kind(one) in ADOPTABLE for one in imports))
        )
    )


def _is_plain_move(entry: object) -> bool:
    if not isinstance(entry, dict) or entry.keys() != {"from", "to"}:
        return False
    before, after = entry["from"], entry["to"]
    return before != after and _plain_kind(before) == _plain_kind(after) != ""


def _plain_kind(address: object) -> str:
    """The kind of a plain address; empty for whatever else."""
    match = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    return match["kind"] if match else ""


def _are_plain_patches(patches: object) -> bool:
    if not isinstance(patches, list) or len(patches) > PATCHES_MAX:
        return False
    return all(map(_is_plain_patch, patches))


def _is_plain_value(item: object) -> bool:
    if isinstance(item, str):
        return EXPRESSION_MARK not in item and "\0" not in item
    return type(item) in {int, float, bool}


def _is_plain_patch(entry: object) -> bool:
    if not isinstance(entry, dict) or len(entry) != 2:
        return False
    (way,) = entry.keys() - {"target"} if "target" in entry else ("",)
    kind, slash, name = str(entry.get("target", "")).partition("/")
    is_target = type(entry.get("target")) is str and all((kind, slash, name))
    return is_target and way in _WAYS and _WAYS[way](entry[way])


def _plain_rules(value: object) -> Rules | None:
    if not isinstance(value, dict):
        return None
    plain = dict(value)
    if "freeze" in plain:
        plain["freeze"] = _plain_windows(plain["freeze"])
    for rule, said in plain.items():
        is_right = _RULES.get(rule)
        if is_right is None or not is_right(said):
            return None
    return Rules.of(plain)


def _plain_windows(value: object) -> list[dict[str, Any]] | None:
    """Windows that are open once, in canonical form; those of cron are for the models to judge."""
    if type(value) is not list or len(value) > WINDOWS_MAX:
        return None
    # Hardly any environment has some, and each start would pay for the parsers of all amounts.
    from fleetform.spec.quantities.duration import parse_moment

    windows = []
    for window in value:
        if not isinstance(window, dict) or window.keys() != {"from", "to", "reason"}:
            return None
        try:
            begin, end = parse_moment(window["from"]), parse_moment(window["to"])
        except ValueError:
            return None
        reason = window["reason"]
        if begin >= end or type(reason) is not str or not 1 <= len(reason) <= REASON_MAX:
            return None
        if "\0" in reason:
            return None
        windows.append({"begin": begin, "end": end, "reason": reason})
    return windows
