"""
A user: a person, how they are recognised, and who they are on hosts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from fleetform.spec.field_facts import RECORDED, control
from fleetform.spec.kinds.base import Document, read_by, refuse
from fleetform.spec.kinds.offers import Text, Texts
from fleetform.spec.quantities.ranges import shown, unfit

_EMAIL = re.compile(r"[^@\s<>,]+@[^@\s<>,]+\.[^@\s<>,.]+")
# useradd(8): what Debian and Red Hat both accept.
_ACCOUNT = re.compile(r"[a-z_][a-z0-9_-]{0,31}\$?")
# Of OpenSSH and of GnuPG; the key itself is not looked into.
_PUBLIC_KEY = re.compile(
    r"(ssh-(ed25519|rsa)|ecdsa-sha2-nistp\d+|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)"
    r" [A-Za-z0-9+/=]{8,}( .*)?"
)
EVERYWHERE = "any"
"""The name under which the account of all other fleets stands in a canonical document."""


def _email(value: str) -> str:
    if _EMAIL.fullmatch(value):
        return value
    raise refuse("bad-value", f"{shown(value)} is not an email address.")


def _account(value: Any) -> str:
    if isinstance(value, str) and _ACCOUNT.fullmatch(value) and value != "root":
        return value
    if value == "root":
        raise refuse(
            "bad-value",
            "The account of a user cannot be root; `grants` of a project permit root.",
        )
    raise refuse("bad-value", f"{shown(value)} is not the name of an account on Linux.")


def _accounts(value: Any) -> dict[str, str]:
    if isinstance(value, str):
        return {EVERYWHERE: _account(value)}
    if not isinstance(value, Mapping) or not value:
        raise refuse("wrong-type", str(unfit(value, "an account, or accounts by fleet")))
    return {str(fleet): _account(item) for fleet, item in value.items()}


def _public_keys(value: tuple[str, ...]) -> tuple[str, ...]:
    for key in value:
        if "PRIVATE KEY" in key:
            raise refuse(
                "secret-in-clear",
                "This is a private key, and everyone who can read the configuration could sign in with it.",
                "Create a new key pair, and write the line of its `.pub` file here.",
            )
        if not _PUBLIC_KEY.fullmatch(key.strip()):
            raise refuse(
                "bad-value",
                f"{shown(key)} is not a public key of OpenSSH.",
                "Write the line of its `.pub` file.",
            )
    return value


PublicKeys = Annotated[Texts, AfterValidator(_public_keys)]


class User(Document):
    """
    A person, with their logins, keys and accounts on hosts.

    Example:
        type: user
        name: ada
        emails: ada@example.com
        account: ada
    """

    type: Literal["user"]
    """The kind of the document: `user`."""

    full_name: Annotated[Text | None, RECORDED] = None
    """The full name. Example: `Ada Lovelace`."""

    emails: (
        Annotated[Texts, AfterValidator(lambda all_: tuple(map(_email, all_))), control()] | None
    ) = None
    """Email addresses by which commits of the user are recognised. Example: `[ada@example.com]`."""

    logins: Annotated[Texts | None, control()] = None
    """The names under which the user applies or signs in. Example: `[alovelace, github:ada]`."""

    role: Annotated[Literal["admin", "user", "reader"] | None, control(default="user")] = None
    """
    The role of the user outside of projects. Default: `user`. `admin`: everything. `user`: what
    their projects allow. `reader`: see everything. Example: `reader`.
    """

    account: (
        Annotated[
            dict[str, str],
            *read_by(
                _accounts,
                {
                    "anyOf": [
                        {"type": "string"},
                        {
                            "type": "object",
                            "additionalProperties": {"type": "string"},
                            "minProperties": 1,
                        },
                    ]
                },
            ),
            control(),
        ]
        | None
    ) = None
    """
    The account of the user on hosts, for fleets with `run_as: owner`: one name, or a name by fleet,
    where `any` is for all other fleets. Example: `ada`, `{on-prem: lovelace, any: ada}`.
    """

    ssh_keys: Annotated[PublicKeys | None, control()] = None
    """
    The public keys with which the user connects to runs. Example: `[ssh-ed25519
    AAAAC3NzaC1lZDI1NTE5AAAAIJ5 ada]`.
    """

    signing_keys: Annotated[PublicKeys | None, control()] = None
    """
    The public keys with which the user signs commits. Example: `[ssh-ed25519
    AAAAC3NzaC1lZDI1NTE5AAAAIJ6 ada]`.
    """

    state: Annotated[Literal["active", "disabled"] | None, control(default="active")] = None
    """
    Whether the user may submit runs. Default: `active`. `active`: yes. `disabled`: no new runs
    start; running ones continue. Example: `disabled`.
    """
