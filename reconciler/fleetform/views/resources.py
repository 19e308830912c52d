"""Resources as they were applied last, one row each, whatever their kind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fleetform.model.live import Live, LiveResource
from fleetform.model.redaction import Seal
from fleetform.spec.names import natural_order
from fleetform.views.withheld import withhold_document


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """
    One resource.

    `address` is kind and name, such as `fleet/local`. `state` is `present`, `archived`, or the state
    of a change in progress. `run_state` is empty for other kinds than runs. `generation` grows with
    each applied change. `digest` is equal for equal documents and has no other use.
    """

    address: str
    kind: str
    name: str
    type: str
    uid: str
    generation: int
    digest: str
    state: str
    run_state: str
    protected: bool
    parent: str
    element: str


@dataclass(frozen=True, slots=True)
class ResourceDetail:
    """
    A resource with its canonical document.

    Sensitive values are shown as versions, and the values of `env` are withheld.
    """

    row: ResourceRow
    document: dict[str, Any]


def resource_rows(live: Live) -> tuple[ResourceRow, ...]:
    """Make the rows in order of address, what is archived too."""
    seal = Seal(live.environment_uid)
    return tuple(
        _row(live.resources[key], seal)
        for key in sorted(live.resources, key=lambda key: natural_order(str(key)))
    )


def _row(resource: LiveResource, seal: Seal) -> ResourceRow:
    return ResourceRow(
        address=str(resource.key),
        kind=resource.key.kind,
        name=resource.key.name,
        type=resource.type,
        uid=resource.uid,
        generation=resource.generation,
        digest=seal.digest(resource.digest),
        state="archived" if resource.archived else resource.state,
        run_state=resource.run.state.value if resource.run else "",
        protected=resource.protected,
        parent=resource.parent,
        element=resource.element,
    )


def resource_detail(live: Live, resource: LiveResource) -> ResourceDetail:
    seal = Seal(live.environment_uid)
    document = seal.value(resource.key.kind, "", json.loads(resource.document))
    return ResourceDetail(_row(resource, seal), withhold_document(document))
