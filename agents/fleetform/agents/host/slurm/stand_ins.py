"""
Places the stand-ins on the host, and gives jobs with `compat: slurm` what only the host knows.

The commands run from a copy in the agent's folder, because a job may outlive the archive of the agent
that started it. The copy is named by its content and appears complete, by one rename.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pkgutil
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping

from fleetform.agents.host import layout
from fleetform.agents.host.accounts import share
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
    files = _files()
    content = b"\0".join(part for name in sorted(files) for part in (name.encode(), files[name]))
    path = f"{root}/{layout.SLURM}/{hashlib.sha256(content).hexdigest()[:16]}"
    if not os.path.isdir(path):
        _make(path, files, is_shared=is_shared)
    return f"{path}/bin"


def _make(path: str, files: Mapping[str, bytes], *, is_shared: bool) -> None:
    parent = os.path.dirname(path)
    os.makedirs(parent, mode=0o700, exist_ok=True)
    new = tempfile.mkdtemp(dir=parent, prefix=".new-")
    try:
        for name, data in files.items():
            os.makedirs(os.path.dirname(f"{new}/{name}"), mode=0o700, exist_ok=True)
            descriptor = os.open(f"{new}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o500)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
        if is_shared:
            share(parent, new)
        os.rename(new, path)
    except OSError:
        shutil.rmtree(new, ignore_errors=True)
        if not os.path.isdir(path):  # Another thread may have been first.
            raise


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
        files[f"bin/{command}"] = _wrapper(command)
    return files


def _wrapper(command: str) -> bytes:
    """
    Write a shell script, because a `#!` line takes 127 bytes and the path of a Python may be longer.

    `-I -S`: neither variables of the job nor packages of the host change what the command does. `-B`:
    it writes nothing into the agent's folder.
    """
    python = shlex.quote(sys.executable)
    here = '"${0%/*}/../lib"'
    return f'#!/bin/sh\nexec {python} -I -S -B {here} {command} "$@"\n'.encode()
