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

from fleetform.spec.field_facts import control, identity
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Document, Model, Refusal, Whole, contradiction, refuse
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
            "The file of a secret is outside of the configuration, but this path is relative.",
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
    "Everyone who can read the configuration or its history could read the secret.",
    "Put it into a file and write `file: /etc/fleetform/NAME`, or into an environment variable and write `env: NAME`. If the value was committed, replace it.",
)


class VaultValue(Model):
    """A value in HashiCorp Vault or OpenBao."""

    path: Text
    """The path, beginning with the mount. Example: `kv/research/wandb`."""

    key: Text
    """The key of the value at that path. Example: `api_key`."""

    address: Text | None = None
    """The address of the server. Default: `VAULT_ADDR`. Example: `https://vault.example.com`."""


class AwsValue(Model):
    """A value in AWS Secrets Manager."""

    id: Text
    """The name or ARN of the secret. Example: `research/wandb`."""

    key: Text | None = None
    """The key of the value, if the secret is a JSON object. Example: `api_key`."""

    region: Text | None = None
    """The region. Default: the region of the credentials. Example: `eu-west-1`."""


class GcpValue(Model):
    """A value in Secret Manager of Google Cloud."""

    name: Text
    """The name of the secret. Example: `wandb`."""

    project_id: Text | None = None
    """
    The project of the secret. Default: the project of the credentials. Example: `research-123456`.
    """

    version: Annotated[Whole, Field(ge=1)] | None = None
    """The version. Default: the latest version. Example: `3`."""


class KubernetesValue(Model):
    """A value in a Secret of Kubernetes."""

    name: Text
    """The name of the Secret. Example: `wandb`."""

    key: Text
    """The key of the value. Example: `api-key`."""

    namespace: Text | None = None
    """The namespace of the Secret. Default: the namespace of the backend. Example: `research`."""


SOURCES = ("env", "file", "credential", "vault", "aws", "gcp", "kubernetes")


class Secret(Document):
    """
    A value for runs, and the place where it is stored.

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

    name: Annotated[str, AfterValidator(_name), identity()]
    """
    The name that documents use in `${{ secrets.NAME }}`: letters, digits, `_` and `-`. A document
    with another name declares another secret. Example: `huggingface_token`.
    """

    env: Annotated[str, AfterValidator(_variable), control()] | None = None
    """
    The environment variable that contains the value, on the machine that runs fleetform. Example:
    `HF_TOKEN`.
    """

    file: Annotated[Text, AfterValidator(_absolute), control()] | None = None
    """
    The file that contains the value, on the machine that runs fleetform. A newline at its end is
    ignored. Example: `/etc/fleetform/hf_token`.
    """

    credential: Annotated[Text | None, control()] = None
    """The systemd credential (`LoadCredential=`) that contains the value. Example: `hf_token`."""

    vault: Annotated[VaultValue | None, control()] = None
    """
    The place of the value in HashiCorp Vault or OpenBao. Example: `{path: kv/research/hf, key:
    token}`.
    """

    aws: Annotated[AwsValue | None, control()] = None
    """The place of the value in AWS Secrets Manager. Example: `{id: research/hf}`."""

    gcp: Annotated[GcpValue | None, control()] = None
    """The place of the value in Secret Manager of Google Cloud. Example: `{name: hf-token}`."""

    kubernetes: Annotated[KubernetesValue | None, control()] = None
    """The place of the value in Kubernetes. Example: `{name: hf, key: token}`."""

    projects: Annotated[Names | None, control()] = None
    """The projects whose runs may use the secret. Default: all projects. Example: `[vision]`."""

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        said = [name for name in SOURCES if getattr(self, name) is not None]
        if not said:
            yield Problem(
                "missing-field",
                (),
                "The secret has no source.",
                "Add one of " + ", ".join(f"`{name}:`" for name in SOURCES) + ".",
                # A value in clear is told how it becomes one of these.
                for_lack_of=(*SOURCES, *self.refused),
            )
        for name in said[1:]:
            yield contradiction(
                name, f"The secret comes from `{said[0]}` already.", "Keep one of the two."
            )
