"""
One environment on this machine: its tree, and where its state lies.

Opening one reads `environment.yaml` and nothing else, so that `ps` and `logs` cost what they
show. Heavy drivers are imported by the call that needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from fleetform.agents.protocol.naming import short_uid
from fleetform.app.default_environment import default_root
from fleetform.app.paths import StatePaths, state_home
from fleetform.app.problems import LedgerProblem, WorkspaceProblem
from fleetform.app.trees import TreeLoader, known_environment

if TYPE_CHECKING:
    from fleetform.model.leadership import Holder
    from fleetform.model.ports import LogStore, Reader
    from fleetform.spec.desired import Environment, Loaded

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
    """Where the tree is and where its state lies. `open` makes one."""

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

    def load(self) -> Loaded:
        """Read the whole tree; what is wrong with it comes as findings."""
        return self._trees.load()

    def load_with(self, buffers: Mapping[str, bytes]) -> Loaded:
        """Read the tree as it would be with other contents of some files, by path in the tree."""
        return self._trees.load_with(buffers)

    def reader(self) -> Reader | None:
        """Open the ledger for reading; None when nothing was ever applied."""
        from fleetform.app.ledger_address import has_address
        from fleetform.store.errors import LedgerError

        try:
            if has_address():
                return self._postgres_reader()
            if not self.paths.ledger.exists():
                return None
            from fleetform.store.snapshot import open_snapshot

            return open_snapshot(self.paths.ledger, self.environment.uid)
        except LedgerError as problem:
            raise LedgerProblem(str(problem), problem.advice) from problem

    def _postgres_reader(self) -> Reader | None:
        from fleetform.app.ledger_address import ledger_address, postgresql
        from fleetform.store.errors import MissingLedgerError

        address = ledger_address()
        assert address is not None, "the caller has asked"
        with postgresql():
            from fleetform.store.postgres.opening import open_postgres_snapshot
        try:
            return open_postgres_snapshot(address, self.environment.uid)
        except MissingLedgerError:
            return None

    def logs(self) -> LogStore:
        from fleetform.logs import FileLogStore

        return FileLogStore(self.paths.logs)

    def manager(self) -> Holder | None:
        """Say who manages the environment now, if anybody does."""
        from fleetform.app.managing import holder

        return holder(self)
