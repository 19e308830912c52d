"""Clients of the services of AWS, with the credentials of this process's environment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from fleetform.providers.pulumi.aws.program import AwsAccount
from fleetform.providers.pulumi.engine.failures import error_of, failure_of

__all__ = ["cloud_failures", "service_client"]

TRIES_MAX = 8
"""Of a call that AWS throttles, over half a minute: an account's other users may be many."""


def service_client(account: AwsAccount, service: str) -> Any:
    """
    Return a client of a service, such as `ec2`.

    Raises:
        CredentialsRefused: They are of another account, whose lists would show that nothing exists.
        ProviderError: AWS does not answer, or refuses.
    """
    import boto3
    import botocore.config

    patient = botocore.config.Config(retries={"mode": "standard", "total_max_attempts": TRIES_MAX})
    where = {"region_name": account.region, "endpoint_url": account.endpoint or None}
    with cloud_failures(account.region):
        found = boto3.client("sts", **where).get_caller_identity()["Account"]
    if found != account.id:
        raise error_of(failure_of(f"account ID not allowed: {found}", where=account.region))
    return boto3.client(service, config=patient, **where)


@contextlib.contextmanager
def cloud_failures(where: str) -> Iterator[None]:
    """Raise errors of the contract for those of botocore."""
    import botocore.exceptions

    try:
        yield
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as problem:
        raise error_of(failure_of(str(problem), where=where)) from problem
