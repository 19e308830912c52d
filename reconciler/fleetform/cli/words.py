"""What a step does and has done, in a few words."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from fleetform.model.verbs import Verb

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


_DONE: dict[str, str] = {
    Verb.FLEET_MAKE: "created",
    Verb.FLEET_UPDATE: "updated",
    Verb.FLEET_REMOVE: "removed",
    Verb.FLEET_ADOPT: "adopted",
    Verb.FLEET_FORGET: "released, its hosts stay up",
    Verb.RESOURCE_MOVE: "renamed",
    Verb.VOLUME_MAKE: "created",
    Verb.VOLUME_ADOPT: "adopted with its data",
    Verb.VOLUME_UPDATE: "updated",
    Verb.VOLUME_FORGET: "released, its data is kept",
    Verb.VOLUME_REMOVE: "removed with its data",
    Verb.VOLUME_SNAPSHOT: "kept as a snapshot",
    Verb.QUEUE_SET: "set",
    Verb.QUEUE_REMOVE: "removed",
    Verb.RUN_SUBMIT: "submitted",
    Verb.RUN_UPDATE: "updated",
    Verb.RUN_STOP: "asked to stop",
    Verb.RUN_ARCHIVE: "archived",
    Verb.RUN_RESTORE: "restored with its result",
    Verb.RUN_FORGET: "released",
    Verb.RULES_SET: "rules updated",
}
_DOING: dict[str, str] = {
    Verb.FLEET_MAKE: "creating",
    Verb.FLEET_UPDATE: "updating",
    Verb.FLEET_REMOVE: "removing",
    Verb.FLEET_ADOPT: "adopting",
    Verb.VOLUME_MAKE: "creating",
    Verb.VOLUME_ADOPT: "adopting",
    Verb.VOLUME_UPDATE: "updating",
    Verb.VOLUME_FORGET: "releasing",
    Verb.VOLUME_REMOVE: "removing",
    Verb.VOLUME_SNAPSHOT: "keeping a snapshot of",
}


def step_done(step: Step) -> str:
    done = "recreated" if step.arguments.get("lost") else _DONE.get(step.verb)
    return f"{step.resource}: {done or step.verb}"


def step_doing(step: Step) -> str:
    return f"{_DOING.get(step.verb, step.verb)} {step.resource}"
