"""
One environment on this machine: its tree, and where its state lies.

Opening one reads `environment.yaml` and nothing else, so that `ps` and `logs` cost what they
show. Heavy drivers are imported by the call that needs them.
"""

from __future__ import annotations

import contextlib
import os
import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, TypeVar

from fleetform.agents.protocol.naming import short_uid
from fleetform.app.paths import (
    CONFIG_VARIABLE,
    StatePaths,
    absolute_folder,
    cache_home,
    config_home,
    state_home,
)
from fleetform.app.problems import LedgerProblem, WorkspaceProblem
from fleetform.spec.private_folder import make_private_folder

if TYPE_CHECKING:
    from fleetform.model.leadership import Holder
    from fleetform.model.ports import LogStore, Reader
    from fleetform.spec.desired import Environment, Loaded
    from fleetform.spec.tree.cache import ReadingCache
    from fleetform.store.backend import LedgerBackend


T = TypeVar("T")
D = TypeVar("D")

ENVIRONMENT_FILE = "environment.yaml"


def find_root(path: str | None) -> Path:
    """
    Find the environment: `path`, or the nearest folder upward from here that is one.

    Raises:
        WorkspaceProblem: There is none.
    """
    if path is not None:
        root = Path(path).absolute()
        if (root / ENVIRONMENT_FILE).is_file():
            return root
        raise WorkspaceProblem(
            f"{path} is not an environment: it has no {ENVIRONMENT_FILE}",
            "name the folder that has one, or create one with `fleetform init`",
        )
    if (around := root_around()) is not None:
        return around
    raise WorkspaceProblem(
        f"no {ENVIRONMENT_FILE} here or in any folder above",
        "go to an environment's folder, name it with `-C PATH`, or create one with `fleetform init`"
        + _default_words(),
    )


def validate_words(root: Path) -> str:
    """Return the command that checks the environment at `root`, as it works in the current folder."""
    where = "" if root_around() == root else f" -C {quote(str(root))}"
    return f"`fleetform validate{where}`"


def _default_words() -> str:
    """Name the default environment: a person outside of any may mean that one."""
    try:
        root = default_root()
    except WorkspaceProblem:
        return ""  # The command did not ask for it.
    return "" if root is None else f"; the default environment is `-C {quote(str(root))}`"


def root_around() -> Path | None:
    """Return the nearest folder upward from here that is an environment; None where there is none."""
    here = Path.cwd()
    folders = (here, *here.parents)
    return next((one for one in folders if (one / ENVIRONMENT_FILE).is_file()), None)


class Workspace:
    """One environment: where its configuration and its state are. `open` makes one."""

    def __init__(self, root: Path, environment: Environment) -> None:
        self.root = root
        self.environment = environment
        self.state = state_home()
        self.paths = StatePaths(self.state, environment.uid)
        self._trees = TreeLoader(root)

    @classmethod
    def open(cls, path: str | None = None) -> Workspace:
        """
        Raises:
            WorkspaceProblem: There is no environment, or its file cannot be used.
        """
        root = find_root(path)
        environment = known_environment(root)
        if environment is not None:
            return cls(root, environment)
        from fleetform.model.figures import counted
        from fleetform.spec.findings import Level
        from fleetform.spec.tree import read_environment

        environment, findings = read_environment(root)
        if environment is None:
            wrong = tuple(one for one in findings if one.level is Level.ERROR)
            if not wrong:
                raise WorkspaceProblem(
                    f"{root / ENVIRONMENT_FILE} is `abstract`: other environments extend it, and"
                    " nothing is created for it",
                    "name the folder of an environment that extends it",
                )
            raise WorkspaceProblem(
                f"{root / ENVIRONMENT_FILE} has {counted(len(wrong), 'error')}, and fleetform"
                " needs it",
                f"correct it first; {validate_words(root)} checks it",
                findings=wrong,
            )
        return cls(root, environment)

    def require_same_uid(self) -> None:
        """
        Raises:
            WorkspaceProblem: `environment.yaml` is another environment's by now, or cannot be used.
        """
        uid = Workspace.open(str(self.root)).environment.uid
        if uid != self.environment.uid:
            raise WorkspaceProblem(
                f"{ENVIRONMENT_FILE} now has the uid {short_uid(uid)}, and the plan is of environment"
                f" {short_uid(self.environment.uid)}",
                "nothing was changed; put the uid back: it names the state and never changes",
            )

    def load(self, buffers: Mapping[str, bytes] | None = None) -> Loaded:
        """Read the whole configuration; see `TreeLoader.load`."""
        return self._trees.load(buffers)

    def reader(self) -> Reader | None:
        """Open the ledger for reading; None when nothing was ever applied."""
        from fleetform.store.errors import LedgerError

        try:
            return self.backend().open_reader(self.environment.uid)
        except LedgerError as problem:
            raise LedgerProblem(str(problem), problem.advice) from problem

    def read(self, call: Callable[[Reader], T], otherwise: D) -> T | D:
        """Return what `call` reads of the ledger; `otherwise` when nothing was ever applied."""
        reader = self.reader()
        if reader is None:
            return otherwise
        with contextlib.closing(reader):
            return call(reader)

    def backend(self) -> LedgerBackend:
        """
        Return the place of its ledger; the address is read each time, as it may change meanwhile.

        Raises:
            LedgerProblem: The address cannot be used.
        """
        from fleetform.app.paths import ledger_backend

        return ledger_backend(self.state)

    def logs(self) -> LogStore:
        from fleetform.logs import FileLogStore

        return FileLogStore(self.paths.logs)

    def manager(self) -> Holder | None:
        """
        Return the manager of the environment, or None.

        Raises:
            LedgerUnavailable: Its ledger does not answer now.
            LedgerProblem: Its ledger cannot be used.
        """
        from fleetform.app.managing import problems

        with problems():
            return self.backend().holder(self.environment.uid)


# Loads a tree with what is known of it from before.
# The cache lies beside the state, in a folder of its own that a user may delete: it is never
# asked for what is true, only whether the work has been done already.


class TreeLoader:
    """For one configuration; a process that loads repeatedly keeps it, and reads the cache once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = cache_home()
        self._cache: ReadingCache | None = None
        self._lock = threading.Lock()

    def load(self, buffers: Mapping[str, bytes] | None = None) -> Loaded:
        """
        Read the whole configuration; what is wrong with it comes as findings.

        With `buffers`, read it as it would be with other contents of some files, by path in the
        configuration. Nothing of this is kept: the contents may never be written.
        """
        from fleetform.spec.tree import load_tree

        # A cache serves one load at a time, and a second one is not worth waiting for.
        if self._folder is None or not self._lock.acquire(blocking=False):
            return load_tree(self._root, buffers=buffers)
        try:
            from fleetform.spec.tree.cache_file import open_cache, save_cache

            folder = self._folder / "readings"
            if buffers is not None:
                # A cache of its own: what is read of buffers must not count as read of files.
                cache = open_cache(folder, self._root)
                return load_tree(self._root, cache=cache, buffers=buffers)
            if self._cache is None:
                self._cache = open_cache(folder, self._root)
            loaded = load_tree(self._root, cache=self._cache)
            save_cache(self._cache, folder, self._root)
            return loaded
        finally:
            self._lock.release()


def known_environment(root: Path) -> Environment | None:
    """Return the environment at `root`, if its file is as it was when the configuration was read last."""
    home = cache_home()
    if home is None:
        return None
    from fleetform.spec.tree.cache_format import kept_environment

    return kept_environment(home / "readings", root)


def load_alone(root: Path, file: str) -> Loaded:
    """Read one file that belongs to no environment; `root` bounds what it may name."""
    from fleetform.spec.tree import load_file

    home = cache_home()
    if home is None:
        return load_file(root, file)
    from fleetform.spec.tree.cache_file import open_cache, save_cache

    folder = home / "readings"
    cache = open_cache(folder, root / file)
    loaded = load_file(root, file, cache=cache)
    save_cache(cache, folder, root / file)
    return loaded


# The environment of commands that are typed outside of any: where it is, and how it is created.
# `submit` has to work in the first folder that a person tries it in, so it creates this one. It is not
# in git and has no reviews. Commands that submit, follow and end runs use it, and so do those that show
# what exists and what was done. Commands that check, plan, apply or edit a configuration never do:
# outside an environment they would change, or find right, another one than the person thinks of.

VARIABLE: Final = "FLEETFORM_ENVIRONMENT"
"""Names another environment's folder, which is used as it is and never created."""

FLEET: Final = "local"
"""The fleet of the default environment: this machine."""

_FILE: Final = "environment.yaml"
_FILES: Final = {
    _FILE: "type: environment\nname: default\n"
    "# Stamped on everything that is created from this folder: never change it.\nuid: {uid}\n",
    "fleet.yaml": f"# This machine, with what it has.\ntype: fleet\nname: {FLEET}\nnodes: 1\nlocal: true\n",
}


def default_root() -> Path | None:
    """
    Return the folder of the default environment; None where there is none yet.

    Raises:
        WorkspaceProblem: FLEETFORM_ENVIRONMENT names no environment, or the folder is damaged.
    """
    if named := os.environ.get(VARIABLE):
        root = absolute_folder(VARIABLE, named)
        if (root / _FILE).is_file():
            return root
        raise WorkspaceProblem(
            f"{VARIABLE} is `{named}`, which is not an environment: it has no {_FILE}",
            f"set it to the folder of one (`fleetform init {named}` creates one), or unset it",
        )
    place = _place()
    if place is None or not os.path.lexists(place):
        return None
    if (place / _FILE).is_file():
        return place
    if place.is_dir() and not any(place.iterdir()):
        return None
    raise WorkspaceProblem(
        f"the default environment {place} is damaged: it has no {_FILE}",
        "put the file back, which has the uid of its runs; or move the folder away, and"
        " `fleetform submit` creates a new one without them",
    )


def create_default() -> Path:
    """
    Create the default environment, unless another process was faster; returns its folder.

    Raises:
        WorkspaceProblem: There is no folder for it, or it cannot be written.
    """
    import shutil
    import tempfile

    place = _place()
    if place is None:
        raise WorkspaceProblem(
            f"there is no folder for a default environment: {CONFIG_VARIABLE} is empty, or there is"
            " no home folder",
            f"set {VARIABLE} to the folder of an environment, or name one with `-C PATH`",
        )
    try:
        make_private_folder(place.parent)
        # Complete before it has its name: a second `submit` never reads half of it.
        made = Path(tempfile.mkdtemp(prefix=".default-", dir=place.parent))
        try:
            _write(made)
            # Onto a folder that has anything in it, this fails.
            made.rename(place)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as problem:
        if (place / _FILE).is_file():
            return place
        raise WorkspaceProblem(
            f"the default environment {place} cannot be created: {problem.strerror}",
            f"set {VARIABLE} to the folder of an environment, or name one with `-C PATH`",
        ) from problem
    return place


def is_created_here(root: Path) -> bool:
    """Tell whether an environment is the one that `create_default` creates: its fleet may be applied."""
    return root == _place()


def _place() -> Path | None:
    home = config_home()
    return None if home is None else home / "default"


def _write(folder: Path) -> None:
    for name, text in _FILES.items():
        path = folder / name
        path.write_text(text.format(uid=uuid.uuid4().hex), encoding="utf-8")
        path.chmod(0o600)
