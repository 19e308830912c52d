"""
Code: a working copy as somebody had it, frozen as one content.

The commit beside it is for people: what is executed is said by the digest alone, so that the
same files of another commit are the same execution.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import Model


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
