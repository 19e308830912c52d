"""What a step does and has done, in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetform.model.plan import Step

NOBODY_DRIVES = "nobody drives the runs now; `fleetform apply` or `fleetform serve` takes them up"
"""Said where something is not over and no process of ours would bring it to its end."""

_DONE = {
    "fleet.make": "made",
    "fleet.update": "updated",
    "fleet.remove": "removed",
    "volume.make": "made",
    "volume.update": "updated",
    "volume.forget": "forgotten, its data is kept",
    "volume.remove": "removed with its data",
    "run.submit": "submitted",
    "run.update": "updated",
    "run.stop": "asked to stop",
    "run.archive": "archived",
    "run.restore": "found again with its result",
    "rules.set": "rules set",
}
_DOING = {
    "fleet.make": "making",
    "fleet.update": "updating",
    "fleet.remove": "removing",
    "volume.make": "making",
    "volume.update": "updating",
    "volume.forget": "forgetting",
    "volume.remove": "removing",
}


def step_done(step: Step) -> str:
    return f"{step.resource}: {_DONE.get(step.verb, step.verb)}"


def step_doing(step: Step) -> str:
    return f"{_DOING.get(step.verb, step.verb)} {step.resource}"
