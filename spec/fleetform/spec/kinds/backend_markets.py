"""
Backends that a key is all it takes for: GPU clouds and markets.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fleetform.spec.field_facts import SECRET, control
from fleetform.spec.kinds.backend import Backend, Credentials, KeyCredentials, PairCredentials
from fleetform.spec.kinds.base import Flag
from fleetform.spec.kinds.offers import Text


class Market(Backend):
    """A cloud that is reached with a key of its API."""

    creds: Annotated[KeyCredentials, control()]
    """The credentials. Example: `{type: api_key, api_key: "${{ secrets.api_key }}"}`."""


class Lambda(Market):
    """
    Lambda.

    Example:
        type: lambda
        creds:
          type: api_key
          api_key: ${{ secrets.api_key }}
    """

    type: Literal["lambda"]
    """The kind of the document: `lambda`."""


class Vultr(Market):
    """
    Vultr.

    Example:
        type: vultr
        creds:
          type: api_key
          api_key: ${{ secrets.api_key }}
    """

    type: Literal["vultr"]
    """The kind of the document: `vultr`."""


class CloudRift(Market):
    """
    CloudRift.

    Example:
        type: cloudrift
        creds:
          type: api_key
          api_key: ${{ secrets.api_key }}
    """

    type: Literal["cloudrift"]
    """The kind of the document: `cloudrift`."""


class Daytona(Market):
    """
    Daytona.

    Example:
        type: daytona
        creds:
          type: api_key
          api_key: ${{ secrets.api_key }}
    """

    type: Literal["daytona"]
    """The kind of the document: `daytona`."""


class JarvisLabs(Market):
    """
    JarvisLabs.

    Example:
        type: jarvislabs
        creds:
          type: api_key
          api_key: ${{ secrets.api_key }}
    """

    type: Literal["jarvislabs"]
    """The kind of the document: `jarvislabs`."""


class Lium(Market):
    """
    Lium.

    Example:
        type: lium
        creds:
          type: api_key
          api_key: ${{ secrets.api_key }}
    """

    type: Literal["lium"]
    """The kind of the document: `lium`."""


class RunPod(Market):
    """
    RunPod.

    Example:
        type: runpod
        creds:
          type: api_key
          api_key: ${{ secrets.api_key }}
    """

    type: Literal["runpod"]
    """The kind of the document: `runpod`."""

    community_cloud: Annotated[Flag | None, control()] = None
    """Whether hosts of the community cloud are offered too. Example: `false`."""


class VastAi(Market):
    """
    Vast.ai.

    Example:
        type: vastai
        creds:
          type: api_key
          api_key: ${{ secrets.api_key }}
    """

    type: Literal["vastai"]
    """The kind of the document: `vastai`."""

    community_cloud: Annotated[Flag | None, control()] = None
    """Whether hosts of private providers are offered too. Example: `false`."""


class Cudo(Market):
    """
    Cudo Compute.

    Example:
        type: cudo
        creds:
          type: api_key
          api_key: ${{ secrets.api_key }}
        project_id: research
    """

    type: Literal["cudo"]
    """The kind of the document: `cudo`."""

    project_id: Annotated[Text, control()]
    """The id of the project. Example: `research`."""


class DigitalOcean(Market):
    """
    DigitalOcean.

    Example:
        type: digitalocean
        creds:
          type: api_key
          api_key: ${{ secrets.api_key }}
    """

    type: Literal["digitalocean"]
    """The kind of the document: `digitalocean`."""

    project_name: Annotated[Text | None, control()] = None
    """The project of hosts. Default: the default project. Example: `research`."""


class AmdDevCloud(Market):
    """
    AMD Developer Cloud.

    Example:
        type: amddevcloud
        creds:
          type: api_key
          api_key: ${{ secrets.api_key }}
    """

    type: Literal["amddevcloud"]
    """The kind of the document: `amddevcloud`."""

    project_name: Annotated[Text | None, control()] = None
    """The project of hosts. Default: the default project. Example: `research`."""


class HotAisle(Market):
    """
    Hot Aisle.

    Example:
        type: hotaisle
        creds:
          type: api_key
          api_key: ${{ secrets.api_key }}
        team_handle: research
    """

    type: Literal["hotaisle"]
    """The kind of the document: `hotaisle`."""

    team_handle: Annotated[Text, control()]
    """The handle of the team. Example: `research`."""

    bare_metal: Annotated[Flag | None, control()] = None
    """Whether bare-metal hosts are offered too. Example: `true`."""


class Crusoe(Backend):
    """
    Crusoe.

    Example:
        type: crusoe
        project_id: research
        creds:
          type: access_key
          access_key: AKIAIOSFODNN7EXAMPLE
          secret_key: ${{ secrets.crusoe_key }}
    """

    type: Literal["crusoe"]
    """The kind of the document: `crusoe`."""

    creds: Annotated[PairCredentials, control()]
    """
    The credentials. Example: `{type: access_key, access_key: AKIA, secret_key: "${{
    secrets.crusoe_key }}"}`.
    """

    project_id: Annotated[Text, control()]
    """The id of the project. Example: `research`."""


class SeewebCredentials(Credentials):
    """A token of the Seeweb API."""

    type: Literal["api_token"]
    """The type of the credentials. `api_token`: an API token. Example: `api_token`."""

    api_token: Annotated[Text, SECRET]
    """The API token, as a reference to a secret. Example: `${{ secrets.seeweb_token }}`."""


class Seeweb(Backend):
    """
    Seeweb.

    Example:
        type: seeweb
        creds:
          type: api_token
          api_token: ${{ secrets.seeweb_token }}
    """

    type: Literal["seeweb"]
    """The kind of the document: `seeweb`."""

    creds: Annotated[SeewebCredentials, control()]
    """The credentials. Example: `{type: api_token, api_token: "${{ secrets.seeweb_token }}"}`."""


class TensorDockCredentials(KeyCredentials):
    """A key of the TensorDock API, and its token."""

    api_token: Annotated[Text, SECRET]
    """
    The token of the key, as a reference to a secret. Example: `${{ secrets.tensordock_token }}`.
    """


class TensorDock(Backend):
    """
    TensorDock.

    Example:
        type: tensordock
        creds:
          type: api_key
          api_key: ${{ secrets.tensordock_key }}
          api_token: ${{ secrets.tensordock_token }}
    """

    type: Literal["tensordock"]
    """The kind of the document: `tensordock`."""

    creds: Annotated[TensorDockCredentials, control()]
    """
    The credentials. Example: `{type: api_key, api_key: "${{ secrets.key }}", api_token: "${{
    secrets.token }}"}`.
    """


class VerdaCredentials(Credentials):
    """A client of the Verda API, and its secret."""

    type: Literal["api_key"]
    """The type of the credentials. `api_key`: a client id and its secret. Example: `api_key`."""

    client_id: Text
    """The client id. Example: `xfaHBqYEsArqhKWX`."""

    client_secret: Annotated[Text, SECRET]
    """The client secret, as a reference to a secret. Example: `${{ secrets.verda_secret }}`."""


class Verda(Backend):
    """
    Verda, formerly DataCrunch.

    Example:
        type: verda
        creds:
          type: api_key
          client_id: xfaHBqYEsArqhKWX
          client_secret: ${{ secrets.verda_secret }}
    """

    type: Literal["verda", "datacrunch"]
    """The kind of the document: `verda`, or its former name `datacrunch`."""

    creds: Annotated[VerdaCredentials, control()]
    """
    The credentials. Example: `{type: api_key, client_id: xfaHBqYEsArqhKWX, client_secret: "${{
    secrets.s }}"}`.
    """
