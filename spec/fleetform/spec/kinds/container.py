"""
The runtime of commands: processes of the host, or a container.

Nothing starts containers yet. An image is not looked up here either: whether it exists is the
registry's to say.

`Runtime` is one type for whatever may set it: a run for itself, and a profile, a fleet or a queue for
runs that do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from fleetform.spec.field_facts import SECRET
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Guarded, contradiction, read_by, refuse
from fleetform.spec.kinds.offers import Text
from fleetform.spec.quantities.ranges import shown, unfit

# What dstack 0.22 has base images for.
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15")


def _python(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise unfit(value, 'a version of Python, such as "3.12"')
    # YAML reads 3.10 as the number 3.1, and there never was a base image for Python 3.1.
    text = "3.10" if value == 3.1 else str(value).strip()
    if text in PYTHONS:
        return text
    known = ", ".join(f"`{one}`" for one in PYTHONS)
    short = ".".join(text.split(".")[:2])
    advice = f"Write `{short}`, without what follows. " if short in PYTHONS else ""
    raise refuse(
        "bad-value",
        f"{shown(value)} is not a supported version.",
        f"{advice}There is {known}.",
    )


Python = Annotated[
    str,
    *read_by(
        _python,
        {
            "anyOf": [
                {"enum": [*PYTHONS]},
                {"type": "number", "examples": [3.12]},
                {"type": "string", "pattern": r"\$\{\{"},
            ]
        },
    ),
]


def _user(value: Any) -> str:
    value = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(value, str):
        raise unfit(value, "a user's name or number, such as `ubuntu` or 1000")
    user, colon, group = value.partition(":")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\$?", user, re.ASCII):
        raise refuse(
            "bad-value",
            f"{shown(value)} does not begin with a user's name or number.",
            "Write for example `ubuntu`, `1000` or `1000:1000`.",
        )
    if colon and not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\$?", group, re.ASCII):
        raise refuse(
            "bad-value",
            f"{shown(value)} does not name a group behind its colon.",
            f"Write `{user}`, or `{user}:GROUP`.",
        )
    return value


User = Annotated[str, *read_by(_user, {"type": ["string", "integer"]})]


def _image(value: str) -> str:
    if value != value.strip() or any(letter.isspace() for letter in value):
        raise refuse("bad-value", f"{shown(value)} has spaces; the name of an image has none.")
    return value


Image = Annotated[Text, AfterValidator(_image)]


class RegistryAuth(Guarded):
    """The credentials for a private registry."""

    username: Text
    """The user name. Example: `$oauthtoken`."""

    password: Annotated[str, Field(min_length=1, max_length=10_000), SECRET]
    """The password or token, as a reference to a secret. Example: `${{ secrets.ngc_api_key }}`."""


# Each makes the container of its own kind, so that no two of them go together.
SOURCES: Mapping[str, Sequence[str]] = {
    "image": ("python", "docker", "nvcc"),
    "python": ("docker",),
    "nvcc": ("docker",),
}


def source_problems(
    is_set: Callable[[str], bool], above: tuple[str | int, ...] = ()
) -> Iterator[Problem]:
    """Two sources of one container; `is_set` says whether a field is, and not to `false`."""
    for one, others in SOURCES.items():
        for other in others:
            if is_set(one) and is_set(other):
                yield contradiction(
                    (*above, other),
                    f"`{one}` and `{other}` each choose the image of the container.",
                    "Remove one of the two.",
                )


Runtime: TypeAlias = Literal["process", "container"]
