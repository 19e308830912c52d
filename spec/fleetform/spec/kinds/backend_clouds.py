"""
Backends with accounts, networks and regions of their own: AWS, Azure, GCP, Nebius, OCI.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from fleetform.spec.field_facts import SECRET, control
from fleetform.spec.kinds.backend import Backend, Credentials
from fleetform.spec.kinds.base import Flag, Model
from fleetform.spec.kinds.offers import Text, Texts


class AwsCredentials(Credentials):
    """The credentials for AWS."""

    needed: ClassVar[dict[str, tuple[str, ...]]] = {"access_key": ("access_key", "secret_key")}

    type: Literal["default", "access_key"]
    """
    The type of the credentials. `default`: the default chain of AWS: profile, environment, instance
    role. `access_key`: an access key and its secret. Example: `default`.
    """

    access_key: Text | None = None
    """The id of the access key. Example: `AKIAIOSFODNN7EXAMPLE`."""

    secret_key: Annotated[Text | None, SECRET] = None
    """
    The secret of the access key, as a reference to a secret. Example: `${{ secrets.aws_secret_key
    }}`.
    """


class AwsImage(Model):
    """A machine image of hosts."""

    name: Text
    """The name of the image. Example: `research-2026-11`."""

    owner: Text | None = None
    """
    The account that owns the image. Default: the account of the credentials. Example:
    `"123456789012"`.
    """

    user: Text
    """The user to sign in as on hosts with this image. Example: `ubuntu`."""


class AwsImages(Model):
    """The machine images of hosts, in place of those that fleetform chooses."""

    cpu: AwsImage | None = None
    """The image of hosts without GPUs. Example: `{name: plain, user: ubuntu}`."""

    nvidia: AwsImage | None = None
    """The image of hosts with NVIDIA GPUs. Example: `{name: cuda, user: ubuntu}`."""


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

    creds: Annotated[AwsCredentials | None, control()] = None
    """The credentials. Default: `{type: default}`. Example: `{type: default}`."""

    vpc_name: Annotated[Text | None, control()] = None
    """The name of the VPC in every region. Example: `research`."""

    vpc_ids: Annotated[dict[str, str] | None, control()] = None
    """The id of the VPC by region. Example: `{eu-west-1: vpc-0f1e2d3c}`."""

    default_vpcs: Annotated[Flag | None, control()] = None
    """Whether the default VPC of a region may be used if none is named. Example: `false`."""

    public_ips: Annotated[Flag | None, control()] = None
    """Whether hosts have public addresses. Example: `false`."""

    iam_instance_profile: Annotated[Text | None, control()] = None
    """The IAM instance profile of hosts. Example: `training`."""

    os_images: Annotated[AwsImages | None, control()] = None
    """
    The machine images of hosts. Default: chosen by fleetform. Example: `{nvidia: {name: cuda, user:
    ubuntu}}`.
    """

    experimental_instance_types: Annotated[Texts | None, control()] = None
    """Instance types to offer that are not tested yet. Example: `[p6-b200.48xlarge]`."""


class AzureCredentials(Credentials):
    """The credentials for Azure."""

    needed: ClassVar[dict[str, tuple[str, ...]]] = {"client": ("client_id", "client_secret")}

    type: Literal["default", "client"]
    """
    The type of the credentials. `default`: the default credentials of Azure. `client`: an
    application and its secret. Example: `default`.
    """

    client_id: Text | None = None
    """The client id of the application. Example: `0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0`."""

    client_secret: Annotated[Text | None, SECRET] = None
    """
    The client secret of the application, as a reference to a secret. Example: `${{
    secrets.azure_client }}`.
    """

    tenant_id: Text | None = None
    """
    The tenant of the application. Default: `tenant_id` of the backend. Example:
    `1f2e3d4c-5b6a-7988-97a6-b5c4d3e2f101`.
    """


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

    creds: Annotated[AzureCredentials | None, control()] = None
    """The credentials. Default: `{type: default}`. Example: `{type: default}`."""

    subscription_id: Annotated[Text, control()]
    """The id of the subscription. Example: `0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0`."""

    tenant_id: Annotated[Text, control()]
    """The id of the tenant. Example: `1f2e3d4c-5b6a-7988-97a6-b5c4d3e2f101`."""

    resource_group: Annotated[Text | None, control()] = None
    """The resource group of hosts. Default: fleetform creates one. Example: `gpus`."""

    vpc_ids: Annotated[dict[str, str] | None, control()] = None
    """The virtual network by region, as `GROUP/NETWORK`. Example: `{westeurope: gpus/research}`."""

    subnet_ids: Annotated[dict[str, str] | None, control()] = None
    """
    The subnet by region, as `GROUP/NETWORK/SUBNET`. Example: `{westeurope: gpus/research/default}`.
    """

    public_ips: Annotated[Flag | None, control()] = None
    """Whether hosts have public addresses. Example: `false`."""

    vm_managed_identity: Annotated[Text | None, control()] = None
    """The managed identity of hosts. Example: `gpus/training`."""


class GcpCredentials(Credentials):
    """The credentials for Google Cloud."""

    type: Literal["default", "service_account"]
    """
    The type of the credentials. `default`: the application default credentials. `service_account`:
    the key of a service account. Example: `default`.
    """

    filename: Text | None = None
    """
    The file with the key, on the machine that runs fleetform. Example:
    `~/.config/gcp/fleetform.json`.
    """

    data: Annotated[Text | None, SECRET] = None
    """
    The key itself, in place of `filename`, as a reference to a secret. Example: `${{
    secrets.gcp_key }}`.
    """


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

    creds: Annotated[GcpCredentials | None, control()] = None
    """The credentials. Default: `{type: default}`. Example: `{type: default}`."""

    project_id: Annotated[Text | None, control()] = None
    """
    The id of the project. Default: the project of the credentials. Example: `research-123456`.
    """

    tpu: Annotated[Flag | None, control()] = None
    """Whether TPUs are offered too. Example: `true`."""

    vpc_name: Annotated[Text | None, control()] = None
    """The name of the VPC. Example: `research`."""

    vpc_project_id: Annotated[Text | None, control()] = None
    """The project of the VPC. Default: `project_id`. Example: `networks-123456`."""

    subnetworks: Annotated[dict[str, str] | None, control()] = None
    """The subnet by region. Example: `{us-central1: gpus}`."""

    extra_vpcs: Annotated[Texts | None, control()] = None
    """The VPCs of additional network cards. Example: `[gpus-1, gpus-2]`."""

    roce_vpcs: Annotated[Texts | None, control()] = None
    """The VPCs of network cards with RoCE (remote direct memory access). Example: `[roce-1]`."""

    public_ips: Annotated[Flag | None, control()] = None
    """Whether hosts have public addresses. Example: `false`."""

    nat_check: Annotated[Flag | None, control()] = None
    """
    Whether to check that a network without public addresses has a way to the internet. Example:
    `false`.
    """

    vm_service_account: Annotated[Text | None, control()] = None
    """The service account of hosts. Example: `training@research-123456.iam.gserviceaccount.com`."""

    preview_features: Annotated[Texts | None, control()] = None
    """Preview features to use. Example: `[g4]`."""


class NebiusCredentials(Credentials):
    """The credentials for Nebius."""

    type: Literal["service_account"]
    """
    The type of the credentials. `service_account`: the key of a service account. Example:
    `service_account`.
    """

    service_account_id: Text | None = None
    """The id of the service account. Example: `serviceaccount-e00dhdcztjz8cfg8df`."""

    public_key_id: Text | None = None
    """The id of the public key. Example: `publickey-e00fcm0q6d5t6vg4vn`."""

    private_key_file: Text | None = None
    """The file with the private key. Example: `~/.nebius/private.pem`."""

    private_key_content: Annotated[Text | None, SECRET] = None
    """The private key itself, as a reference to a secret. Example: `${{ secrets.nebius_key }}`."""

    filename: Text | None = None
    """A file with all of these fields, in place of them. Example: `~/.nebius/credentials.json`."""


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

    creds: Annotated[NebiusCredentials, control()]
    """The credentials. Example: `{type: service_account, filename: ~/.nebius/credentials.json}`."""

    projects: Annotated[Texts | None, control()] = None
    """The projects in which hosts are created, one per region. Example: `[project-e00xxxx]`."""

    fabrics: Annotated[Texts | None, control()] = None
    """The fabrics in which clusters are created. Default: any fabric. Example: `[fabric-4]`."""


class OciCredentials(Credentials):
    """The credentials for Oracle Cloud."""

    needed: ClassVar[dict[str, tuple[str, ...]]] = {
        "client": ("user", "tenancy", "fingerprint", "region"),
    }

    type: Literal["default", "client"]
    """
    The type of the credentials. `default`: a profile of the Oracle Cloud command line. `client`:
    the key of a user. Example: `default`.
    """

    file: Text | None = None
    """The file with the profile. Example: `~/.oci/config`."""

    profile: Text | None = None
    """The name of the profile. Example: `DEFAULT`."""

    user: Text | None = None
    """The id of the user. Example: `ocid1.user.oc1..aaaa`."""

    tenancy: Text | None = None
    """The id of the tenancy. Example: `ocid1.tenancy.oc1..aaaa`."""

    key_file: Text | None = None
    """The file with the key of the user. Example: `~/.oci/key.pem`."""

    key_content: Annotated[Text | None, SECRET] = None
    """The key itself, as a reference to a secret. Example: `${{ secrets.oci_key }}`."""

    pass_phrase: Annotated[Text | None, SECRET] = None
    """
    The pass phrase of the key, as a reference to a secret. Example: `${{ secrets.oci_phrase }}`.
    """

    fingerprint: Text | None = None
    """The fingerprint of the key. Example: `"20:3b:97:13:55:1c"`."""

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

    creds: Annotated[OciCredentials | None, control()] = None
    """The credentials. Default: `{type: default}`. Example: `{type: default}`."""

    compartment_id: Annotated[Text | None, control()] = None
    """
    The compartment of hosts. Default: fleetform creates one. Example:
    `ocid1.compartment.oc1..aaaa`.
    """

    subnet_ids_per_region: Annotated[dict[str, str] | None, control()] = None
    """The subnet by region. Example: `{eu-frankfurt-1: ocid1.subnet.oc1..aaaa}`."""

    experimental_instance_types: Annotated[Texts | None, control()] = None
    """Instance types to offer that are not tested yet. Example: `[BM.GPU.H200.8]`."""
