"""How many network interfaces of EFA an instance gets: all that its type has, if the fleet is one cluster."""

from __future__ import annotations

from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.pulumi.aws.clients import cloud_failures, service_client
from fleetform.providers.pulumi.aws.program import AwsAccount

__all__ = ["efa_cards"]


def efa_cards(request: InstanceRequest, account: AwsAccount) -> int:
    """
    Return the number of interfaces; 0: the fleet is no cluster, or the type has no EFA.

    Raises:
        ProviderError: EC2 does not say what the type has.
    """
    place = request.endpoint
    if place.get("placement") != "cluster":
        return 0
    instance_type = place["instance_type"]
    client = service_client(account, "ec2")
    with cloud_failures(request.fleet):
        (found,) = client.describe_instance_types(InstanceTypes=[instance_type])["InstanceTypes"]
    network = found["NetworkInfo"]
    if not network.get("EfaSupported"):
        return 0
    return int(network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 1))
