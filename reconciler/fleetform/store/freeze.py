"""
Whether a plan may be entered at this moment: overrides, and freeze windows last applied.

A plan blocks what is forbidden when it is made. This check is for plans that were made earlier or elsewhere, and runs in the
transaction that would enter them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fleetform.model.override import OverrideKind, holding
from fleetform.model.refusals import PolicyRefused
from fleetform.model.windows import is_held, open_spell
from fleetform.spec.desired import Rules
from fleetform.store.overrides import read_overrides
from fleetform.views.moments import moment

if TYPE_CHECKING:
    from fleetform.model.plan import Plan
    from fleetform.store.database import Transaction

__all__ = ["require_permitted", "rules_applied"]


def require_permitted(transaction: Transaction, plan: Plan, now_ms: int) -> None:
    """
    Return when nothing keeps the plan from being entered now.

    Raises:
        PolicyRefused: An override or a window does; says who, why and until when.
    """
    if not plan.changes:
        return
    overrides = holding(read_overrides(transaction), now_ms)
    for one in overrides:
        if one.kind is OverrideKind.FREEZE:
            raise PolicyRefused(
                f"{one.sentence}; it lasts {_until(one.until_ms)}",
                advice=f"wait, or end it with `fleetform emergency lift {one.number}`",
            )
    rules = rules_applied(transaction)
    spell = open_spell(rules, overrides, now_ms)
    if spell is not None and any(is_held(spell, change, rules) for change in plan.changes):
        raise PolicyRefused(
            f"freeze window: {spell.window.reason}; it is open {_until(spell.end_ms)}",
            advice="wait, or suspend it for a limited time with `fleetform emergency thaw --reason …`",
        )


def rules_applied(transaction: Transaction) -> Rules:
    """Read the rules last applied; the default ones before the first apply."""
    row = transaction.one("SELECT rules FROM meta")
    return Rules.of(json.loads(row[0])) if row is not None and row[0] else Rules()


def _until(until_ms: int | None) -> str:
    if until_ms is None:
        return "until it is lifted"
    return f"until {moment(until_ms)}"
