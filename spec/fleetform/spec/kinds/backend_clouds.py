"""
Backends with accounts, networks and regions of their own: AWS, Azure, GCP, Nebius, OCI.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fleetform.spec.kinds.backend import Backend, Credentials
from fleetform.spec.kinds.base import Flag, Model
from fleetform.spec.kinds.offers import Text, Texts


class AwsCredentials(Credentials):
    """How AWS knows who asks."""

    guarded: ClassVar[frozenset[str]] = frozenset({"secret_key"})
    needed: ClassVar[dict[str, tuple[str, ...]]] = {"access_key": ("access_key", "secret_key")}

    type: Literal["default", "access_key"]
    """
    What proves it. `default`: what AWS's own tools find: profile, environment, instance role.
    `access_key`: a key and its secret. Example: `default`.
    """

    access_key: Text | None = None
    """The key's id. Example: `AKIAIOSFODNN7EXAMPLE`."""

    secret_key: Text | None = None
    """The key's secret. Example: `${{ secrets.aws_secret_key }}`."""


class AwsImage(Model):
    """An image that hosts start from."""

    name: Text
    """Its name. Example: `research-2026-11`."""

    owner: Text | None = None
    """The account that it belongs to; one's own if not said. Example: `"123456789012"`."""

    user: Text
    """Who signs in to a host that started from it. Example: `ubuntu`."""


class AwsImages(Model):
    """Images that hosts start from, in place of ours."""

    cpu: AwsImage | None = None
    """For hosts without GPUs. Example: `{name: plain, user: ubuntu}`."""

    nvidia: AwsImage | None = None
    """For hosts with GPUs of NVIDIA. Example: `{name: cuda, user: ubuntu}`."""


class Aws(Backend):
    """
    Amazon Web Services.

    Example:
        type: aws
        creds:
          type: default
        regions: [eu-west-1]
    """

    type: Literal["aws"]
    """The kind of the document: `aws`."""

    creds: AwsCredentials | None = None
    """Who asks; `default` if not said. Example: `{type: default}`."""

    vpc_name: Text | None = None
    """The network, by its name in each region. Example: `research`."""

    vpc_ids: dict[str, str] | None = None
    """The network, by its id in each region. Example: `{eu-west-1: vpc-0f1e2d3c}`."""

    default_vpcs: Flag | None = None
    """Whether the default network of a region may be used where none is named. Example: `false`."""

    public_ips: Flag | None = None
    """Whether hosts have public addresses. Example: `false`."""

    iam_instance_profile: Text | None = None
    """The role that hosts have. Example: `training`."""

    os_images: AwsImages | None = None
    """Images that hosts start from. Example: `{nvidia: {name: cuda, user: ubuntu}}`."""

    experimental_instance_types: Texts | None = None
    """Instance types that are offered though nobody has tried them. Example: `[p6-b200.48xlarge]`."""


class AzureCredentials(Credentials):
    """How Azure knows who asks."""

    guarded: ClassVar[frozenset[str]] = frozenset({"client_secret"})
    needed: ClassVar[dict[str, tuple[str, ...]]] = {"client": ("client_id", "client_secret")}

    type: Literal["default", "client"]
    """
    What proves it. `default`: what Azure's own tools find. `client`: an application and its
    secret. Example: `default`.
    """

    client_id: Text | None = None
    """The application. Example: `0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0`."""

    client_secret: Text | None = None
    """Its secret. Example: `${{ secrets.azure_client }}`."""

    tenant_id: Text | None = None
    """Its tenant; the backend's if not said. Example: `1f2e3d4c-5b6a-7988-97a6-b5c4d3e2f101`."""


class Azure(Backend):
    """
    Microsoft Azure.

    Example:
        type: azure
        subscription_id: 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0
        tenant_id: 1f2e3d4c-5b6a-7988-97a6-b5c4d3e2f101
    """

    type: Literal["azure"]
    """The kind of the document: `azure`."""

    creds: AzureCredentials | None = None
    """Who asks; `default` if not said. Example: `{type: default}`."""

    subscription_id: Text
    """The subscription that pays. Example: `0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0`."""

    tenant_id: Text
    """The tenant. Example: `1f2e3d4c-5b6a-7988-97a6-b5c4d3e2f101`."""

    resource_group: Text | None = None
    """The group that hosts belong to; made if not said. Example: `gpus`."""

    vpc_ids: dict[str, str] | None = None
    """The network in each region. Example: `{westeurope: gpus/research}`."""

    subnet_ids: dict[str, str] | None = None
    """The subnet in each region. Example: `{westeurope: gpus/research/default}`."""

    public_ips: Flag | None = None
    """Whether hosts have public addresses. Example: `false`."""

    vm_managed_identity: Text | None = None
    """The identity that hosts have. Example: `gpus/training`."""


class GcpCredentials(Credentials):
    """How GCP knows who asks."""

    guarded: ClassVar[frozenset[str]] = frozenset({"data"})

    type: Literal["default", "service_account"]
    """
    What proves it. `default`: what gcloud finds. `service_account`: the key of an account for
    programs. Example: `default`.
    """

    filename: Text | None = None
    """The key's file, on the machine that fleetform runs on. Example: `~/.config/gcp/fleetform.json`."""

    data: Text | None = None
    """The key itself, in place of its file. Example: `${{ secrets.gcp_key }}`."""


class Gcp(Backend):
    """
    Google Cloud.

    Example:
        type: gcp
        project_id: research-123456
        creds:
          type: default
    """

    type: Literal["gcp"]
    """The kind of the document: `gcp`."""

    creds: GcpCredentials | None = None
    """Who asks; `default` if not said. Example: `{type: default}`."""

    project_id: Text | None = None
    """The project that pays; that of the credentials if not said. Example: `research-123456`."""

    tpu: Flag | None = None
    """Whether TPUs are offered as well. Example: `true`."""

    vpc_name: Text | None = None
    """The network. Example: `research`."""

    vpc_project_id: Text | None = None
    """The project that the network belongs to, if another. Example: `networks-123456`."""

    subnetworks: dict[str, str] | None = None
    """The subnet in each region. Example: `{us-central1: gpus}`."""

    extra_vpcs: Texts | None = None
    """Networks for the further cards of hosts that have several. Example: `[gpus-1, gpus-2]`."""

    roce_vpcs: Texts | None = None
    """Networks for cards that reach other hosts' memory. Example: `[roce-1]`."""

    public_ips: Flag | None = None
    """Whether hosts have public addresses. Example: `false`."""

    nat_check: Flag | None = None
    """Whether to see, without public addresses, that a network leads out. Example: `false`."""

    vm_service_account: Text | None = None
    """The account that hosts have. Example: `training@research-123456.iam.gserviceaccount.com`."""

    preview_features: Texts | None = None
    """What is offered before it is finished. Example: `[g4]`."""


class NebiusCredentials(Credentials):
    """How Nebius knows who asks."""

    guarded: ClassVar[frozenset[str]] = frozenset({"private_key_content"})

    type: Literal["service_account"]
    """What proves it. `service_account`: an account for programs. Example: `service_account`."""

    service_account_id: Text | None = None
    """The account. Example: `serviceaccount-e00dhdcztjz8cfg8df`."""

    public_key_id: Text | None = None
    """Its public key. Example: `publickey-e00fcm0q6d5t6vg4vn`."""

    private_key_file: Text | None = None
    """The private key's file. Example: `~/.nebius/private.pem`."""

    private_key_content: Text | None = None
    """The private key itself. Example: `${{ secrets.nebius_key }}`."""

    filename: Text | None = None
    """A file that has all of these. Example: `~/.nebius/credentials.json`."""


class Nebius(Backend):
    """
    Nebius.

    Example:
        type: nebius
        creds:
          type: service_account
          filename: ~/.nebius/credentials.json
    """

    type: Literal["nebius"]
    """The kind of the document: `nebius`."""

    creds: NebiusCredentials
    """Who asks. Example: `{type: service_account, filename: ~/.nebius/credentials.json}`."""

    projects: Texts | None = None
    """The projects that hosts are made in, one for each region. Example: `[project-e00xxxx]`."""

    fabrics: Texts | None = None
    """Fabrics that clusters are made in; any if not said. Example: `[fabric-4]`."""


class OciCredentials(Credentials):
    """How Oracle Cloud knows who asks."""

    guarded: ClassVar[frozenset[str]] = frozenset({"key_content", "pass_phrase"})
    needed: ClassVar[dict[str, tuple[str, ...]]] = {
        "client": ("user", "tenancy", "fingerprint", "region"),
    }

    type: Literal["default", "client"]
    """
    What proves it. `default`: a profile of Oracle's own tools. `client`: a key of a user.
    Example: `default`.
    """

    file: Text | None = None
    """The file of the profile. Example: `~/.oci/config`."""

    profile: Text | None = None
    """The profile in it. Example: `DEFAULT`."""

    user: Text | None = None
    """The user. Example: `ocid1.user.oc1..aaaa`."""

    tenancy: Text | None = None
    """The tenancy. Example: `ocid1.tenancy.oc1..aaaa`."""

    key_file: Text | None = None
    """The user's key. Example: `~/.oci/key.pem`."""

    key_content: Text | None = None
    """The key itself. Example: `${{ secrets.oci_key }}`."""

    pass_phrase: Text | None = None
    """What the key is locked with. Example: `${{ secrets.oci_phrase }}`."""

    fingerprint: Text | None = None
    """The key's fingerprint. Example: `"20:3b:97:13:55:1c"`."""

    region: Text | None = None
    """The region of the tenancy. Example: `eu-frankfurt-1`."""


class Oci(Backend):
    """
    Oracle Cloud.

    Example:
        type: oci
        creds:
          type: default
    """

    type: Literal["oci"]
    """The kind of the document: `oci`."""

    creds: OciCredentials | None = None
    """Who asks; `default` if not said. Example: `{type: default}`."""

    compartment_id: Text | None = None
    """The compartment that hosts are made in; made if not said. Example: `ocid1.compartment.oc1..aaaa`."""

    subnet_ids_per_region: dict[str, str] | None = None
    """The subnet in each region. Example: `{eu-frankfurt-1: ocid1.subnet.oc1..aaaa}`."""

    experimental_instance_types: Texts | None = None
    """Instance types that are offered though nobody has tried them. Example: `[BM.GPU.H200.8]`."""
