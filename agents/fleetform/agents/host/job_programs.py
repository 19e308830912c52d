"""
Places programs of the agent where jobs find them.

They lie in the agent's folder, named by their content, because a job may outlive the archive of the
agent that started it. A folder appears complete, by one rename.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping

from fleetform.agents.host.accounts import share


def place(folder: str, files: Mapping[str, bytes], *, is_shared: bool = False) -> str:
    """
    Return the path of a folder with these files below `folder`, made unless it is there.

    All accounts can read one that is shared.

    Raises:
        OSError: It cannot be made.
    """
    content = b"\0".join(part for name in sorted(files) for part in (name.encode(), files[name]))
    path = f"{folder}/{hashlib.sha256(content).hexdigest()[:16]}"
    if not os.path.isdir(path):
        _make(path, files, is_shared=is_shared)
    return path


def python_script(arguments: str) -> bytes:
    """
    Write a shell script that runs Python with `arguments`, as a shell reads them.

    A `#!` line takes 127 bytes, and the path of a Python may be longer. `-I -S`: neither variables of
    the job nor packages of the host change what it does. `-B`: it writes nothing beside itself.
    """
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S -B {arguments} "$@"\n'.encode()


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
