"""The host key that an instance prints on its console, for fleets that put none into the user data."""

from __future__ import annotations

from fleetform.providers.contract.errors import TemporaryError
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.pulumi.aws.clients import cloud_failures, service_client
from fleetform.providers.pulumi.aws.program import AwsAccount

__all__ = ["prints_host_key", "read_host_key"]

_LOOK_SECONDS = 15.0
"""EC2 shows the console some minutes after the boot."""


def prints_host_key(request: InstanceRequest) -> bool:
    """Tell whether the host makes its own key, which the console shows."""
    return bool(request.endpoint.get("host_key") == "console")


def read_host_key(request: InstanceRequest, account: AwsAccount) -> str:
    """
    Return the host key of an instance, as `known_hosts` has it.

    Raises:
        TemporaryError: EC2 does not show it yet.
        ProviderError: EC2 refuses.
    """
    # Here: most commands load no SSH.
    from fleetform.providers.first_boot.console import printed_host_key

    client = service_client(account, "ec2")
    with cloud_failures(request.name):
        shown = client.get_console_output(InstanceId=request.endpoint["id"])
    key = printed_host_key(shown.get("Output", ""))
    if not key:
        raise TemporaryError(
            f"instance {request.name}: its console does not show the host key yet",
            delay_seconds=_LOOK_SECONDS,
        )
    return key
