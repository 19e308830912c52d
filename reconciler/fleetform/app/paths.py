"""Where state lies: outside every tree, keyed by the environment's uid. And where caches do."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from fleetform.app.privacy import require_private


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


@dataclass(frozen=True, slots=True)
class StatePaths:
    """All paths of one environment. `hosts` and `volumes` are the world: they outlive a ledger."""

    home: Path
    environment_uid: str

    @property
    def environment(self) -> Path:
        return self.home / "environments" / self.environment_uid

    @property
    def ledger(self) -> Path:
        return self.environment / "ledger.db"

    @property
    def manager_lock(self) -> Path:
        return self.environment / "manager.lock"

    @property
    def manager_request(self) -> Path:
        """Locked by each process that asks the manager to give `manager_lock` up."""
        return self.environment / "manager.request"

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
