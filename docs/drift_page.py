"""
What is compared with the world: the page that has the table of the code.

The table is `fleetform.model.drift_table`, by which findings are made; nothing is written down here.
"""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.model.drift import Remedy
from fleetform.model.drift_table import NOT_DRIFT, TABLE

_INTRODUCTION = """\
# Drift

A difference between the tree and what was applied is a change of the plan. A difference between what was applied and
what is there is **drift**: a person removed a directory, killed an agent, rebooted a host. `fleetform drift` compares with the
actual state and says what has drifted, from what to what, since when, and by whom where that is known. It starts nothing, and a
controller goes on undisturbed. What it finds is recorded, and plans, `why` and `status` show it until it is seen healed. The steps are in
[how-to/drift.md](how-to/drift.md).

How much a field binds:

- **enforced**: it is as it was made, or it is made so;
- **floor**: it may be more, and less is told;
- **observed**: nobody declares it; that it has changed is told.

What is done about it:

- **apply**: `fleetform plan --refresh` shows the change that sets it right, `fleetform apply --refresh` makes it, and so
  does `fleetform serve` by itself. Nothing is lost by it;
- **greeting**: whoever drives the runs next takes it in when the host says hello;
- **decide**: a person must say what is meant. A volume is held meanwhile;
- **accept**: `fleetform apply --refresh-only` takes note of it.

"""


def page() -> Iterator[str]:
    yield _INTRODUCTION
    yield "| kind | field | class | declared by | holds when nothing has drifted | then | |\n"
    yield "|---|---|---|---|---|---|---|\n"
    for (kind, field), row in sorted(TABLE.items()):
        declared = f"`{row.declared_by}`" if row.declared_by else ""
        then = "; ".join(part for part in (row.done, row.cure) if part)
        yield (
            f"| {kind} | `{field}` | {row.drift_class.value} | {declared} | {row.claim} | {then} |"
            f" {row.remedy.value} |\n"
        )
    yield "\nNot drift:\n\n"
    for (kind, field), why in sorted(NOT_DRIFT.items()):
        yield f"- {kind} `{field}`: {why}.\n"
    assert {row.remedy for row in TABLE.values()} == set(Remedy), "the list above names each"
