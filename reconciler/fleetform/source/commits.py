"""
Commits of changed files, with the author and the signature that their git is configured for.

A working copy may be a branch of any author, so nothing that the repository itself names is run: no
hook, filter, file system monitor or signing program (`spec.tree.git`). A commit is put together in an index
of its own, from the files' contents. What is staged or changed besides stays as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fleetform.source.tree import is_changing, working_tree
from fleetform.spec.tree.git import (
    GIT,
    Setting,
    filters_of,
    own_environment,
    read_config,
    without_filters,
    without_programs,
)


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


class _Entry(NamedTuple):
    """A file as an index has it; no blob: it is not there."""

    name: str
    mode: str
    blob: str


class _Made(NamedTuple):
    """A commit that no branch has yet."""

    commit: str
    parent: str
    entries: tuple[_Entry, ...]


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
        file for file in files if run_git(top, *_STATUS, "--porcelain", "--", _below(top, file))
    )


_STATUS = ("status", "--ignore-submodules=dirty")
"""A submodule has a configuration of its own, so that git must not look into it."""


def ignored_files(root: Path, files: Sequence[Path]) -> frozenset[Path]:
    """
    Name those that git does not know and ignores.

    Raises:
        GitRefused: There is no git, or no repository.
    """
    top = _top(root)
    return frozenset(
        file for file in files if _succeeds(top, "check-ignore", "--quiet", "--", _below(top, file))
    )


def require_committable(root: Path, files: Sequence[Path]) -> None:
    """
    Refuse what `commit` would refuse, before the files are written.

    Raises:
        GitRefused: Git is at work here, a merge is under way, or a filter would have to be run.
    """
    top = _top(root)
    _refuse_unfinished_work(top)
    _refuse_filtered(top, [_below(top, file) for file in files])


def commit(root: Path, files: Sequence[Path], message: str) -> Committed:
    """
    Commit these files as they are now, on what is checked out; nothing else is in the commit.

    Raises:
        GitRefused: Git refuses, or `require_committable` does.
    """
    top = _top(root)
    require_committable(root, files)
    contents = {file: file.read_bytes() if file.exists() else None for file in files}
    made = _make(top, contents, message)
    # The index first: where it cannot be written, nothing is committed.
    _enter(top, made.entries)
    run_git(top, "update-ref", "-m", f"commit: {message}", "HEAD", made.commit, made.parent)
    return Committed(made.commit, _branch(top))


def commit_on_branch(root: Path, files: Files, message: str, branch: str) -> Committed:
    """
    Make a new branch of the last commit and one more with these files on it.

    Nothing that is checked out or staged changes.

    Raises:
        GitRefused: There is a branch of that name, git refuses, or a filter would have to be run.
    """
    top = _top(root)
    if not _succeeds(top, "check-ref-format", "--branch", branch):
        raise GitRefused(f"`{branch}` cannot be the name of a branch", "choose another name")
    reference = f"refs/heads/{branch}"
    if _succeeds(top, "rev-parse", "--verify", "--quiet", reference):
        raise GitRefused(f"there is a branch `{branch}` already", "choose another name")
    _refuse_filtered(top, [_below(top, file) for file in files])
    made = _make(top, files, message)
    # From nothing: a branch that another person made meanwhile is not moved.
    nothing = "0" * len(made.commit)
    run_git(top, "update-ref", "-m", f"commit: {message}", reference, made.commit, nothing)
    return Committed(made.commit, branch)


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
    _refuse_programs_of(top, chosen)
    words = ("--quiet", "--receive-pack=git-receive-pack", "--set-upstream", chosen, branch)
    run_git(top, "push", *words, env={"GIT_ALLOW_PROTOCOL": _PROTOCOLS})
    return chosen


_PROTOCOLS = "file:git:http:https:ssh"
"""Others are programs: `ext::` runs what stands behind it."""


def current_branch(root: Path) -> str:
    """
    Name the branch that is checked out; empty where none is.

    Raises:
        GitRefused: It is no repository.
    """
    return _branch(_top(root))


# -- a commit ------------------------------------------------------------------------------


def _make(top: Path, files: Files, message: str) -> _Made:
    """Make a commit of the last one and these files; no branch has it yet."""
    parent = run_git(top, "rev-parse", "HEAD")
    with tempfile.TemporaryDirectory(prefix="fleetform-commit-") as folder:
        index = {"GIT_INDEX_FILE": f"{folder}/index"}
        run_git(top, "read-tree", parent, env=index)
        entries = tuple(_entry(top, file, content, index) for file, content in files.items())
        _enter(top, entries, index)
        tree = run_git(top, "write-tree", env=index)
    text = f"{message}\n".encode()
    made = run_git(top, "commit-tree", *_signed(top), "-p", parent, "-F", "-", tree, stdin=text)
    return _Made(made, parent, entries)


def _entry(top: Path, file: Path, content: bytes | None, index: Mapping[str, str]) -> _Entry:
    name = _below(top, file)
    if content is None:
        return _Entry(name, "", "")
    # With the path's own line ends, as `git add` would have it.
    blob = run_git(top, "hash-object", "-w", "--stdin", "--path", name, stdin=content)
    known = run_git(top, "ls-files", "--stage", "--", name, env=index)
    return _Entry(name, known.split()[0] if known else "100644", blob)


def _enter(top: Path, entries: Sequence[_Entry], env: Mapping[str, str] | None = None) -> None:
    """Write entries into an index, the working tree's own if none is named."""
    for one in entries:
        if one.blob:
            entry = f"{one.mode},{one.blob},{one.name}"
            run_git(top, "update-index", "--add", "--cacheinfo", entry, env=env)
        else:
            run_git(top, "update-index", "--force-remove", "--", one.name, env=env)


def _signed(top: Path) -> list[str]:
    # `commit` heeds this setting and `commit-tree` does not (git-commit-tree(1)).
    said = _succeeds(top, "config", "commit.gpgSign")
    return (
        ["-S"] if said and run_git(top, "config", "--type=bool", "commit.gpgSign") == "true" else []
    )


# -- what is refused -----------------------------------------------------------------------


def _refuse_unfinished_work(top: Path) -> None:
    if is_changing(top):
        raise GitRefused(
            "another git command is running in this repository", "try again once it is done"
        )
    for reference, what in (("MERGE_HEAD", "a merge"), ("CHERRY_PICK_HEAD", "a cherry-pick")):
        if _succeeds(top, "rev-parse", "--verify", "--quiet", reference):
            raise GitRefused(
                f"{what} is under way, and no commit of a part is made meanwhile", "finish it first"
            )


def _refuse_filtered(top: Path, names: Sequence[str]) -> None:
    """Without its filter a file would be committed as it is, also one that is to be encrypted."""
    configured = filters_of(_config(top))
    said = run_git(top, "check-attr", "-z", "filter", "--", *names).split("\0")
    for name, value in zip(said[::3], said[2::3], strict=False):
        if value in configured:
            raise GitRefused(
                f"{name} goes through the filter `{value}`, a program that fleetform does not run",
                f"leave out --commit, then `git commit {name}`",
            )


def _refuse_programs_of(top: Path, remote: str) -> None:
    """A remote may be a program, or a repository within this one, whose hooks would run here."""
    if any(one.is_foreign and one.key == f"remote.{remote}.vcs" for one in _config(top)):
        raise GitRefused(
            f"the remote `{remote}` is a program that the repository names (remote.{remote}.vcs)",
            "push it yourself",
        )
    address = run_git(top, "remote", "get-url", "--push", remote)
    here = top.resolve()
    if "://" not in address and (top / address).resolve().is_relative_to(here):
        raise GitRefused(
            f"the remote `{remote}` is in the working tree, and git would run its hooks",
            "push it yourself",
        )


# -- asking git ----------------------------------------------------------------------------


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


def _config(top: Path) -> tuple[Setting, ...]:
    try:
        return read_config(top, own_environment())
    except OSError as problem:
        raise GitRefused(f"git cannot be asked: {problem}") from problem


def _options(top: Path) -> list[str]:
    """Options that keep git from running what the repository names."""
    config = _config(top)
    try:
        return [*without_filters(config), *without_programs(config)]
    except ValueError as problem:
        raise GitRefused(
            f"the repository's configuration names {problem}", "look at `git config --local --list`"
        ) from problem


def run_git(
    top: Path,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
) -> str:
    """
    Run git in a folder, without the programs that the repository there names.

    Returns what it prints, without the last line's end.

    Raises:
        GitRefused: It fails, with what it says.
    """
    # A name with a star in it is that file and no pattern; of names to ignore git asks no less.
    literal = {} if arguments[0] == "check-ignore" else {"GIT_LITERAL_PATHSPECS": "1"}
    asked = subprocess.run(
        [*GIT, *_options(top), *arguments],
        cwd=top,
        env={**own_environment(), **literal, **(env or {})},
        input=stdin or b"",
        capture_output=True,
        check=False,
    )
    said, complaint = (
        stream.decode("utf-8", "surrogateescape").removesuffix("\n")
        for stream in (asked.stdout, asked.stderr)
    )
    if asked.returncode:
        words = complaint.strip() or said.strip() or "it says nothing"
        raise GitRefused(f"git {arguments[0]} refused: {words}")
    return said
