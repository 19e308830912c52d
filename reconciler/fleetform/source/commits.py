"""
Commits of changed files, made by git as its user would make them.

Committing is the user's own act: author, signature and hooks are as their git says. What they
have staged or changed besides stays as it is. On the branch that is checked out that is
`git commit --only`; on a new one the commit is put together in an index of its own, so that the
working tree does not move.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from fleetform.source.git import working_tree
from fleetform.spec.dataclass import dataclass

__all__ = [
    "Committed",
    "Files",
    "GitRefused",
    "changed_files",
    "commit",
    "commit_on_branch",
    "has_git",
    "ignored_files",
    "push",
    "run_git",
]


class GitRefused(Exception):
    """Git will not, or is not there. `message` is a clause for people, `advice` the next step."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


@dataclass(frozen=True, slots=True)
class Committed:
    """
    A commit that was made.

    `commit` is its whole id; `branch` is empty where none is checked out.
    """

    commit: str
    branch: str


Files = Mapping[Path, bytes | None]
"""What each file is to contain in the commit; None: it is not to be there."""


def changed_files(root: Path, files: Sequence[Path]) -> tuple[Path, ...]:
    """
    Name those of `files` that are not as in the last commit, or that it does not know.

    Raises:
        GitRefused: There is no git, no repository, or no commit yet.
    """
    top = _top(root)
    if not _succeeds(top, "rev-parse", "--verify", "--quiet", "HEAD"):
        raise GitRefused(
            "the repository has no commit yet, and none is made of a part of it",
            "make the first one yourself: `git add . && git commit`",
        )
    return tuple(
        file for file in files if run_git(top, "status", "--porcelain", "--", _below(top, file))
    )


def ignored_files(root: Path, files: Sequence[Path]) -> frozenset[Path]:
    """
    Name those that git does not know and is told to ignore.

    Raises:
        GitRefused: There is no git, or no repository.
    """
    top = _top(root)
    return frozenset(
        file for file in files if _succeeds(top, "check-ignore", "--quiet", "--", _below(top, file))
    )


def commit(root: Path, files: Sequence[Path], message: str) -> Committed:
    """
    Commit these files as they are now, on what is checked out; nothing else is in the commit.

    Raises:
        GitRefused: Git, or one of the user's hooks, refuses.
    """
    top = _top(root)
    names = [_below(top, file) for file in files]
    # `--only` knows no file that git has never heard of.
    there = [name for name, file in zip(names, files, strict=True) if file.exists()]
    if there:
        run_git(top, "add", "--intent-to-add", "--", *there)
    run_git(top, "commit", "--quiet", "--only", "--message", message, "--", *names)
    return Committed(run_git(top, "rev-parse", "HEAD"), _branch(top))


def commit_on_branch(root: Path, files: Files, message: str, branch: str) -> Committed:
    """
    Make a new branch of the last commit and one more with these files on it.

    Nothing that is checked out or staged changes.

    Raises:
        GitRefused: There is a branch of that name, or git or a hook refuses.
    """
    top = _top(root)
    if not _succeeds(top, "check-ref-format", "--branch", branch):
        raise GitRefused(f"`{branch}` cannot be the name of a branch", "choose another name")
    if _succeeds(top, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"):
        raise GitRefused(f"there is a branch `{branch}` already", "choose another name")
    with tempfile.TemporaryDirectory(prefix="fleetform-commit-") as folder:
        index = {"GIT_INDEX_FILE": f"{folder}/index"}
        run_git(top, "read-tree", "HEAD", env=index)
        for file, content in files.items():
            _stage(top, file, content, index)
        _hook(top, index, "pre-commit")
        text = Path(folder, "COMMIT_EDITMSG")
        text.write_text(f"{message}\n", encoding="utf-8")
        _hook(top, index, "commit-msg", str(text))
        tree = run_git(top, "write-tree", env=index)
        made = run_git(top, "commit-tree", *_signed(top), "-p", "HEAD", "-F", str(text), tree)
        # From nothing: a branch that somebody made meanwhile is not moved.
        reference = f"refs/heads/{branch}"
        run_git(top, "update-ref", "-m", f"commit: {message}", reference, made, "0" * len(made))
    return Committed(made, branch)


def push(root: Path, branch: str, remote: str = "") -> str:
    """
    Push a branch; returns the remote's name.

    Raises:
        GitRefused: There is no remote, or it refuses.
    """
    top = _top(root)
    if not branch:
        raise GitRefused("no branch is checked out, so there is none to push", "pass --branch NAME")
    chosen = remote or _remote_of(top, branch)
    if not chosen:
        raise GitRefused(
            "the repository has no remote to push to", "add one with `git remote add origin URL`"
        )
    run_git(top, "push", "--quiet", "--set-upstream", chosen, branch)
    return chosen


def current_branch(root: Path) -> str:
    """
    Name the branch that is checked out; empty where none is.

    Raises:
        GitRefused: It is no repository.
    """
    return _branch(_top(root))


def _stage(top: Path, file: Path, content: bytes | None, index: Mapping[str, str]) -> None:
    name = _below(top, file)
    if content is None:
        run_git(top, "update-index", "--force-remove", "--", name, env=index)
        return
    # With the path's own filters and line ends, as `git add` would have it.
    blob = run_git(top, "hash-object", "-w", "--stdin", "--path", name, stdin=content)
    known = run_git(top, "ls-files", "--stage", "--", name, env=index)
    mode = known.split()[0] if known else "100644"
    run_git(top, "update-index", "--add", "--cacheinfo", f"{mode},{blob},{name}", env=index)


def _hook(top: Path, index: Mapping[str, str], name: str, *arguments: str) -> None:
    run_git(top, "hook", "run", "--ignore-missing", name, "--", *arguments, env=index)


def _signed(top: Path) -> list[str]:
    # `commit` heeds this setting and `commit-tree` does not (git-commit-tree(1)).
    said = _succeeds(top, "config", "commit.gpgSign")
    return (
        ["-S"] if said and run_git(top, "config", "--type=bool", "commit.gpgSign") == "true" else []
    )


def _remote_of(top: Path, branch: str) -> str:
    for key in (f"branch.{branch}.pushRemote", "remote.pushDefault", f"branch.{branch}.remote"):
        if _succeeds(top, "config", key):
            return run_git(top, "config", key)
    remotes = run_git(top, "remote").split()
    return "origin" if "origin" in remotes else remotes[0] if len(remotes) == 1 else ""


def _branch(top: Path) -> str:
    is_on_one = _succeeds(top, "symbolic-ref", "--quiet", "HEAD")
    return run_git(top, "symbolic-ref", "--short", "HEAD") if is_on_one else ""


def _top(root: Path) -> Path:
    if not has_git():
        raise GitRefused("git is not installed", "leave out --commit, or install git")
    top = working_tree(root)
    if top is None:
        raise GitRefused(
            f"{root} is in no git repository", "leave out --commit, or make one with `git init`"
        )
    return top


def _below(top: Path, file: Path) -> str:
    """The file's path from the top; its folder may not be there yet, or be a link."""
    return os.path.relpath(file.parent.resolve() / file.name, top.resolve())


def has_git() -> bool:
    return shutil.which("git") is not None


def _succeeds(top: Path, *arguments: str) -> bool:
    try:
        run_git(top, *arguments)
    except GitRefused:
        return False
    return True


def run_git(
    top: Path,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
) -> str:
    """
    Run git in a folder as its user would; returns what it prints, without the last line's end.

    Raises:
        GitRefused: It fails, with what it says.
    """
    # Where the program is missing is said above; the library would refuse to be imported.
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    from git import Git, GitCommandError

    # A name with a star in it is that file and no pattern; of names to ignore git asks no less.
    literal = {} if arguments[0] == "check-ignore" else {"GIT_LITERAL_PATHSPECS": "1"}
    environment = {**os.environ, **literal, **(env or {})}
    with tempfile.TemporaryFile() as given:
        given.write(stdin or b"")
        given.seek(0)
        try:
            said = Git(str(top)).execute(["git", *arguments], istream=given, env=environment)
        except GitCommandError as refusal:
            words = _words(refusal.stderr) or _words(refusal.stdout) or "it says nothing"
            raise GitRefused(f"git {arguments[0]} refused: {words}") from refusal
    assert isinstance(said, str), "text was asked for"
    return said


def _words(stream: str | None) -> str:
    """What git printed, without the label and the quotes that the library puts around it."""
    said = (stream or "").strip()
    return said.removeprefix("stderr: ").removeprefix("stdout: ").strip().strip("'").strip()
