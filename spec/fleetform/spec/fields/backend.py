"""
The fields of backends, of all types together: what each type has is said by its model.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.fields.facts import EVERY_KIND, Rows, control, secret

TYPES: tuple[str, ...] = (
    "amddevcloud",
    "aws",
    "azure",
    "cloudrift",
    "crusoe",
    "cudo",
    "datacrunch",
    "daytona",
    "digitalocean",
    "gcp",
    "hotaisle",
    "jarvislabs",
    "kubernetes",
    "lambda",
    "lium",
    "nebius",
    "oci",
    "runpod",
    "seeweb",
    "slurm",
    "tensordock",
    "vastai",
    "verda",
    "vultr",
)
"""What `type:` of a backend may be: the clouds and clusters that dstack 0.22 knows."""

ROWS: Rows = {
    **EVERY_KIND,
    "bare_metal": control(),
    "clusters": control(),
    "clusters.private_key.content": secret(control()),
    "community_cloud": control(),
    "compartment_id": control(),
    "contexts": control(),
    "creds": control(),
    **{
        f"creds.{name}": secret(control())
        for name in (
            "api_key",
            "api_token",
            "client_secret",
            "data",
            "key_content",
            "pass_phrase",
            "private_key_content",
            "secret_key",
        )
    },
    "default_vpcs": control(),
    "experimental_instance_types": control(),
    "extra_vpcs": control(),
    "fabrics": control(),
    "iam_instance_profile": control(),
    "kubeconfig": control(),
    "kubeconfig.data": secret(control()),
    "namespace": control(),
    "nat_check": control(),
    "os_images": control(),
    "preview_features": control(),
    "project_id": control(),
    "project_name": control(),
    "projects": control(),
    "proxy_jump": control(),
    "public_ips": control(),
    "region": control(),
    "regions": control(),
    "resource_group": control(),
    "roce_vpcs": control(),
    "subnet_ids": control(),
    "subnet_ids_per_region": control(),
    "subnetworks": control(),
    "subscription_id": control(),
    "team_handle": control(),
    "tenant_id": control(),
    "tpu": control(),
    "vm_managed_identity": control(),
    "vm_service_account": control(),
    "vpc_ids": control(),
    "vpc_name": control(),
    "vpc_project_id": control(),
}

DEFAULTS: Mapping[str, str | int | bool] = {}
