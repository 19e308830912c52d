"""
A dev environment: a place to work in, with an editor, until it is stopped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fleetform.spec.field_facts import control, execution
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import contradiction
from fleetform.spec.kinds.commands import Commands
from fleetform.spec.kinds.offers import Offable, Text
from fleetform.spec.kinds.ports import Ports
from fleetform.spec.kinds.run import Run
from fleetform.spec.quantities.ranges import shown


class DevEnvironment(Run):
    """
    A run in which a person works, until it is stopped.

    Example:
        type: dev-environment
        name: vscode
        ide: vscode
        resources:
          gpu: 24GB..
    """

    type: Literal["dev-environment"]
    """The kind of the document: `dev-environment`."""

    # Without its editor it is still reached by SSH.
    ide: Annotated[
        Literal["vscode", "cursor", "windsurf", "zed"] | None, control(essential=False)
    ] = None
    """The editor that is prepared. Default: none; connect by SSH. Example: `vscode`."""

    version: Annotated[Text | None, control(essential=False)] = None
    """The version of the editor; for `windsurf` with its commit. Example: `1.99.0`."""

    init: Annotated[Commands | None, execution()] = None
    """Shell commands that run when the dev environment starts. Example: `[pip install -e .]`."""

    setup: Annotated[Commands | None, control(essential=False)] = None
    """
    Commands that run before `init`; a field of old versions of dstack. Example: `[pip install
    torch]`.
    """

    inactivity_duration: Annotated[Offable | None, control()] = None
    """
    How long the dev environment runs without a connection before it is stopped. Default: `off`.
    `off`: without limit. Example: `2h`, `off`.
    """

    # A job listens on its host, whoever is let through to it.
    ports: Annotated[Ports | None, control("agents.host")] = None
    """
    Ports on which the programs listen. `LOCAL:REMOTE` also names the local port that is forwarded
    to it. Example: `[8888, "8080:80"]`.
    """

    def to_canonical(self) -> dict[str, Any]:
        canonical = super().to_canonical()
        # dstack still runs these, right before `init`; of tasks and services it ignores them.
        setup = canonical.pop("setup", ())
        return {**canonical, "init": [*setup, *canonical.get("init", ())]} if setup else canonical

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.version is not None and self.ide is None:
            yield contradiction(
                "version",
                "`version` is that of an editor, and `ide` names none.",
                "Add `ide: vscode`, or remove `version`.",
                for_lack_of=("ide",),
            )
        if (
            self.ide == "windsurf"
            and self.version is not None
            and not re.fullmatch(r".+@[a-f0-9]+", self.version)
        ):
            yield Problem(
                "bad-value",
                ("version",),
                f"{shown(self.version)} is not a version of Windsurf, which has its commit behind an `@`.",
                "Write for example `1.106.0@8951cd3ad688`.",
            )
        if self.dstack and self.inactivity_duration is not None:
            yield contradiction(
                "inactivity_duration",
                "`dstack` keeps a connection open, so the inactivity would never begin.",
                "Remove one of the two.",
            )
