"""What a change of AWS needs on this machine, and the variable that leads elsewhere in tests."""

from __future__ import annotations

import importlib.util
import os

from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.pulumi.aws.tools import LIBRARIES
from fleetform.providers.pulumi.engine.failures import FailureKind, error_of, failure
from fleetform.providers.pulumi.engine.installation import pulumi_program

__all__ = ["SERVICE", "require_installed"]

SERVICE = "AWS_ENDPOINT_URL"
"""Has the URL of a service in place of those of AWS."""


def require_installed(where: str) -> None:
    """
    Make sure that a cloud can be changed from here; nothing of Pulumi is imported for that.

    Raises:
        PermanentError: It says what is missing.
    """
    if any(os.environ.get(name) for name in ("FLEETFORM_LEDGER", "FLEETFORM_LEDGER_FILE")):
        # Another machine would neither have the records of the stacks nor their locks.
        raise PermanentError(
            f"{where}: hosts and disks of clouds are not supported yet with a ledger on PostgreSQL",
            advice="use an environment with a ledger on this machine",
        )
    if any(importlib.util.find_spec(name) is None for name in LIBRARIES):
        raise error_of(failure(FailureKind.MISSING_PACKAGE, where=where))
    if pulumi_program() is None:
        raise error_of(failure(FailureKind.MISSING_CLI, where=where))
