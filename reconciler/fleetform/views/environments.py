"""The environment as one row: which it is, what it holds, and the state of its ledger."""

from __future__ import annotations

from collections import Counter

from fleetform.model.fingerprint import fingerprint
from fleetform.model.live import Live
from fleetform.spec.dataclass import dataclass
from fleetform.spec.desired import Environment
from fleetform.views.overrides import in_force_lines


@dataclass(frozen=True, slots=True)
class EnvironmentRow:
    """
    One environment. `fingerprint` is what its plans bear as well, and stands for its uid.

    `status` is `empty` before the first apply. `serial` names the reading that the row was made
    of. `resources` counts what is present by kind. `notes` are sentences for people: what is in
    force above the tree first, such as a takeover, then why it is recovering, and silent hosts.
    """

    name: str
    fingerprint: str
    status: str
    ledger_id: str
    epoch: int
    serial: int
    resources: dict[str, int]
    notes: tuple[str, ...]


def environment_row(environment: Environment, live: Live | None, *, now_ms: int) -> EnvironmentRow:
    """Make the row; `live` is None where nothing has been applied."""
    mark = fingerprint(environment.uid)
    if live is None:
        return EnvironmentRow(environment.name, mark, "empty", "", 0, 0, {}, ())
    kinds = Counter(key.kind for key, row in live.resources.items() if not row.archived)
    return EnvironmentRow(
        name=environment.name,
        fingerprint=mark,
        status=live.status.value,
        ledger_id=live.ledger_id,
        epoch=live.epoch,
        serial=live.serial,
        resources=dict(sorted(kinds.items())),
        notes=(*in_force_lines(live.overrides, now_ms), *live.notes),
    )
