"""What a change of AWS needs on this machine, and the variable that leads elsewhere in tests."""

from __future__ import annotations

import importlib.util

from fleetform.providers.pulumi.aws.tools import LIBRARIES
from fleetform.providers.pulumi.engine.failures import FailureKind, error_of, failure
from fleetform.providers.pulumi.engine.installation import pulumi_program

__all__ = ["SERVICE", "require_installed", "require_libraries"]

SERVICE = "AWS_ENDPOINT_URL"
"""Has the URL of a service in place of those of AWS."""


def require_libraries() -> None:
    """
    Make sure that the libraries of this machine are installed.

    Raises:
        PermanentError: It says how to install them.
    """
    if any(importlib.util.find_spec(name) is None for name in LIBRARIES):
        raise error_of(failure(FailureKind.MISSING_PACKAGE, where=""))


def require_installed() -> None:
    """
    Make sure that a cloud can be changed from here; nothing of Pulumi is imported for that.

    Raises:
        PermanentError: It says what is missing.
    """
    require_libraries()
    if pulumi_program() is None:
        raise error_of(failure(FailureKind.MISSING_CLI, where=""))
