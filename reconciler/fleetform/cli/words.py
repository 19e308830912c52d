"""Short words for people: spans of time, counts, and what a step has done."""

from __future__ import annotations

from fleetform.model.plan import Step

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


def duration(span_ms: int) -> str:
    """Write a span of milliseconds with two units at most: `0.4 s`, `3 min 05 s`, `2 h 07 min`."""
    if span_ms < 10_000:
        return f"{span_ms / 1000:.1f} s"
    seconds = span_ms // 1000
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    hours = seconds // 3600
    if hours < 48:
        return f"{hours} h {seconds % 3600 // 60:02} min"
    return f"{hours // 24} d {hours % 24} h"


def counted(number: int, noun: str) -> str:
    """Write `1 run`, `2 runs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
