"""
The page on drift, with the table of the code.

The table is `fleetform.model.drift`, which also produces the findings; this module adds only the introduction.
"""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.model.drift import NOT_DRIFT, TABLE, Remedy

_INTRODUCTION = """\
# Drift

A difference between the configuration and the applied state is a change of the plan. A difference between the applied and the
actual state is **drift**: for example, a person removed a directory, killed an agent or rebooted a host. `fleetform drift` asks the
hosts and shows each drifted field as `expected → seen`, since when, and by whom if that is known. It starts nothing and does not disturb a
controller. It records the drift in the ledger, and plans, `why` and `status` show it until it is healed. Only `creation` is not recorded: `status`,
`why` and `fleet show` read it from what was written down before the cloud was asked. The steps are in [how-to/drift.md](how-to/drift.md).

An arrow in a change of a plan points from the value before the apply to the value after it. An arrow in drift points from the
expected value to the value that was seen, and both have these words: a correction has the same two values in the opposite order.

The class of a field:

- **enforced**: the field must be as applied, and is corrected or blocked otherwise;
- **floor**: the actual value may be higher; a lower one is drift;
- **observed**: no document declares the field; a change is reported.

The remedy:

- **apply**: `fleetform plan --refresh` shows the correction, and `fleetform apply --refresh` makes it. `fleetform serve` makes it by
  itself. Nothing is lost;
- **greeting**: the next controller records it;
- **decide**: a person must decide. Until then a volume is blocked;
- **accept**: `fleetform apply --refresh-only` accepts the value that was seen: it is expected from then on.

"""


def page() -> Iterator[str]:
    yield _INTRODUCTION
    yield "| kind | field | class | declared by | without drift | with drift | remedy |\n"
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
