"""
What two declarations do not have in common, as changes that lead from one to the other.

Nothing live is asked: two commits, or two environments, are compared as they are written. So a
change here says nothing of what a plan would do, which depends on where each run stands.

They are compared as they are, and shown sealed: what a commit of last year has of secrets is not
the text of whoever asks. Each side has its own environment's key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from fleetform.model.plan import Action, Change, FieldChange
from fleetform.model.redaction import Seal
from fleetform.plan.diff import changed_fields, set_fields
from fleetform.plan.redaction import sealed_field
from fleetform.spec.desired import Declared, Desired, ResourceKey

__all__ = ["differences", "run_differences"]


def differences(before: Desired, after: Desired) -> tuple[Change, ...]:
    """
    Compare all that two trees declare, also what nothing carries out yet.

    Returns:
        By key; `CREATE` for what only `after` has, `DELETE` for what only `before` has. Empty
        when they mean the same. Names and uids of the environments are not compared.
    """
    old, new = _declared(before), _declared(after)
    seals = Seal(before.environment.uid), Seal(after.environment.uid)
    found = [*_rules(before, after)]
    for key in sorted(old.keys() | new.keys()):
        found.extend(_compared(old.get(key), new.get(key), seals))
    return tuple(found)


def run_differences(
    before: Mapping[str, Any], after: Mapping[str, Any], seal: Seal
) -> tuple[FieldChange, ...]:
    """Compare the documents of two runs of one environment, as its ledger has them."""
    fields = changed_fields("run", before, after)
    return tuple([sealed_field(seal, seal, "run", one) for one in fields])


def _declared(desired: Desired) -> Mapping[ResourceKey, Declared]:
    beyond = {key: one.declared for key, one in desired.beyond.items()}
    return {**desired.resources, **beyond} if beyond else desired.resources


def _rules(before: Desired, after: Desired) -> Iterator[Change]:
    old, new = asdict(before.environment.rules), asdict(after.environment.rules)
    if old == new:
        return
    yield Change(
        key=ResourceKey("environment", after.environment.name),
        action=Action.UPDATE,
        reasons=(),
        type="environment",
        fields=changed_fields("environment", {"rules": old}, {"rules": new}),
    )


def _compared(
    old: Declared | None, new: Declared | None, seals: tuple[Seal, Seal]
) -> Iterator[Change]:
    one = new or old
    assert one is not None, "a key comes from one of the two"
    if old is None:
        action, fields = Action.CREATE, set_fields(one.key.kind, one.document)
    elif new is None:
        action, fields = Action.DELETE, ()
    elif old.digest == new.digest:
        return
    else:
        action = Action.UPDATE
        fields = changed_fields(one.key.kind, old.document, new.document)
        if not fields and old.type == new.type:
            return
    yield Change(
        key=one.key,
        action=action,
        reasons=(),
        type=one.type,
        fields=tuple([sealed_field(*seals, one.key.kind, field) for field in fields]),
        parent=one.parent,
        element=one.element,
        before=None if old is None else seals[0].value(one.key.kind, "", old.document),
        after=None if new is None else seals[1].value(one.key.kind, "", new.document),
    )
