"""
A secret: a value that runs and backends are given, and where it comes from.

The value is never in the tree. A document says where it lies: in a variable or a file of the
machine that fleetform runs on, or in a keeper of secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Document, Model, Refusal, Whole, refuse
from fleetform.spec.kinds.offers import Names, Text
from fleetform.spec.names import secret_name_problem
from fleetform.spec.quantities.ranges import shown


def _name(value: str) -> str:
    problem = secret_name_problem(value)
    if problem is not None:
        raise refuse("bad-name", problem)
    return value


def _absolute(value: str) -> str:
    if not value.startswith(("/", "~/")):
        raise refuse(
            "bad-path",
            "A secret's file lies outside of the tree, and this path is relative.",
            "Write the whole path, `/etc/fleetform/…` or `~/…`.",
        )
    return value


def _variable(value: str) -> str:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value, re.ASCII):
        return value
    raise refuse(
        "bad-variable",
        f"{shown(value)} cannot be the name of an environment variable.",
        "Write the variable's name alone; its value stays where it is.",
    )


_IN_CLEAR = Refusal(
    "secret-in-clear",
    "Whoever reads this tree, or what it ever was, would read the secret.",
    "Put it into a file and write `file: /etc/fleetform/NAME`, or into a variable of whoever"
    " applies and write `env: NAME`. If the value has been committed, change it: it is known.",
)


class VaultValue(Model):
    """A value that HashiCorp Vault keeps, or OpenBao."""

    path: Text
    """Where, with its mount in front. Example: `kv/research/wandb`."""

    key: Text
    """Which of the values there. Example: `api_key`."""

    address: Text | None = None
    """The server; `VAULT_ADDR` if not said. Example: `https://vault.example.com`."""


class AwsValue(Model):
    """A value that AWS Secrets Manager keeps."""

    id: Text
    """Its name or ARN. Example: `research/wandb`."""

    key: Text | None = None
    """Which of the values, where it has several as JSON. Example: `api_key`."""

    region: Text | None = None
    """The region; that of the credentials if not said. Example: `eu-west-1`."""


class GcpValue(Model):
    """A value that Google's Secret Manager keeps."""

    name: Text
    """Its name. Example: `wandb`."""

    project_id: Text | None = None
    """Its project; that of the credentials if not said. Example: `research-123456`."""

    version: Annotated[Whole, Field(ge=1)] | None = None
    """Its version; the latest if not said. Example: `3`."""


class KubernetesValue(Model):
    """A value that a Secret of Kubernetes has."""

    name: Text
    """The Secret. Example: `wandb`."""

    key: Text
    """Which of its values. Example: `api-key`."""

    namespace: Text | None = None
    """Its namespace; that of the backend if not said. Example: `research`."""


SOURCES = ("env", "file", "credential", "vault", "aws", "gcp", "kubernetes")


class Secret(Document):
    """
    A value that is given to runs, and where it comes from.

    Example:
        type: secret
        name: huggingface_token
        env: HF_TOKEN
    """

    refused: ClassVar[Mapping[str, Refusal]] = dict.fromkeys(
        ("value", "data", "content", "secret", "stringdata"), _IN_CLEAR
    )

    type: Literal["secret"]
    """The kind of the document: `secret`."""

    name: Annotated[str, AfterValidator(_name)]
    """
    What `${{ secrets.NAME }}` calls it: letters, digits, `_` and `-`. Another name is another
    secret. Example: `huggingface_token`.
    """

    env: Annotated[str, AfterValidator(_variable)] | None = None
    """The variable that has it, where fleetform runs. Example: `HF_TOKEN`."""

    file: Annotated[Text, AfterValidator(_absolute)] | None = None
    """The file that has it, where fleetform runs; a newline at its end does not count. Example: `/etc/fleetform/hf_token`."""

    credential: Text | None = None
    """The credential that systemd hands to fleetform (`LoadCredential=`). Example: `hf_token`."""

    vault: VaultValue | None = None
    """Where it lies in Vault. Example: `{path: kv/research/hf, key: token}`."""

    aws: AwsValue | None = None
    """Where it lies in AWS Secrets Manager. Example: `{id: research/hf}`."""

    gcp: GcpValue | None = None
    """Where it lies in Google's Secret Manager. Example: `{name: hf-token}`."""

    kubernetes: KubernetesValue | None = None
    """Where it lies in Kubernetes. Example: `{name: hf, key: token}`."""

    projects: Names | None = None
    """The projects whose runs may have it; all of the environment if not said. Example: `[vision]`."""

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        said = [name for name in SOURCES if getattr(self, name) is not None]
        if not said:
            yield Problem(
                "missing-field",
                (),
                "Nothing says where the secret comes from.",
                "Add one of " + ", ".join(f"`{name}:`" for name in SOURCES) + ".",
                # A value in clear is told how it becomes one of these.
                for_lack_of=(*SOURCES, *self.refused),
            )
        for name in said[1:]:
            yield Problem(
                "contradiction",
                (name,),
                f"The secret comes from `{said[0]}` already.",
                "Keep one of the two.",
                at_key=True,
            )
