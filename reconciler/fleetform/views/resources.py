"""Resources as they were applied last, one row each, whatever their kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fleetform.model.redaction import Seal
from fleetform.spec.names import natural_order
from fleetform.spec.secrecy import names_secret
from fleetform.views.table import Cell, Column, Table, make_table, row_of

if TYPE_CHECKING:
    from fleetform.model.live import Live, LiveResource
    from fleetform.model.plan import Change, FieldChange, Plan, Step
    from fleetform.model.recovery import Difference, Recovered


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
    return row_of(
        ResourceRow,
        resource.key,
        resource,
        address=str(resource.key),
        digest=seal.digest(resource.digest),
        state="archived" if resource.archived and not resource.is_being_created else resource.state,
        run_state=resource.run.state.value if resource.run else "",
    )


def resource_detail(live: Live, resource: LiveResource) -> ResourceDetail:
    seal = Seal(live.environment_uid)
    document = seal.value(resource.key.kind, "", resource.parsed)
    return ResourceDetail(_row(resource, seal), withhold_document(document))


# What is not shown to users who may read the state and perhaps not the configuration: the values of `env`.
# People put tokens there, whatever the manual says. The command line shows them, since it reads
# the configuration itself; the API does not.

WITHHELD = "(withheld)"


def withhold_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a canonical document without the values of `env` and of secrets in `matrix`."""
    shown = dict(document)
    if "env" in document:
        shown["env"] = _values(document["env"])
    if isinstance(matrix := document.get("matrix"), Mapping):
        shown["matrix"] = {
            name: WITHHELD if names_secret(name) else value for name, value in matrix.items()
        }
    return shown


def withhold_plan(plan: Plan) -> Plan:
    """Return the plan to be shown. It is no longer the one that its digest is of."""
    return replace(
        plan,
        changes=tuple(_change(change) for change in plan.changes),
        held=tuple(replace(held, change=_change(held.change)) for held in plan.held),
        deferred=tuple(replace(one, change=_change(one.change)) for one in plan.deferred),
    )


def _change(change: Change) -> Change:
    return replace(
        change,
        fields=tuple(_field(one) for one in change.fields),
        before=None if change.before is None else withhold_document(change.before),
        after=None if change.after is None else withhold_document(change.after),
        steps=tuple(_step(step) for step in change.steps),
    )


def _step(step: Step) -> Step:
    """The document of a step is what the change leads to."""
    document = step.arguments.get("document")
    if document is None:
        return step
    return replace(step, arguments={**step.arguments, "document": withhold_document(document)})


def _field(one: FieldChange) -> FieldChange:
    if one.path != "env" and not one.path.startswith(("env.", "env[")):
        return one
    return replace(one, before=_values(one.before), after=_values(one.after))


def _values(value: Any) -> Any:
    if value is None:
        return None
    return dict.fromkeys(value, WITHHELD) if isinstance(value, Mapping) else WITHHELD


# What a rebuild of the ledger found: a line a fleet, host, volume and run.

_TONES = {"unknown": "warn", "lost": "warn", "failed": "bad", "done": "good", "ready": "good"}


def recovered_table(rows: Iterable[Recovered]) -> Table:
    columns: tuple[Column[Recovered], ...] = (
        Column("KIND", lambda row: row.kind),
        Column("NAME", lambda row: row.name),
        Column("STATE", lambda row: Cell(row.state, _TONES.get(row.state, "plain"))),
        Column("FOUND", lambda row: row.found),
        Column("RESULT", lambda row: Cell(row.note, "dim"), optional=True),
    )
    return make_table(columns, rows)


def differences_table(rows: Iterable[Difference]) -> Table:
    columns: tuple[Column[Difference], ...] = (
        Column("RESOURCE", lambda row: row.resource),
        Column("IN THE LEDGER", lambda row: row.here),
        Column("FROM HOSTS", lambda row: Cell(row.rebuilt, "warn")),
    )
    return make_table(columns, rows)
