"""
Repositories that a run's commands find checked out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator

from fleetform.spec.findings import Level, Problem
from fleetform.spec.kinds.base import Model, one_or_many, refuse
from fleetform.spec.kinds.credentials import sealed_address
from fleetform.spec.kinds.files import split_paths
from fleetform.spec.kinds.offers import Text
from fleetform.spec.quantities.ranges import shown


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
