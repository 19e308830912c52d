"""
What the engine does to resources, as values: planned, started, done or failed.

Events of Pulumi name many steps that mean one change. Here a replacement is one planned change;
while it is applied, its two halves are a create and a delete with `is_replacement`. Secrets are
hidden before a value leaves this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

__all__ = [
    "HIDDEN",
    "SPECIAL_KEY",
    "Action",
    "Change",
    "Phase",
    "PropertyChange",
    "change_of",
    "without_secrets",
]

HIDDEN = "(secret)"

SPECIAL_KEY = "4dabf18193072939515e22adb298388d"
_OF_ENGINE = ("pulumi:pulumi:", "pulumi:providers:")
"""Types of what exists in the state alone: the stack itself and its providers."""

_HIDDEN_BY_ENGINE = "[secret]"
_PATH = re.compile(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[\]]+)')


class Action(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    IMPORT = "import"
    REFRESH = "refresh"


class Phase(StrEnum):
    PLANNED = "planned"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"


_ACTIONS = {
    "create": (Action.CREATE, False),
    "update": (Action.UPDATE, False),
    "replace": (Action.REPLACE, False),
    "delete": (Action.DELETE, False),
    "create-replacement": (Action.CREATE, True),
    "delete-replaced": (Action.DELETE, True),
    "import": (Action.IMPORT, False),
    "import-replacement": (Action.IMPORT, True),
    "refresh": (Action.REFRESH, False),
    # The engine forgets the resource and leaves it: what the state says is gone either way.
    "discard": (Action.DELETE, False),
    "discard-replaced": (Action.DELETE, True),
}
"""By the operation of an event. Those that are missing change nothing: `same` and `read`."""


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """
    One property from one value to another; None: it had or gets none.

    `path` is as the engine writes it, such as `tags.Name`. `replaces`: the resource must be
    replaced for it.
    """

    path: str
    before: Any
    after: Any
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """
    One change of one resource.

    `id` is that of the cloud, empty before a create. `properties` are those that differ; a create
    and a delete list none. `is_replacement`: a half of a replacement.
    """

    action: Action
    phase: Phase
    type: str
    name: str
    id: str = ""
    properties: tuple[PropertyChange, ...] = ()
    is_replacement: bool = False
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Change:
        properties = tuple(PropertyChange(**one) for one in value["properties"])
        action, phase = Action(value["action"]), Phase(value["phase"])
        return cls(**{**value, "action": action, "phase": phase, "properties": properties})


def change_of(event: Any) -> Change | None:
    """
    Read an engine event as a change; None: it changes nothing in the cloud.

    Args:
        event: A `pulumi.automation.events.EngineEvent`.
    """
    metadata, phase = _step(event)
    if metadata is None or metadata.type.startswith(_OF_ENGINE):
        return None
    known = _ACTIONS.get(_operation(metadata))
    if known is None:
        return None
    action: Action | None
    action, is_replacement = known
    if phase is Phase.PLANNED and is_replacement:
        return None  # `replace` is the one that a plan shows.
    if phase is not Phase.PLANNED and action is Action.REPLACE:
        return None  # The engine's sum of its two halves.
    if action is Action.REFRESH and phase is Phase.DONE:
        action = _refreshed(metadata)
        if action is None:
            return None
    return Change(
        action=action,
        phase=phase,
        type=metadata.type,
        name=metadata.urn.rpartition("::")[2],
        id=_id(metadata.new) or _id(metadata.old),
        properties=tuple(_property_changes(metadata)),
        is_replacement=is_replacement,
    )


def _step(event: Any) -> tuple[Any, Phase]:
    if event.resource_pre_event is not None:
        phase = Phase.PLANNED if event.resource_pre_event.planning else Phase.STARTED
        return event.resource_pre_event.metadata, phase
    # In a preview an event of outputs follows each event before, with nothing new.
    if event.res_outputs_event is not None and not event.res_outputs_event.planning:
        return event.res_outputs_event.metadata, Phase.DONE
    if event.res_op_failed_event is not None:
        return event.res_op_failed_event.metadata, Phase.FAILED
    return None, Phase.DONE


def _operation(metadata: Any) -> str:
    return str(getattr(metadata.op, "value", metadata.op))


def _id(state: Any) -> str:
    return state.id if state is not None else ""


def _refreshed(metadata: Any) -> Action | None:
    """What a refresh found: the resource is gone, differs from the state, or is as it was."""
    if metadata.new is None:
        return Action.DELETE
    return Action.UPDATE if metadata.old.outputs != metadata.new.outputs else None


def _property_changes(metadata: Any) -> Iterator[PropertyChange]:
    if metadata.old is None or metadata.new is None:
        return
    if _operation(metadata) == "refresh":
        yield from _refreshed_properties(metadata.old.outputs or {}, metadata.new.outputs or {})
        return
    for path, difference in sorted((metadata.detailed_diff or {}).items()):
        kind = str(getattr(difference.diff_kind, "value", difference.diff_kind))
        before = metadata.old.inputs if difference.input_diff else metadata.old.outputs
        yield PropertyChange(
            path=path,
            before=None if kind.startswith("add") else _at(before, path),
            after=None if kind.startswith("delete") else _at(metadata.new.inputs, path),
            replaces=kind.endswith("replace"),
        )


def _refreshed_properties(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[PropertyChange]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield PropertyChange(
                name, without_secrets(old.get(name)), without_secrets(new.get(name))
            )


def _at(value: Any, path: str) -> Any:
    """Return the value at a path such as `tags["a.b"]` or `disks[0].size`; None: there is none."""
    for quoted, index, plain in _PATH.findall(path):
        if isinstance(value, list) and index and int(index) < len(value):
            value = value[int(index)]
        elif isinstance(value, Mapping):
            value = value.get(quoted.replace('\\"', '"') or plain or index)
        else:
            return None
    return without_secrets(value)


def without_secrets(value: Any) -> Any:
    """Return a value of an event or a state with each secret replaced by `HIDDEN`."""
    if value == _HIDDEN_BY_ENGINE:
        return HIDDEN
    if isinstance(value, Mapping):
        if SPECIAL_KEY in value:
            return HIDDEN
        return {key: without_secrets(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_secrets(inner) for inner in value]
    return value
