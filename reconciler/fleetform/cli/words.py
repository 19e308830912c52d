"""What a step does and has done, in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetform.model.plan import Step

NOT_DRIVEN = "no controller is running; `fleetform apply` or `fleetform serve` drives the runs"
"""Said where a run is not over and no process would bring it to its end."""

_DONE = {
    "fleet.make": "made",
    "fleet.update": "updated",
    "fleet.remove": "removed",
    "fleet.adopt": "taken in",
    "fleet.forget": "forgotten, its hosts stay up",
    "resource.move": "renamed",
    "volume.make": "made",
    "volume.adopt": "taken in as it was found",
    "volume.update": "updated",
    "volume.forget": "forgotten, its data is kept",
    "volume.remove": "removed with its data",
    "volume.snapshot": "put aside as a snapshot",
    "run.submit": "submitted",
    "run.update": "updated",
    "run.stop": "asked to stop",
    "run.archive": "archived",
    "run.restore": "found again with its result",
    "run.forget": "forgotten",
    "rules.set": "rules set",
}
_DOING = {
    "fleet.make": "making",
    "fleet.update": "updating",
    "fleet.remove": "removing",
    "fleet.adopt": "taking in",
    "volume.make": "making",
    "volume.adopt": "taking in",
    "volume.update": "updating",
    "volume.forget": "forgetting",
    "volume.remove": "removing",
    "volume.snapshot": "putting aside",
}


def step_done(step: Step) -> str:
    return f"{step.resource}: {_DONE.get(step.verb, step.verb)}"


def step_doing(step: Step) -> str:
    return f"{_DOING.get(step.verb, step.verb)} {step.resource}"
