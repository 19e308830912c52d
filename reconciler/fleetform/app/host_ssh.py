"""
How the user's own OpenSSH reaches an instance of a cloud: as a host over SSH, with the key of the environment.

The controller creates this key and keeps it with its state. It opens all hosts of the environment, so no other user may
read it, and it is not copied for them.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from fleetform.app.ledger import routed_hosts
from fleetform.app.problems import HostProblem
from fleetform.model.instance import SSH, Instance, request_of
from fleetform.providers.contract.errors import PermanentError

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace

__all__ = ["reached_over_ssh"]


def reached_over_ssh(workspace: Workspace, instance: Instance) -> Instance:
    """
    Return an instance of a cloud as the host over SSH that it is.

    Raises:
        HostProblem: It has no address or no known host key yet, or this user has not the key that opens it.
    """
    try:
        endpoint = routed_hosts(workspace).ssh_endpoint(request_of(instance))
    except PermanentError as problem:
        raise HostProblem(str(problem), f"{problem.advice}, or {_BY_CONTROLLER}") from problem
    except PermissionError as problem:
        raise _unreadable(str(problem.filename)) from problem
    if endpoint is None:
        missing = (
            "its host key is not known yet" if instance.is_created else "it is not created yet"
        )
        raise HostProblem(
            f"host {instance.name} cannot be reached: {missing}",
            f"`fleetform fleet show {instance.fleet}` shows what it waits for",
        )
    key = endpoint["identity_file"]
    if not os.access(key, os.R_OK):
        raise _unreadable(key)
    return dataclasses.replace(instance, provider=SSH, endpoint=endpoint)


_BY_CONTROLLER = "run the command as the user who runs the controller"


def _unreadable(path: str) -> HostProblem:
    return HostProblem(
        f"this user may not read {path}, the SSH key of the hosts of this environment",
        _BY_CONTROLLER,
    )
