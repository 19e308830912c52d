"""Freezes the files that a plan's runs need, before the plan is entered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.wiring.problems import LedgerProblem, PlanProblem

if TYPE_CHECKING:
    from fleetform.model.plan import Plan
    from fleetform.store.blobs import FileBlobStore
    from fleetform.wiring.workspace import Workspace


def freeze_contents(workspace: Workspace, plan: Plan, blobs: FileBlobStore) -> None:
    """
    Copy every content that the plan names into the blob store.

    Raises:
        PlanProblem: A file is not what it was when the plan was made.
        LedgerProblem: The state folder cannot be written.
    """
    missing = [digest for digest in _digests(plan) if not blobs.has(digest)]
    if not missing:
        return
    desired = workspace.load().desired
    contents = desired.contents if desired is not None else {}
    for digest in missing:
        path = contents.get(digest)
        if path is None:
            raise PlanProblem(
                "a file of a run has changed since the plan was made", "plan again, and apply that"
            )
        try:
            blobs.put_file(digest, path)
        except ValueError as problem:
            raise PlanProblem(
                f"{path} has changed since the plan was made", "plan again, and apply that"
            ) from problem
        except OSError as problem:
            raise LedgerProblem(
                f"{path} cannot be copied into {workspace.paths.blobs}: {problem.strerror}",
                "free some space, or set FLEETFORM_STATE_HOME to another disk",
            ) from problem


def _digests(plan: Plan) -> dict[str, None]:
    return {
        entry["sha256"]: None
        for step in plan.steps
        for entry in step.arguments.get("document", {}).get("files", ())
    }
