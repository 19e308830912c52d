"""
A process takes an account's user id and groups: for a moment, or for good.

For processes with one thread, a supervisor or a child that was just forked: glibc would change all
threads of the agent. The user database is not asked here; `accounts` does that before.
"""

from __future__ import annotations

import os

from fleetform.agents.host.launch import Account


class Assumed:
    """
    Be an account as long as the block lasts; None: stay what this process is.

    The real id changes too, because a program that is executed meanwhile must not find root there
    to go back to. The saved id stays root: it is the way back, and exec(2) overwrites it.
    """

    def __init__(self, account: Account | None) -> None:
        self._account = account
        self._groups: list[int] = []

    def __enter__(self) -> None:
        account = self._account
        if account is None:
            return
        self._groups = os.getgroups()
        try:
            # In this order: a process that is no longer root may not change its groups.
            os.setgroups(account.groups)
            os.setresgid(account.gid, account.gid, 0)
            os.setresuid(account.uid, account.uid, 0)
        except OSError:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        if self._account is not None:
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)
            os.setgroups(self._groups)


def become(account: Account) -> None:
    """Be an account for good; nothing leads back."""
    os.setgroups(account.groups)
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
