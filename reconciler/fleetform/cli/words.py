"""What a step does and has done, in a few words."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from fleetform.model.verbs import VERBS, Effect, Verb, VerbFacts

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Step


def directory_words(workspace: Workspace, *, finds_default: bool = False) -> str:
    """
    Return ` -C PATH` for a command in a hint where the command does not find the environment by itself.

    Args:
        workspace: The environment.
        finds_default: The command uses the default environment outside of any.
    """
    from fleetform.app.workspace import default_root, root_around

    here = Path.cwd()
    if workspace.root in (here, *here.parents):
        return ""
    if finds_default and root_around() is None and default_root() == workspace.root:
        return ""
    return f" -C {quote(str(workspace.root))}"


def not_driven(workspace: Workspace) -> str:
    """Say that a run is not over and no process brings it to its end, and which command does."""
    where = directory_words(workspace)
    return f"no controller is running; `fleetform apply{where}` or `fleetform serve{where}` drives the runs"


_DONE = {
    Effect.CREATE: "created",
    Effect.ADOPT: "adopted",
    Effect.SET: "set",
    Effect.UPDATE: "updated",
    Effect.RESTORE: "restored",
    Effect.STOP: "asked to stop",
    Effect.DELETE: "removed",
    Effect.RELEASE: "released",
    Effect.MOVE: "renamed",
}
_DOING = {
    Effect.CREATE: "creating",
    Effect.ADOPT: "adopting",
    Effect.SET: "setting",
    Effect.UPDATE: "updating",
    Effect.RESTORE: "restoring",
    Effect.STOP: "stopping",
    Effect.DELETE: "removing",
    Effect.RELEASE: "releasing",
    Effect.MOVE: "renaming",
}


def _facts(step: Step) -> VerbFacts | None:
    return VERBS[Verb(step.verb)] if step.verb in VERBS else None


def step_done(step: Step) -> str:
    facts = _facts(step)
    done = step.verb if facts is None else facts.done or _DONE[facts.effect]
    # A volume whose data was lost starts empty.
    starts_empty = step.resource.kind == "volume" and step.arguments.get("lost")
    return f"{step.resource}: {'recreated' if starts_empty else done}"


def step_doing(step: Step) -> str:
    facts = _facts(step)
    doing = step.verb if facts is None else facts.doing or _DOING[facts.effect]
    return f"{doing} {step.resource}"
