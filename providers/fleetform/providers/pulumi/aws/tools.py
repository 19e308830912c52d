"""What hosts on AWS need on this machine: libraries, the Pulumi CLI, its plugin, and credentials of the declared account."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterator, Sequence

from fleetform.providers.contract.errors import PermanentError, ProviderError
from fleetform.providers.contract.tools import ToolCheck
from fleetform.providers.pulumi.aws.inventory import ec2_client
from fleetform.providers.pulumi.aws.program import AwsAccount
from fleetform.providers.pulumi.engine.failures import FailureKind, failure
from fleetform.providers.pulumi.engine.installation import cli_version, plugins, pulumi_program

__all__ = ["LIBRARIES", "check_tools"]

LIBRARIES = ("boto3", "pulumi")


async def check_tools(accounts: Sequence[AwsAccount]) -> list[ToolCheck]:
    """Check the libraries, the CLI and the plugin, then the credentials for each account."""
    found = [*_libraries(), await _cli(), _plugin()]
    if found[0].is_ok:
        found += [await _account(one) for one in accounts]
    return found


def _libraries() -> Iterator[ToolCheck]:
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        advice = failure(FailureKind.MISSING_PACKAGE, where="").advice
        yield ToolCheck("libraries", False, f"{' and '.join(missing)} not installed", advice)
    else:
        yield ToolCheck("libraries", True, " and ".join(LIBRARIES))


async def _cli() -> ToolCheck:
    program = pulumi_program()
    if program is None:
        return ToolCheck(
            "Pulumi CLI", False, "not installed", "run `fleetform doctor --install-pulumi`"
        )
    try:
        return ToolCheck("Pulumi CLI", True, f"{await cli_version(program)} at {program}")
    except PermanentError as problem:
        return ToolCheck("Pulumi CLI", False, str(problem), problem.advice)


def _plugin() -> ToolCheck:
    found = plugins("aws")
    if found:
        return ToolCheck("plugin of AWS", True, found[-1])
    advice = "run `pulumi plugin install resource aws`"
    return ToolCheck("plugin of AWS", False, "not installed", advice)


async def _account(account: AwsAccount) -> ToolCheck:
    name = f"account {account.id}"
    try:
        await asyncio.to_thread(ec2_client, account)
    except ProviderError as problem:
        return ToolCheck(name, False, str(problem), getattr(problem, "advice", ""))
    return ToolCheck(name, True, f"the credentials are of this account, in {account.region}")
