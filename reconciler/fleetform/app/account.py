"""Whose account this process runs as: the owner of what it applies, as the kernel knows it."""

from __future__ import annotations

import os
import pwd

__all__ = ["this_account"]


def this_account() -> str:
    """Return the name of the account by its user id: variables such as USER say what the caller likes."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # A container's user need not be in its passwd.
        return f"uid-{os.getuid()}"
