"""
A freeze window, of those last applied, that is open when the plan is made.

Which window it is stands in the plan; until when is in the annex, as times are.
"""

from __future__ import annotations

from fleetform.model.plan import HeldBy
from fleetform.model.windows import is_held, open_spell
from fleetform.plan.draft import Sheet

_CURE = "plan again when it is over, or suspend it for a limited time with `fleetform emergency thaw --reason …`"


def hold_in_window(sheet: Sheet) -> None:
    if not sheet.rules.freeze:
        return
    spell = open_spell(sheet.rules, sheet.overrides, sheet.now_ms)
    if spell is None:
        return
    for key, change in list(sheet.changes.items()):
        if is_held(spell, change, sheet.rules):
            sheet.hold(key, HeldBy.WINDOW, spell.window.reason, _CURE)
