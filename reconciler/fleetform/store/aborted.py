"""
Why runs were aborted, and whether what they waited for is fine by now.

Everything that shows the message of a run to people reads it from here, so that a reason that has
become history reads the same in every list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fleetform.model.aborted import ALL_OF, DEPENDENCY, abort_reason, since_met
from fleetform.store.lineage import Inputs, inputs_of
from fleetform.store.statements import Statements

__all__ = ["read_abort_reasons"]

_ABORTED = (
    "SELECT uid, name, element, message, document, listed FROM runs"
    " WHERE final = 1 AND state = 'aborted' AND cause = ? ORDER BY number"
)


def read_abort_reasons(connection: Statements) -> dict[str, str]:
    """Say by uid why runs were aborted for a dependency: of all that there are, also removed ones."""
    rows = connection.execute(_ABORTED, (DEPENDENCY,)).fetchall()
    if not rows:
        return {}
    wanted = {uid: json.loads(document).get("depends_on", {}) for uid, *_, document, _ in rows}
    inputs = Inputs(connection)
    inputs.read(name for uid, _, element, *_ in rows for name, _ in inputs_of(element, wanted[uid]))
    found = {}
    for uid, name, element, message, _, listed in rows:
        # Elements with the same reason share one line of a list, so they are not named one by one.
        address = "NAME" if element else name
        met = _met(inputs, element, wanted[uid]) if listed else []
        found[uid] = abort_reason(message) + since_met(met, address)
    return found


def _met(inputs: Inputs, element: str, wanted: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name what a run depends on and what has come about; empty where it would not start now."""
    names = inputs_of(element, wanted)
    met = [one for one in names if inputs.is_complete(*one)]
    if wanted.get("all", True) and len(met) < len(names):
        return []
    return [(f"{'' if inputs.is_run(name) else ALL_OF}{name}", when) for name, when in met]
