"""
The accounts that jobs run as where the agent is root: looked up, and what is theirs on the host.

All questions to the host's user database (NSS) are asked here, in the agent, because a directory
service answers in milliseconds or in seconds, and a supervisor forks too often for that.

The working directory of such a job is not in the agent's root, which is closed to everyone else: it is
in a folder of its own below `layout.SHARED`. What its supervisor keeps stays in the agent's root, so that no
job can change where root writes its output or reads its result.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import signal
import stat
from collections.abc import Callable, Mapping
from typing import NoReturn

from fleetform.agents.host import credentials, layout
from fleetform.agents.host.launch import Account

_READABLE = 0o755
_EXECUTABLE = 0o555
_PASSAGE = 0o711
"""Accounts pass through, and see no names of others."""

_REFUSED = "-1"

_LISTED_MAX = 1000
"""A report travels with each hello: a site with more accounts is asked about one at a time."""

_LOCAL_DATABASES = frozenset({"files", "compat", "db", "systemd"})
"""Those whose accounts getpwent(3) lists; directory services mostly list none."""

_UMASK = 0o022


class AccountError(Exception):
    """No job can run as the account on this host; the message says why and what to do."""


def own_name() -> str:
    """Return the name of this process's account; its number where the database has no name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def find(name: str) -> Account | None:
    """
    Look an account up; None where the name is empty or the agent's own account.

    Raises:
        AccountError: This host does not have it, or the agent may not use it.
    """
    own = own_name()
    if name in {"", own}:
        return None
    if os.geteuid() != 0:
        raise AccountError(
            f"the agent of this host runs as {own} and cannot start jobs as {name}: sign in as root or"
            " with `become: sudo`, or set `run_as: agent` in the fleet"
        )
    try:
        entry = pwd.getpwnam(name)
    except (KeyError, ValueError):  # A NUL is in no name.
        raise AccountError(
            f"account {name} does not exist on this host: create it, for example with `useradd"
            f" --create-home {name}`"
        ) from None
    if entry.pw_uid == 0:
        raise AccountError(
            f"account {name} is root on this host (user id 0): root needs `run_as: root` in the fleet"
        )
    groups = sorted({*os.getgrouplist(entry.pw_name, entry.pw_gid), entry.pw_gid})
    return Account(
        entry.pw_name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir, _umask_of(entry.pw_gecos)
    )


def listed() -> tuple[tuple[str, ...], bool]:
    """Return the names of this host's accounts, sorted, and whether these are all that it has."""
    names = sorted({entry.pw_name for entry in pwd.getpwall()})
    if len(names) > _LISTED_MAX:
        return (), False
    return tuple(names), _databases() <= _LOCAL_DATABASES and not any(
        name.startswith("+") for name in names
    )


def _databases() -> set[str]:
    """Return where accounts come from: nsswitch.conf(5)."""
    for line in _lines("/etc/nsswitch.conf"):
        name, colon, services = line.partition("#")[0].partition(":")
        if colon and name.strip() == "passwd":
            return {word for word in services.split() if not word.startswith("[")}
    return {"files"}


def _umask_of(description: str) -> int:
    """Return the umask of a login, as pam_umask(8) finds it: of the account, else of the host."""
    for part in description.split(","):
        if part.startswith("umask="):
            return _octal(part[len("umask=") :])
    for line in _lines("/etc/login.defs"):
        words = line.split()
        if len(words) >= 2 and words[0] == "UMASK":
            return _octal(words[1])
    return _UMASK


def _octal(text: str) -> int:
    try:
        return int(text, 8) & 0o777
    except ValueError:
        return _UMASK


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


# -- folders --------------------------------------------------------------------------------------


def make_passage(path: str) -> None:
    """
    Make a folder below `layout.SHARED` that all accounts may pass through and none but root may change.

    Raises:
        OSError: It cannot be made.
        AccountError: Another account owns one of its folders, and could exchange what is in it.
    """
    assert path == layout.SHARED or path.startswith(f"{layout.SHARED}/"), path
    below = path[len(layout.SHARED) :].split("/")[1:]
    for count in range(len(below) + 1):
        folder = "/".join([layout.SHARED, *below[:count]])
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        seen = os.lstat(folder)
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != 0 or seen.st_mode & 0o022:
            raise AccountError(
                f"{folder} must be a folder that belongs to root and that no other account can write"
                f" to: `chown root {folder}; chmod {_PASSAGE:o} {folder}`"
            )
        if stat.S_IMODE(seen.st_mode) & _PASSAGE != _PASSAGE:
            os.chmod(folder, _PASSAGE)


def give(path: str, account: Account) -> None:
    """
    Make what is below a folder the account's. Only root may have reached it before.

    Links are not followed. The folder stays root's, which puts a socket into it later; it is opened
    last, because from then on the account can reach what is below.
    """
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            os.lchown(f"{folder}/{name}", account.uid, account.gid)
    os.chmod(path, _READABLE)


def share(parent: str, path: str) -> None:
    """Let all accounts read and execute programs in a folder; they have no secrets."""
    for folder in (parent, *(one for one, _, _ in os.walk(path))):
        os.chmod(folder, _READABLE)
    for folder, _, files in os.walk(path):
        for name in files:
            os.chmod(f"{folder}/{name}", _EXECUTABLE)


def give_volume(path: str, mark: str, account: Account) -> None:
    """
    Give a new volume, which is root's and has nothing but its mark, to the first account that mounts it.

    Its group may use it as well. What has another owner, or data, stays as it is.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        seen = os.fstat(descriptor)
        # Closed to all but root so far, so no other account can have changed what is in it.
        is_new = (seen.st_uid, stat.S_IMODE(seen.st_mode)) == (0, 0o700)
        if is_new and os.listdir(descriptor) == [mark]:
            os.fchown(descriptor, account.uid, account.gid)
            os.fchmod(descriptor, 0o2770)
    finally:
        os.close(descriptor)


def carry_out(account: Account, work: Callable[[], None]) -> None:
    """
    Do work on files as an account, in a process of its own.

    The agent has threads, whose accounts glibc changes all at once.

    Raises:
        OSError: As `work` raised it, with its file name in the message.
        AccountError: `work` raised anything else, or the process ended without an answer.
    """
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _work(account, work, write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answers:
        answer = answers.read().decode("utf-8", "replace")
    os.waitpid(pid, 0)
    number, space, message = answer.partition(" ")
    if not space:
        raise AccountError(f"a process of account {account.name} has ended without an answer")
    if number == _REFUSED:
        raise AccountError(message)
    if int(number):
        raise OSError(int(number), message)


def _work(account: Account, work: Callable[[], None], write_end: int) -> NoReturn:
    answer = "0 done"
    try:
        signal.set_wakeup_fd(-1)
        credentials.become(account)
        os.umask(account.umask)
        work()
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        answer = f"{error.errno or errno.EIO} {where}{error.strerror or error}"
    except BaseException as error:  # noqa: BLE001 -- nothing may go on as a second agent
        answer = f"{_REFUSED} {error}"
    finally:
        try:
            os.write(write_end, answer.encode("utf-8", "backslashreplace")[:4000])
        finally:
            os._exit(0)


def variables(account: Account) -> Mapping[str, str]:
    """Return what the variables of the account's jobs begin with, see `job_environment`."""
    return {"USER": account.name, "LOGNAME": account.name, "HOME": account.home}
