"""Where state lies: outside every tree, keyed by the environment's uid. And where caches do."""

from __future__ import annotations

import os
import pwd
import shlex
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.problems import LedgerProblem
from fleetform.spec.extras import install_extra
from fleetform.store.sqlite import LedgerFiles

if TYPE_CHECKING:
    from fleetform.store.backend import LedgerBackend


def state_home() -> Path:
    """
    Return the user's state folder: FLEETFORM_STATE_HOME, else the XDG one.

    Raises:
        Problem: The first is relative: each folder would have another ledger. Or it is no folder:
            a ledger that cannot be there must not look like one that has nothing in it. Or another
            user could change what lies in it.
    """
    home = _state_home()
    require_private(home, "FLEETFORM_STATE_HOME")
    return home


def _state_home() -> Path:
    if home := os.environ.get("FLEETFORM_STATE_HOME"):
        return _folder("FLEETFORM_STATE_HOME", absolute_folder("FLEETFORM_STATE_HOME", home))
    if xdg := _xdg("XDG_STATE_HOME"):
        return xdg / "fleetform"
    return Path.home() / ".local" / "state" / "fleetform"


CONFIG_VARIABLE = "FLEETFORM_CONFIG_HOME"


def config_home() -> Path | None:
    """
    Return the user's folder of what outlives the state folder: FLEETFORM_CONFIG_HOME, else the XDG
    one. None: nothing is to be kept, since the variable is empty or there is no home.

    Raises:
        Problem: FLEETFORM_CONFIG_HOME is relative, or another user could change what lies there.
    """
    return _private(CONFIG_VARIABLE, _kept(CONFIG_VARIABLE, "XDG_CONFIG_HOME", ".config"))


def cache_home() -> Path | None:
    """
    Return the user's folder of what may be deleted at any time: FLEETFORM_CACHE_HOME, else the
    XDG one. None: nothing is to be kept, since the variable is empty or there is no home.

    Raises:
        Problem: FLEETFORM_CACHE_HOME is relative, or another user could change what lies there: what
            was read of a configuration is believed.
    """
    variable = "FLEETFORM_CACHE_HOME"
    return _private(variable, _kept(variable, "XDG_CACHE_HOME", ".cache"))


def _private(variable: str, home: Path | None) -> Path | None:
    if home is not None:
        require_private(home, variable)
    return home


def _kept(variable: str, xdg_variable: str, folder: str) -> Path | None:
    home = os.environ.get(variable)
    if home is not None:
        return absolute_folder(variable, home) if home else None
    if xdg := _xdg(xdg_variable):
        return xdg / "fleetform"
    try:
        return Path.home() / folder / "fleetform"
    except RuntimeError:
        return None


def absolute_folder(variable: str, value: str) -> Path:
    """
    Return the path that an environment variable names.

    Raises:
        Problem: It is relative, or not UTF-8.
    """
    _require_text(variable, value)
    path = Path(value)
    if path.is_absolute():
        return path
    from fleetform.app.problems import Problem

    raise Problem(
        f"{variable} is `{value}`, a relative path, which depends on the current folder",
        f"set it to an absolute path, such as `{path.absolute()}`",
    )


def _folder(variable: str, path: Path) -> Path:
    """Return a path that is a folder, or is not there yet."""
    try:
        is_other = not stat.S_ISDIR(path.stat().st_mode)
    except NotADirectoryError:
        is_other = True
    except OSError:
        return path
    if not is_other:
        return path
    from fleetform.app.problems import Problem

    raise Problem(
        f"{variable} is `{path}`, which is not a folder",
        "check that its disk is mounted, or set it to another folder",
    )


def _require_text(variable: str, value: str) -> None:
    """Refuse a path that is not UTF-8: databases and agents could not name it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        from fleetform.app.problems import Problem

        raise Problem(
            f"{variable} is `{os.fsencode(value).decode('utf-8', 'backslashreplace')}`, a path that is"
            " not UTF-8",
            "set it to a path of UTF-8 text",
        ) from None


def _xdg(variable: str) -> Path | None:
    """Of the XDG base directory specification: a path that is relative is to be ignored."""
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else None


def environments_folder(home: Path) -> Path:
    """Return the folder of all environments' folders."""
    return home / "environments"


@dataclass(frozen=True, slots=True)
class StatePaths:
    """All paths of one environment. `hosts` and `volumes` are actual state: they outlive a ledger."""

    home: Path
    environment_uid: str

    @property
    def environment(self) -> Path:
        return environments_folder(self.home) / self.environment_uid

    @property
    def ledger(self) -> Path:
        return LedgerFiles(self.environment).ledger

    @property
    def manager_lock(self) -> Path:
        return LedgerFiles(self.environment).manager_lock

    @property
    def manager_request(self) -> Path:
        return LedgerFiles(self.environment).manager_request

    @property
    def background_log(self) -> Path:
        """What the background controller prints."""
        return self.environment / "background.log"

    @property
    def background_start(self) -> Path:
        """How the background controller of this machine was started (`app.controllers`)."""
        return self.environment / "background.json"

    @property
    def hosts(self) -> Path:
        return self.home / "hosts" / self.environment_uid

    @property
    def volumes(self) -> Path:
        """Below it lie the volumes of local fleets whose paths are relative."""
        return self.home / "volumes" / self.environment_uid

    @property
    def logs(self) -> Path:
        return self.environment / "logs"

    @property
    def blobs(self) -> Path:
        return self.environment / "blobs"


# Refuses a folder of state or cache that another user could change, and closes one that others read.
# What lies there is believed and run: the ledger, the agent's archive, sockets that start processes.
# So each folder on the way to it is judged as OpenSSH judges the way to its keys (`StrictModes` in
# sshd_config(5)): it belongs to this user or to root, and no other user can write to it.

_FOLDER = 0o700
_FILE = 0o600


def require_private(home: Path, variable: str) -> None:
    """
    Refuse a home that another user could change, and close it to others; it need not exist yet.

    Args:
        home: Absolute.
        variable: The environment variable that chooses another folder.

    Raises:
        Problem: Says which folder, why, and the command that cures it.
    """
    for folder in _way_to(home):
        try:
            seen = folder.stat()
        except OSError:
            # It is not there yet, or cannot be used: its user reports that.
            continue
        why = _weakness(folder, seen, home)
        if why:
            from fleetform.app.problems import Problem

            raise Problem(
                f"{folder} {why}",
                f"run `{_cure(folder, seen)}`, or set {variable} to a folder that only you can write to",
            )
        if folder == home and stat.S_IMODE(seen.st_mode) & 0o077:
            _close(home)


def _way_to(home: Path) -> Iterator[Path]:
    """Yield home and all folders above it, as it is written and where its links lead."""
    known = set()
    for path in (home, home.resolve()):
        for folder in (path, *path.parents):
            if folder not in known:
                known.add(folder)
                yield folder


# -- one folder -----------------------------------------------------------------------------------


def _weakness(folder: Path, seen: os.stat_result, home: Path) -> str:
    """Say why another user could change what lies in `home`, or nothing."""
    me = os.geteuid()
    if folder == home:
        if seen.st_uid != me:
            return (
                f"belongs to {_name(seen.st_uid)}, who could change what fleetform reads and runs"
            )
        if _is_written_by_others(seen):
            return (
                "can be written to by other users, who could change what fleetform reads and runs"
            )
        return ""
    if seen.st_uid not in {0, me} and _is_mapped(seen.st_uid):
        return (
            f"belongs to {_name(seen.st_uid)}, who could put another folder in the place of {home}"
        )
    # In a sticky folder, such as /tmp, only its owner may rename an entry: see `t` in chmod(1).
    if not seen.st_mode & stat.S_ISVTX and _is_written_by_others(seen):
        return (
            f"can be written to by other users, who could put another folder in the place of {home}"
        )
    return ""


def _cure(folder: Path, seen: os.stat_result) -> str:
    if _is_written_by_others(seen):
        return f"chmod go-w {shlex.quote(str(folder))}"
    return f"chown {_name(os.geteuid())} {shlex.quote(str(folder))}"


def _is_written_by_others(seen: os.stat_result) -> bool:
    if seen.st_mode & stat.S_IWOTH:
        return True
    return bool(seen.st_mode & stat.S_IWGRP) and _has_others(seen.st_gid)


def _has_others(gid: int) -> bool:
    """
    Tell whether a group has members other than this user and root.

    Where each user has a group of their own, umask 002 is usual and gives it all rights.
    """
    import grp

    trusted = {0, os.geteuid()}
    accounts = pwd.getpwall()
    if any(one.pw_gid == gid and one.pw_uid not in trusted for one in accounts):
        return True
    try:
        members = set(grp.getgrgid(gid).gr_mem)
    except KeyError:
        return False
    return bool(members - {one.pw_name for one in accounts if one.pw_uid in trusted})


def _is_mapped(uid: int) -> bool:
    """Tell whether any process here can be this user: in a user namespace all others are 65534."""
    try:
        lines = Path("/proc/self/uid_map").read_text("ascii").splitlines()
    except OSError:
        return True
    ranges = [tuple(map(int, line.split())) for line in lines]
    return any(first <= uid < first + count for first, _, count in ranges)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


# -- what an older version left open --------------------------------------------------------------


def _close(home: Path) -> None:
    """
    Take from others what an older version left them, once: afterwards no other user comes this far.

    Below an agent's folder all was private already, and what lies in volumes is the jobs'.
    """
    home.chmod(_FOLDER)
    for pattern in ("hosts", "hosts/*", "volumes", "volumes/*"):
        for folder in home.glob(pattern):
            folder.chmod(_FOLDER)
    for name in ("agent", "environments", "readings"):
        for place, _, files in os.walk(home / name):
            Path(place).chmod(_FOLDER)
            for path in (Path(place) / file for file in files):
                if not path.is_symlink():
                    path.chmod(_FILE)


# Where the ledger is: a file in the state folder, or the PostgreSQL database that a variable names.
#
# The address has a password in it. So it is read from the environment of this process or from a
# file that only its owner can read, and is not passed on: agents are started without it.

VARIABLE = "FLEETFORM_LEDGER"
"""A URL, `postgresql://…`; not set or empty: the ledger is a SQLite file in the state folder."""

FILE_VARIABLE = "FLEETFORM_LEDGER_FILE"
"""Names a file with that URL in it, which only its owner may read."""

_LONGEST_BYTES = 8192


def ledger_backend(home: Path) -> LedgerBackend:
    """
    Return the place of ledgers that this process uses: the only choice between both kinds.

    Args:
        home: The state folder, which has the ledgers unless a database is named.

    Raises:
        LedgerProblem: The address cannot be read or used, or its driver is not installed. No message
            quotes it.
    """
    url, file = os.environ.get(VARIABLE, ""), os.environ.get(FILE_VARIABLE, "")
    if not url and not file:
        from fleetform.store.sqlite import SqliteBackend

        return SqliteBackend(environments_folder(home))
    if url and file:
        raise LedgerProblem(
            f"both {VARIABLE} and {FILE_VARIABLE} say where the ledger is",
            "unset one of them",
        )
    return _in_database(url or _read(Path(file)))


def _in_database(url: str) -> LedgerBackend:
    from fleetform.store.errors import LedgerError
    from fleetform.store.postgres.address import Address

    try:
        address = Address.parse(url)
    except LedgerError as problem:
        raise LedgerProblem(str(problem), problem.advice) from None
    try:
        from fleetform.store.postgres.backend import PostgresBackend
    except ModuleNotFoundError as missing:
        raise LedgerProblem(
            f"a ledger on PostgreSQL needs the package {missing.name}",
            f"{install_extra('postgresql')}; or unset FLEETFORM_LEDGER",
        ) from missing
    return PostgresBackend(address)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise LedgerProblem(f"{path}, which {FILE_VARIABLE} names, is not a regular file")
            if status.st_mode & 0o077:
                raise LedgerProblem(
                    f"{path} holds the ledger's password and can be read by others",
                    f"run `chmod 600 {path}`",
                )
            return file.read(_LONGEST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is not text"
        raise LedgerProblem(
            f"{path}, which {FILE_VARIABLE} names, cannot be read: {why}",
            "write the address of the ledger into it, and nothing else",
        ) from problem
