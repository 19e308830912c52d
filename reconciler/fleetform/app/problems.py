"""
What a person can get wrong, as one tree of exceptions with an exit code each.

    Problem (1)
    ├── WorkspaceProblem (1)   no environment here, or it cannot be read
    ├── LedgerProblem (1)      the ledger cannot be opened or written
    ├── EditProblem (1)        a document cannot be changed as asked; nothing was written
    │   └── BlockedProblem (3) what is to be added would be blocked; nothing was written
    ├── HostProblem (1)        OpenSSH cannot reach a host
    ├── ScopeProblem (1)       an address means nothing that there is
    ├── PlanProblem (1)        a plan broke an invariant: a bug in fleetform, shown and not applied
    ├── RecoveringProblem (1)  hosts or this machine remember another ledger
    ├── ExecProblem (255)      a command cannot run in a job (in `exec_in_job`)
    └── Locked (6)             another process manages the environment
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetform.spec.findings import Finding


class Problem(Exception):
    """One sentence about what is wrong, and one about what to do next."""

    exit_code = 1

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class WorkspaceProblem(Problem):
    """`findings` are what is wrong with `environment.yaml`, to be shown with their places."""

    def __init__(
        self, message: str, advice: str = "", *, findings: tuple[Finding, ...] = ()
    ) -> None:
        super().__init__(message, advice)
        self.findings = findings


class LedgerProblem(Problem):
    pass


class EditProblem(Problem):
    """`findings` are what is wrong with the edited configuration, to be shown with their places."""

    def __init__(
        self, message: str, advice: str = "", *, findings: tuple[Finding, ...] = ()
    ) -> None:
        super().__init__(message, advice)
        self.findings = findings


class HostProblem(Problem):
    pass


class BlockedProblem(EditProblem):
    exit_code = 3


class ScopeProblem(Problem):
    pass


class PlanProblem(Problem):
    pass


class RecoveringProblem(Problem):
    pass


class Locked(Problem):
    exit_code = 6
