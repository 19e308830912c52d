"""
Which environment a tree is, read without the models.

`ps`, `logs` and `why` need `environment.yaml` and nothing else of the language, and importing
pydantic and the kinds took two thirds of their time. So a document that is right and plain is
read here. Of any other this says nothing: `environment` judges it, and what is wrong is told in
one place. A test holds that both read the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fleetform.spec.desired import Environment, Rules
from fleetform.spec.names import is_uid, name_problem

__all__ = ["FILE_NAME", "plain_environment"]

FILE_NAME = "environment.yaml"

_FIELDS = frozenset({"type", "name", "uid", "rules"})
_RULES: Mapping[str, Callable[[Any], bool]] = {
    # By type: a truth value is an int to isinstance, and no count.
    "allow_destroy": lambda value: type(value) is bool,
    "delete_percent": lambda value: type(value) is int and 0 <= value <= 100,
    "delete_count": lambda value: type(value) is int and value >= 0,
}


def plain_environment(value: object) -> Environment | None:
    """
    The environment that a document's plain value describes, as `EnvironmentDocument` reads it.

    Returns:
        None for whatever this cannot vouch for, right or wrong.
    """
    if not isinstance(value, dict) or not value.keys() <= _FIELDS:
        return None
    name, uid = value.get("name"), value.get("uid")
    if value.get("type") != "environment" or not isinstance(name, str) or not isinstance(uid, str):
        return None
    if name_problem(name) is not None or not is_uid(uid):
        return None
    rules = _plain_rules(value.get("rules", {}))
    return None if rules is None else Environment(name, uid, rules)


def _plain_rules(value: object) -> Rules | None:
    if not isinstance(value, dict):
        return None
    for rule, said in value.items():
        is_right = _RULES.get(rule)
        if is_right is None or not is_right(said):
            return None
    return Rules(**value)
