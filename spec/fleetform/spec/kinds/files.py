"""Files that a job receives when it starts: files next to the document, repositories, and frozen working copies."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.field_facts import Facts, unit
from fleetform.spec.findings import Level, Problem
from fleetform.spec.kinds.base import Model, not_supported, one_or_many, refuse, sealed_address
from fleetform.spec.kinds.offers import Text
from fleetform.spec.quantities.ranges import shown

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def split_paths(value: str) -> tuple[str, str | None]:
    """Split `LOCAL:PATH` at its colon, which is not that of a Windows drive; None if there is none."""
    start = 2 if _DRIVE.match(value) else 0
    local_path, colon, path = value[start:].partition(":")
    return value[:start] + local_path, path if colon else None


class FileEntry(Model):
    """A file or directory next to the document, and its path in the job."""

    other_facts: ClassVar[Mapping[str, tuple[Facts, ...]]] = {"size": (unit("bytes"),)}

    local_path: Annotated[str, Field(min_length=1, max_length=4000)]
    """
    The file or directory to copy, as a path relative to the folder of the document. Example:
    `./train.py`.
    """

    path: Annotated[str, Field(min_length=1, max_length=4000)] | None = None
    """
    Its path in the working directory of the job. Default: the same as `local_path`. Example:
    `code`.
    """

    @property
    def destination(self) -> str:
        return posixpath.normpath(self.path if self.path is not None else self.local_path)


def _file(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    local_path, path = split_paths(value)
    if path is not None and ":" in path:
        raise refuse(
            "bad-value",
            f"{shown(value)} has too many colons.",
            "Write `{local_path: HERE, path: THERE}` for a path that contains one.",
        )
    return {"local_path": local_path} if path is None else {"local_path": local_path, "path": path}


def _check_file(value: FileEntry) -> FileEntry:
    path = value.destination
    if _DRIVE.match(path):
        name = posixpath.basename(path.replace("\\", "/")) or "NAME"
        raise refuse(
            "bad-path",
            f"{shown(path)} is not inside the job's working directory.",
            f"Set its path in the job: `{value.local_path}:{name}`.",
        )
    return value


def files_beyond(entries: Sequence[FileEntry]) -> Iterator[Problem]:
    """Destinations outside of the job's working directory, which are not supported yet."""
    for number, entry in enumerate(entries):
        path = entry.destination
        # `~/x` and `/x` without `path` are files outside of the environment, which is reported.
        if path.split("/")[0] == ".." or (entry.path is not None and path.startswith(("/", "~"))):
            yield not_supported(
                ("files", number),
                f"{shown(path)} is outside of the job's working directory, which contains all files.",
                "Choose a path in that directory, and use it in the commands.",
            )


Files = Annotated[
    tuple[Annotated[FileEntry, BeforeValidator(_file), AfterValidator(_check_file)], ...],
    BeforeValidator(one_or_many, json_schema_input_type=str | FileEntry | list[str | FileEntry]),
]


def _checkout_path(value: str) -> str:
    if value.startswith("~") and value != "~" and not value.startswith("~/"):
        raise refuse(
            "bad-path",
            f"{shown(value)} is in the home directory of another user.",
            "Write `~/…` for the home directory of the run's own user.",
        )
    return value


class Repo(Model):
    """A git repository, and where it is checked out in the job."""

    local_path: Text | None = None
    """
    A checkout next to the document, as a path relative to its folder. Example: `.`, `../project`.
    """

    url: Text | None = None
    """
    The URL of the repository, in place of `local_path`. Example:
    `https://git.example.com/vision/models`.
    """

    branch: Text | None = None
    """
    The branch. Default: the current branch of the checkout, or the default branch of the
    repository. Example: `main`.
    """

    hash: Text | None = None
    """The commit. Default: the last commit of the branch. Example: `0f1e2d3c`."""

    path: Annotated[Text, AfterValidator(_checkout_path)] | None = None
    """
    The directory of the checkout in the job. Default: the working directory. Example: `code`,
    `~/code`.
    """

    if_exists: Literal["error", "skip"] | None = None
    """
    What happens if the directory is not empty. Default: `error`. `error`: the run fails. `skip`:
    the directory is left as it is. Example: `skip`.
    """

    def to_canonical(self) -> dict[str, Any]:
        canonical = super().to_canonical()
        if self.url is not None:
            canonical["url"] = sealed_address(self.url)
        return canonical


def warn_of_passwords(repos: Iterable[Repo]) -> Iterator[Problem]:
    """A warning for each address that has its password in it."""
    for repo in repos:
        if repo.url is not None and sealed_address(repo.url) != repo.url:
            yield Problem(
                "secret-in-clear",
                ("repos",),
                "The URL contains a password in plaintext: everyone who can read the configuration or its history can read it.",
                "Write the address without it; hosts can have keys of their own for it.",
                level=Level.WARNING,
                at_key=True,
            )


def _repo(value: Any) -> Any:
    """`.`, `.:code`, an address with or without `:code` behind it."""
    if not isinstance(value, str):
        return value
    field = "url" if _is_address(value) else "local_path"
    start = value.index(":") + 1 if field == "url" else 0
    source, path = split_paths(value[start:])
    if path is not None and ":" in path:
        raise refuse(
            "bad-value",
            f"{shown(value)} has too many colons.",
            "Write what to check out, a colon, and its path in the job: `.:code`.",
        )
    source = value[:start] + source
    return {field: source} if path is None else {field: source, "path": path}


def _is_address(value: str) -> bool:
    """`https://…`, and `git@host:…` as Git writes it."""
    before, colon, behind = value.partition(":")
    return bool(colon) and ("@" in before or behind.startswith("//"))


def _check_repo(value: Repo) -> Repo:
    if value.local_path is not None and value.url is not None:
        raise refuse(
            "contradiction", "A repository has `local_path` or `url`, not both.", "Remove one."
        )
    if value.local_path is None and value.url is None:
        raise refuse(
            "missing-field",
            "The entry names no repository.",
            "Add `local_path: .` for the repository of the document, or `url:`.",
        )
    return value


def _one_repo(value: tuple[Repo, ...]) -> tuple[Repo, ...]:
    if len(value) > 1:
        raise refuse(
            "bad-value",
            "A run has one repository.",
            "Put the others into it as submodules, or list their files under `files:`.",
        )
    return value


def _repos(value: Any) -> Any:
    return one_or_many(value) if isinstance(value, str | Mapping) else value


Repos = Annotated[
    tuple[Annotated[Repo, BeforeValidator(_repo), AfterValidator(_check_repo)], ...],
    BeforeValidator(_repos, json_schema_input_type=str | Repo | list[str | Repo]),
    AfterValidator(_one_repo),
]


# Code: a working copy as somebody had it, frozen as one content.
# The commit beside it is for people: what is executed is said by the digest alone, so that the
# same files of another commit are the same execution.
class Code(Model):
    """A bundle of files that was created when the run was submitted."""

    left_out: ClassVar[frozenset[str]] = frozenset({"commit"})

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """
    The SHA-256 digest of the bundle, in hexadecimal. The content is kept on the machine that
    submitted the run. Example: `8c7dd922ad47494fc02c388e12c00eac278d2e0ea7f3a90c3e7a6d4b3e1f8c11`.
    """

    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{4,64}(\+dirty)?$")] | None = None
    """
    The commit that was checked out, with `+dirty` behind it if files differed from it. It changes
    nothing. Example: `0f1e2d3c`.
    """


def code_problems(code: Code | None, working_dir: str | None) -> Iterator[Problem]:
    """What keeps a bundle from lying where the commands run."""
    if code is not None and working_dir is not None and working_dir.startswith("/"):
        yield Problem(
            "contradiction",
            ("working_dir",),
            "The code is in the directory of the job, but the commands would run in another directory.",
            "Write a path below it, or leave out one of the two.",
        )
