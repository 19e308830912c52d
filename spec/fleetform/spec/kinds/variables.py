"""
Environment variables: `[LR=0.1, HF_TOKEN]`, `{LR: 0.1}`.

A name without a value, in a list, stands for the value in the environment of `apply`. It is None
here, because taking it from there is not supported yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import PlainValidator, WithJsonSchema

from fleetform.spec.findings import Level, Problem
from fleetform.spec.kinds.base import refuse, text_of
from fleetform.spec.quantities.patterns import exact_text
from fleetform.spec.quantities.ranges import shown, unfit
from fleetform.spec.secrecy import names_secret

Values: TypeAlias = dict[str, str | None]

_NAME = "[A-Za-z_][A-Za-z0-9_]*"


def environment_variables(value: Any) -> Values:
    """`[K=V]` and `{K: V}`, as a mapping of text to text."""
    if isinstance(value, Mapping):
        pairs: list[tuple[str, str | None]] = [
            (str(key), _value(str(key), item)) for key, item in value.items()
        ]
    elif isinstance(value, list | tuple):
        pairs = [_assignment(item) for item in value]
    else:
        raise refuse("wrong-type", str(unfit(value, "a list, `- LR=0.1`, or a mapping")))
    variables: Values = {}
    for name, text in pairs:
        if not re.fullmatch(_NAME, name):
            raise refuse(
                "bad-variable",
                f"{shown(name)} cannot be the name of an environment variable.",
                "Use letters, digits and `_`, with no digit in front.",
            )
        if name in variables:
            raise refuse("said-twice", f"The variable `{name}` is set twice.")
        if text is not None and "\0" in text:
            raise refuse("bad-variable", f"The variable `{name}` contains a null character.")
        variables[name] = text
    return variables


def _value(name: str, item: Any) -> str:
    if item is None:
        raise refuse(
            "wrong-type",
            f"The variable `{name}` has no value.",
            f'Write `{name}: ""` for an empty one. In a list, `- {name}` takes it from the'
            " environment of `apply`.",
        )
    return text_of(item, f"The variable `{name}`")


def _assignment(item: Any) -> tuple[str, str | None]:
    if not isinstance(item, str):
        # Kubernetes has lists of these, and compose lists of mappings.
        advice = "Write `NAME=VALUE`, or the whole of `env` as a mapping, `NAME: VALUE`."
        raise refuse("wrong-type", str(unfit(item, "an assignment, such as `LR=0.1`")), advice)
    name, equals, text = item.partition("=")
    return (name, text) if equals else (name.strip(), None)


Variables = Annotated[
    Values,
    PlainValidator(environment_variables),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "array",
                    "items": {"type": "string", "pattern": rf"^{_NAME}=|^\s*{_NAME}\s*$"},
                },
                {
                    "type": "object",
                    "propertyNames": {"pattern": exact_text(_NAME)},
                    "additionalProperties": {"type": ["string", "number"]},
                },
            ]
        }
    ),
]


def without_value(variables: Values | None) -> Iterator[Problem]:
    """A note for each variable whose value is to come from the caller's environment."""
    for name, text in (variables or {}).items():
        if text is None:
            yield Problem(
                "not-supported",
                ("env",),
                f"`{name}` has no value, and taking values from the environment of `apply` is not supported"
                " yet.",
                f"Write `{name}=VALUE`. Until then, plans block it.",
                level=Level.NOTE,
                word=name,
            )


def warn_of_secret_parameters(names: Iterable[str]) -> Iterator[Problem]:
    """A warning for each parameter of a sweep whose name says that its values are secrets."""
    for name in names:
        if names_secret(name):
            yield Problem(
                "secret-in-clear",
                ("matrix", name),
                f"The values of `{name}` are in plaintext: everyone who can read the configuration, its history or the ledger can read them. Names of elements have `sealed-…` in their place.",
                "A secret is no parameter: give the sweep a name of each, such as an account, and let the"
                " commands read the secret by it from a file that only the job's account can read.",
                level=Level.WARNING,
                at_key=True,
            )


def warn_of_secrets(variables: Values | None) -> Iterator[Problem]:
    """
    A warning for each variable whose name says that it holds a secret, and that has one.

    Its value reaches the job all the same: what is in `env` is its author's to say.
    """
    for name, text in (variables or {}).items():
        if text and names_secret(name) and "${{" not in text:
            yield Problem(
                "secret-in-clear",
                ("env",),
                f"`{name}` is in plaintext: everyone who can read the configuration, its history or the ledger can read it.",
                "Let the commands read it from a file that only the job's account can read, and"
                " change it if it was committed.",
                level=Level.WARNING,
                at_key=True,
            )
