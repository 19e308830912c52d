"""Who is at the terminal, as the history shows it."""

from __future__ import annotations

import os
import pwd


def who_asks() -> str:
    """
    Name the account by its uid, and the machine: `ada@node1`.

    Not from $USER or $LOGNAME: those say whatever the caller likes.
    """
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # A container's user need not be in its passwd.
        name = f"uid-{uid}"
    # The module `socket` would be three milliseconds of every plan for the same answer.
    return f"{name}@{os.uname().nodename}"
