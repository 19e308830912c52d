"""
Places the stand-ins on the host, and gives jobs with `compat: slurm` what only the host knows.
"""

from __future__ import annotations

import functools
import os
import pkgutil
from collections.abc import Mapping

from fleetform.agents.host import job_programs, layout
from fleetform.agents.host.launch import Account
from fleetform.agents.host.slurm.main import COMMANDS

_PACKAGE = __package__ or ""
_MODULES = ("__init__", "main", "options", "scontrol", "srun")

_MAIN = b"""\
import sys

from fleetform.agents.host.slurm.main import main

raise SystemExit(main(sys.argv[1:]))
"""


def variables(
    env: Mapping[str, str], root: str, directory: str, account: Account | None = None
) -> dict[str, str]:
    """
    Return what the host adds to a job's variables.

    Args:
        env: The job's own so far; PATH among them.
        root: The agent's folder, absolute; with an account, a folder that all accounts can enter.
        directory: Where the commands start, absolute. It stands for the folder that the script was
            submitted from, so that `cd $SLURM_SUBMIT_DIR` finds the files of the run.

        account: Whose processes the job's are; None: this process's account.

    Raises:
        OSError: The commands cannot be placed.
    """
    user, group = os.geteuid(), os.getegid()
    if account is not None:
        user, group = account.uid, account.gid
    return {
        "PATH": f"{place(root, is_shared=account is not None)}:{env['PATH']}",
        "SLURM_SUBMIT_DIR": directory,
        "SLURM_JOB_USER": env.get("USER", ""),
        "SLURM_JOB_UID": str(user),
        "SLURM_JOB_GID": str(group),
    }


def place(root: str, *, is_shared: bool = False) -> str:
    """
    Return the folder of the commands below `root`, made unless it is there.

    All accounts can read one that is shared.
    """
    return f"{job_programs.place(f'{root}/{layout.SLURM}', _files(), is_shared=is_shared)}/bin"


@functools.lru_cache(maxsize=1)
def _files() -> Mapping[str, bytes]:
    """Return the content of the folder, by names relative to it."""
    folder = _PACKAGE.replace(".", "/")
    files = {"lib/__main__.py": _MAIN}
    for module in _MODULES:
        data = pkgutil.get_data(_PACKAGE, f"{module}.py")
        assert data is not None, module
        files[f"lib/{folder}/{module}.py"] = data
    for command in COMMANDS:
        files[f"bin/{command}"] = job_programs.python_script(f'"${{0%/*}}/../lib" {command}')
    return files
