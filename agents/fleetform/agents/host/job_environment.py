"""
The environment variables that a host gives to each job, before those of its document.

They come from this table and from the host's user database, never from the process that started
the agent: a job must not depend on the shell that first ran `apply`. None of them is
in a message or a digest, so another default in a later version re-runs nothing.
`docs/how-to/runs.md` has the table for people.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, MutableMapping

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The folders that Debian, Fedora and the base images of containers have, in systemd's order."""

AGENT_PREFIX = "FLEETFORM_AGENT_"
"""Settings of an agent that is started by hand: all that it takes from the process that starts it."""


def of_user(uid: int) -> dict[str, str]:
    """
    Return what a job of this account begins with.

    `HOME` is missing where the user database does not know the account, as in a container that
    runs under any number: the caller gives such a job a folder that it can write to.
    """
    variables = {"PATH": PATH, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        name = str(uid)
    else:
        name = entry.pw_name
        variables["HOME"] = entry.pw_dir
    return {**variables, "USER": name, "LOGNAME": name}


def of_agent(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what an agent runs with: a search path, and its own settings from `environment`."""
    own = {name: value for name, value in environment.items() if name.startswith(AGENT_PREFIX)}
    return {"PATH": PATH, "LANG": "C.UTF-8", **own}


def clean(environment: MutableMapping[str, str]) -> None:
    """Reduce a process's environment to the agent's: what it starts inherits no more than that."""
    kept = of_agent(environment)
    for name in environment.keys() - kept.keys():
        del environment[name]
    environment.update(kept)


def of_this_process() -> dict[str, str]:
    """Return `of_user` for the account that this process runs as, which is that of its jobs."""
    return of_user(os.geteuid())
