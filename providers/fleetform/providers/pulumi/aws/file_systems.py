"""
Shared file systems that exist in an account, EFS and FSx for Lustre: what hosts mount of one.

They are only looked at. Nothing here creates, changes or deletes one.
"""

from __future__ import annotations

from typing import Any

from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.contract.volumes import DiskSeen
from fleetform.providers.pulumi.aws.clients import cloud_failures, service_client
from fleetform.providers.pulumi.aws.program import AwsAccount

__all__ = ["look_at_file_system"]


def look_at_file_system(
    account: AwsAccount, kind: str, identity: str, name: str
) -> DiskSeen | None:
    """
    Return a file system, `efs` or `lustre`; None: the region has none of this id and kind.

    `name` is for messages.

    Raises:
        ProviderError: AWS does not say, or no host could mount it.
    """
    found = (_efs if kind == "efs" else _lustre)(account, identity, name)
    return None if found is None else DiskSeen(identity, "", 0, source=found)


def _efs(account: AwsAccount, identity: str, name: str) -> str | None:
    rows = _listed(account, "efs", "FileSystemNotFound", name, FileSystemId=identity)
    if not rows:
        return None
    if rows[0]["NumberOfMountTargets"] == 0:
        raise PermanentError(
            f"{name}: {identity} has no mount target, so no host can mount it",
            advice="create one in each zone that the hosts use: `aws efs create-mount-target`",
        )
    return f"{identity}.efs.{account.region}.amazonaws.com:/"


def _lustre(account: AwsAccount, identity: str, name: str) -> str | None:
    rows = _listed(account, "fsx", "FileSystemNotFound", name, FileSystemIds=[identity])
    if not rows or "LustreConfiguration" not in rows[0]:
        return None
    return f"{rows[0]['DNSName']}@tcp:/{rows[0]['LustreConfiguration']['MountName']}"


def _listed(
    account: AwsAccount, service: str, missing: str, name: str, **parameters: Any
) -> list[dict[str, Any]]:
    import botocore.exceptions

    client = service_client(account, service)
    with cloud_failures(name):
        try:
            rows: list[dict[str, Any]] = client.describe_file_systems(**parameters)["FileSystems"]
        except botocore.exceptions.ClientError as problem:
            if problem.response["Error"]["Code"] != missing:
                raise
            return []
    return [one for one in rows if _state(one) != "DELETING"]


def _state(row: dict[str, Any]) -> str:
    # EFS and FSx differ in spelling and case.
    return str(row.get("LifeCycleState") or row.get("Lifecycle", "")).upper()
