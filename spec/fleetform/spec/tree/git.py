"""
Ask git about an untrusted repository: at which commit a configuration is, and what is on the way to another.

A repository's own configuration can name programs: hooks, the file system monitor, filters, a program
that signs. Git runs them as its user, also for a mere question. So these are turned off where the
repository names them; what the machine and the person configure is their own and stays. Objects that
are missing are not fetched, nothing is asked for at the terminal, and nothing is written.

Git runs while documents are being read, so that it costs next to nothing; and where no `.git` is
anywhere above the configuration, it is not started at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import subprocess

__all__ = [
    "GIT",
    "Commit",
    "Setting",
    "count_ahead",
    "filters_of",
    "is_ancestor",
    "own_environment",
    "read_config",
    "safe_environment",
    "without_filters",
    "without_programs",
]


GIT = ("git", "-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "--no-optional-locks")
"""Also a person's own `core.hooksPath` may lead into the repository, so that no hook is run at all."""

_LIST = ("config", "--list", "--show-scope", "--null")
_CONFIG_SECONDS = 2
"""It answers in milliseconds, from files; one that is a pipe would never end."""

_OF_A_REPOSITORY = frozenset(
    ("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_EXTERNAL_DIFF",
     "GIT_GRAFT_FILE", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX",
     "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_WORK_TREE")
)  # fmt: skip
"""Set by a hook that runs us, they would speak of another repository."""

_PROGRAMS = {
    "gpg.program": "gpg",
    "gpg.openpgp.program": "gpg",
    "gpg.x509.program": "gpgsm",
    "gpg.ssh.program": "ssh-keygen",
    "gpg.ssh.defaultkeycommand": "",
    "core.sshcommand": "ssh",
    "core.askpass": "",
    "core.gitproxy": "",
}
"""Keys that name a program, and what git takes where nothing is configured."""


class Setting(NamedTuple):
    """One line of git's configuration; `key` as git prints it: section and last word in lower case."""

    scope: str
    key: str
    value: str

    @property
    def is_foreign(self) -> bool:
        """Tell whether the repository itself says so."""
        return self.scope in {"local", "worktree"}


def safe_environment() -> dict[str, str]:
    """The environment for a question: nothing of a person's git, and nothing is fetched or asked."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {**_OFFLINE, "LC_ALL": "C"}


def own_environment() -> dict[str, str]:
    """The environment for a person's own act: author, configuration and keys are as they set them."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}
    return kept | _OFFLINE


_OFFLINE = {
    "GIT_TERMINAL_PROMPT": "0",
    # A partial clone fetches what it lacks, by a program that its configuration names. Git
    # before 2.45 does not know the first; no protocol is left to it then.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
}


def read_config(folder: Path, environment: dict[str, str]) -> tuple[Setting, ...]:
    """
    Read all of git's configuration that holds in `folder`, in order: the last of a key counts.

    Raises:
        OSError: Git cannot be started, or does not answer.
    """
    import subprocess

    try:
        asked = subprocess.run(
            [*GIT, *_LIST],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CONFIG_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as problem:
        raise TimeoutError("git does not answer") from problem
    words = asked.stdout.decode("utf-8", "surrogateescape").split("\0")
    return tuple(
        Setting(scope, *line.partition("\n")[::2])
        for scope, line in zip(words[::2], words[1::2], strict=False)
    )


def filters_of(config: Iterable[Setting]) -> frozenset[str]:
    """Name the filters that are configured, at any level."""
    return frozenset(
        one.key.partition(".")[2].rpartition(".")[0]
        for one in config
        if one.key.startswith("filter.")
    )


def without_filters(config: Iterable[Setting]) -> list[str]:
    """
    Options that take the programs out of each filter that the repository itself brings.

    A filter is run for each file whose time stamp has changed. Those of the machine and of the
    person, such as LFS, run where they are installed; where they are not, git goes on without them.

    Raises:
        ValueError: The name of a filter has an equals sign, at which an option would end.
    """
    settings = tuple(config)
    foreign = filters_of(one for one in settings if one.is_foreign)
    names = filters_of(settings)
    if any("=" in name for name in names):
        raise ValueError("a filter that cannot be turned off")
    return [
        option
        for name in sorted(names)
        for said in (*_IF_INSTALLED, *(_NO_PROGRAM if name in foreign else ()))
        for option in ("-c", f"filter.{name}.{said}")
    ]


_IF_INSTALLED = ("required=false", "process=")
"""Where a filter that runs for many files cannot be started, git gives up; the one for a file it goes without."""

_NO_PROGRAM = ("clean=", "smudge=")


def without_programs(config: Iterable[Setting]) -> list[str]:
    """
    Options that take out each other program that the repository names: to sign, connect or log in.

    What the person has configured for the same is put in its place.

    Raises:
        ValueError: A key has an equals sign, at which an option would end.
    """
    settings = tuple(config)
    foreign = {one.key for one in settings if one.is_foreign}
    own = {one.key: one.value for one in settings if not one.is_foreign}
    options = [
        f"{key}={own.get(key, default)}" for key, default in _PROGRAMS.items() if key in foreign
    ]
    options += _helpers(settings)
    return [word for option in options for word in ("-c", option)]


def _helpers(settings: tuple[Setting, ...]) -> Iterator[str]:
    """An empty helper takes out all before it; then come the person's own ones again."""
    helpers = [
        one for one in settings if one.key.startswith("credential.") and one.key.endswith(".helper")
    ]
    foreign = {one.key for one in helpers if one.is_foreign}
    if any("=" in key for key in foreign):
        raise ValueError("a helper that cannot be turned off")
    for key in sorted(foreign):
        yield f"{key}="
    if foreign:
        yield from (f"{one.key}={one.value}" for one in helpers if not one.is_foreign)


_STATUS = ("status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty", "--", ".")
# Longer than a cold status of a large repository on a slow disk. A commit that comes later is
# not worth waiting for: it is shown, and decides nothing.
_ANSWER_SECONDS = 10


class Commit:
    """Asks when it is made, answers when it is read."""

    def __init__(self, root: Path, bases: Sequence[str] = ()) -> None:
        """`bases` are folders outside of `root` that the tree is made of too, relative to it."""
        self.bases = tuple(bases)
        self._process = _start(root, bases) if _has_repository(root) else None

    def read(self) -> str:
        """The commit, with `+dirty` if files of the tree differ from it; empty outside git."""
        process, self._process = self._process, None
        if process is None:
            return ""
        import subprocess

        try:
            output, _ = process.communicate(timeout=_ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return ""
        return _parse(output) if process.returncode == 0 else ""

    def drop(self) -> None:
        """Cancel the question; after `read` this does nothing."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def is_ancestor(root: Path, commit: str, of: str) -> bool:
    """
    Tell whether a commit is one that another was made from, by the repository around `root`.

    False where that is not known: a commit is not in this clone, or git does not answer.
    """
    asked = ("merge-base", "--is-ancestor", "--end-of-options", commit, of)
    return commit != of and _ask(root, *asked) is not None


def count_ahead(root: Path, commit: str, of: str) -> int | None:
    """Count the commits from `commit` to `of`; None where `of` does not follow on `commit`."""
    if commit == of:
        return 0
    if not is_ancestor(root, commit, of):
        return None
    counted = _ask(root, "rev-list", "--count", "--end-of-options", f"{commit}..{of}")
    return None if counted is None else int(counted)


def _ask(root: Path, *arguments: str) -> str | None:
    """Return what git prints; None where it fails or does not answer."""
    import subprocess

    try:
        asked = subprocess.run(
            [*GIT, *arguments],
            cwd=root,
            env=safe_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_ANSWER_SECONDS,
            check=False,
            text=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stdout if asked.returncode == 0 else None


def _has_repository(root: Path) -> bool:
    folder = root.resolve()
    return any(os.path.lexists(f"{above}/.git") for above in (folder, *folder.parents))


def _start(root: Path, bases: Sequence[str]) -> subprocess.Popen[bytes] | None:
    import subprocess

    environment = safe_environment()
    try:
        options = without_filters(read_config(root, environment))
        return subprocess.Popen(
            [*GIT, *options, *_STATUS, *bases],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, ValueError):
        return None


def _parse(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").splitlines()
    commit = ""
    is_dirty = False
    for line in lines:
        if line.startswith("# branch.oid "):
            commit = line.removeprefix("# branch.oid ").strip()
        elif not line.startswith("#"):
            is_dirty = True
    if not commit or commit == "(initial)":
        return ""
    return commit + "+dirty" * is_dirty
