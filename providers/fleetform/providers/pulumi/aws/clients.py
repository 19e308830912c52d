"""Clients of the services of AWS, with the credentials of this process's environment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from fleetform.providers.pulumi.aws.program import AwsAccount
from fleetform.providers.pulumi.engine.failures import error_of, failure_of

__all__ = ["ServiceClients", "cloud_failures", "service_client"]

TRIES_MAX = 8
"""Of a call that AWS throttles, over half a minute: an account's other users may be many."""


class ServiceClients:
    """Clients of one account and region, one for each service; whose the credentials are is asked once."""

    def __init__(self, account: AwsAccount) -> None:
        """
        Make sure that the credentials are of the account.

        Raises:
            CredentialsRefused: They are of another account, whose lists would show that nothing exists.
            ProviderError: AWS does not answer, or refuses.
        """
        import boto3

        self.account = account
        self._where = {"region_name": account.region, "endpoint_url": account.endpoint or None}
        self._clients: dict[str, Any] = {}
        with cloud_failures(account.region):
            found = boto3.client("sts", **self._where).get_caller_identity()["Account"]
        if found != account.id:
            problem = f"account ID not allowed: {found}; declared is {account.id}"
            raise error_of(failure_of(problem, where=account.region))

    def of(self, service: str) -> Any:
        """Return the client of a service, such as `ec2`."""
        import boto3
        import botocore.config

        if service not in self._clients:
            retries = {"mode": "standard", "total_max_attempts": TRIES_MAX}
            patient = botocore.config.Config(retries=retries)
            self._clients[service] = boto3.client(service, config=patient, **self._where)
        return self._clients[service]


def service_client(account: AwsAccount, service: str) -> Any:
    """
    Return a client of one service; see `ServiceClients`.

    Raises:
        ProviderError: As `ServiceClients`.
    """
    return ServiceClients(account).of(service)


@contextlib.contextmanager
def cloud_failures(where: str) -> Iterator[None]:
    """Raise errors of the contract for those of botocore."""
    import botocore.exceptions

    try:
        yield
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as problem:
        raise error_of(failure_of(str(problem), where=where)) from problem
