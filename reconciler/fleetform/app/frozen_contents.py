"""Freezes the files that a plan's runs need, before the plan is entered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.app.problems import LedgerProblem, PlanProblem
from fleetform.model.verbs import Verb

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Plan
    from fleetform.store.blobs import FileBlobStore


def freeze_contents(workspace: Workspace, plan: Plan, blobs: FileBlobStore) -> None:
    """
    Copy every content that the plan names into the blob store.

    Raises:
        PlanProblem: A file is not what it was when the plan was made.
        LedgerProblem: The state folder cannot be written.
    """
    _refuse_missing_code(plan, blobs)
    missing = [digest for digest in _digests(plan) if not blobs.has(digest)]
    if not missing:
        return
    desired = workspace.load().desired
    contents = desired.contents if desired is not None else {}
    for digest in missing:
        path = contents.get(digest)
        if path is None:
            raise PlanProblem(
                "a file of a run has changed since the plan was made",
                "plan again, and apply the new plan",
            )
        try:
            blobs.put_file(digest, path)
        except ValueError as problem:
            raise PlanProblem(
                f"{path} has changed since the plan was made", "plan again, and apply the new plan"
            ) from problem
        except OSError as problem:
            raise LedgerProblem(
                f"{path} cannot be copied into {workspace.paths.blobs}: {problem.strerror}",
                "free some space, or set FLEETFORM_STATE_HOME to another disk",
            ) from problem


def _refuse_missing_code(plan: Plan, blobs: FileBlobStore) -> None:
    """A bundle is made of a working copy that may be gone: it is here, or it is lost."""
    for step in plan.steps:
        code = step.arguments.get("document", {}).get("code", {})
        # What is only recorded again, such as another priority of a run that is over, needs none.
        if step.verb != Verb.RUN_SUBMIT or not code or blobs.has(code["sha256"]):
            continue
        raise PlanProblem(
            f"the code of {step.resource} is not on this machine: it was submitted from another"
            " one, or the state folder was emptied",
            "submit it again from its working copy with `fleetform submit`, and put the new"
            " `code` into the document",
        )


def _digests(plan: Plan) -> dict[str, None]:
    return {
        entry["sha256"]: None
        for step in plan.steps
        for entry in step.arguments.get("document", {}).get("files", ())
    }
