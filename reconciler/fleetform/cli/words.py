"""What a step does and has done, in a few words."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

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
    "fleet.make": "created",
    "fleet.update": "updated",
    "fleet.remove": "removed",
    "fleet.adopt": "adopted",
    "fleet.forget": "released, its hosts stay up",
    "resource.move": "renamed",
    "volume.make": "created",
    "volume.adopt": "adopted with its data",
    "volume.update": "updated",
    "volume.forget": "released, its data is kept",
    "volume.remove": "removed with its data",
    "volume.snapshot": "kept as a snapshot",
    "queue.set": "set",
    "queue.remove": "removed",
    "run.submit": "submitted",
    "run.update": "updated",
    "run.stop": "asked to stop",
    "run.archive": "archived",
    "run.restore": "restored with its result",
    "run.forget": "released",
    "rules.set": "rules updated",
}
_DOING = {
    "fleet.make": "creating",
    "fleet.update": "updating",
    "fleet.remove": "removing",
    "fleet.adopt": "adopting",
    "volume.make": "creating",
    "volume.adopt": "adopting",
    "volume.update": "updating",
    "volume.forget": "releasing",
    "volume.remove": "removing",
    "volume.snapshot": "keeping a snapshot of",
}


def step_done(step: Step) -> str:
    done = "recreated" if step.arguments.get("lost") else _DONE.get(step.verb)
    return f"{step.resource}: {done or step.verb}"


def step_doing(step: Step) -> str:
    return f"{_DOING.get(step.verb, step.verb)} {step.resource}"
