"""Rows of volumes: created with the intent, so that the directory's owner has a uid before the directory exists."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fleetform.model.verbs import Verb
from fleetform.model.volume import ATTACHED_TO, DISK, MADE_ON, NOT_ON, RetainedData, Snapshot
from fleetform.store.database import to_json
from fleetform.store.lineage import LOST_AT
from fleetform.store.observations import heal
from fleetform.store.resources import (
    SHOWN_VERBS,
    Context,
    delete_resource,
    drop_making_volume,
    write_resource,
)

if TYPE_CHECKING:
    from fleetform.model.apply import StepOutcome
    from fleetform.model.plan import Step
    from fleetform.store.database import Transaction
    from fleetform.store.statements import Statements

__all__ = [
    "begin_make",
    "fail_make",
    "finish_drop",
    "finish_snapshot",
    "finish_withdraw",
    "finish_write",
    "note_attachment",
    "read_left",
    "read_retained_disks",
    "read_snapshots",
    "take_from_left",
    "uids_left",
]


def begin_make(context: Context, step: Step) -> None:
    """
    Give the volume a row, or reuse the one that a failed attempt has left: a tombstone with its document, until it exists.

    A returning volume keeps the uid stored in its marker file. Its generations continue above those that it has had, of which
    none can be above the serial: a plan for it as it was before is stale.
    """
    returns = step.arguments.get("returns", "")
    context.transaction.execute(
        "INSERT INTO resources (kind, name, uid, type, state, archived, document, operation, generation)"
        " VALUES ('volume', ?1, ?2, 'volume', 'making', 1, ?5, ?3,"
        " CASE WHEN ?4 = '' THEN 0 ELSE (SELECT serial FROM meta) END)"
        " ON CONFLICT (kind, name) DO UPDATE SET state = 'making', document = excluded.document,"
        " generation = CASE WHEN ?4 = '' THEN resources.generation ELSE excluded.generation END,"
        " uid = CASE WHEN ?4 = '' THEN resources.uid ELSE excluded.uid END"
        " WHERE resources.archived = 1",
        (
            step.resource.name,
            returns or context.ids.uid(),
            context.apply_uid,
            returns,
            to_json(step.arguments["document"]),
        ),
    )


def fail_make(context: Context, step: Step) -> None:
    """
    Keep the uid of a volume that could not be created, and nothing else; the retained data of a returning one keeps it.

    The directory may exist all the same, when only the answer was lost, and its marker has this uid: under another uid it
    would belong to another owner for ever. As a tombstone the row is absent to every plan; otherwise the volume would have to
    be replaced, which is destructive.
    """
    if step.arguments.get("returns"):
        context.transaction.execute(
            "DELETE FROM resources WHERE kind = 'volume' AND name = ? AND state = 'making'",
            (step.resource.name,),
        )
        return
    drop_making_volume(context.transaction, step.resource.name)


def finish_write(context: Context, steps: Sequence[Step], outcomes: Sequence[StepOutcome]) -> None:
    for step, outcome in zip(steps, outcomes, strict=True):
        said = step.arguments
        before = context.transaction.one(
            "SELECT state FROM resources WHERE kind = 'volume' AND name = ?", (step.resource.name,)
        )
        assert before is not None, f"{step.resource} has no row: was its step begun?"
        outputs = {**_kept(context, step), **outcome.outputs}
        write_resource(context.transaction, step.resource, said, outputs)
        lacking = outcome.outputs.get(NOT_ON, {})
        if lacking:
            # Without a digest it differs from what is declared: the next plan makes it there.
            context.transaction.execute(
                "UPDATE resources SET digest = '', execution_digest = '', own_digest = ''"
                " WHERE kind = 'volume' AND name = ?",
                (step.resource.name,),
            )
        # The host has found the directory, with our mark, before it said that this is done.
        heal(context.transaction, step.resource, keeps=("owner", "mode"))
        if step.verb != Verb.VOLUME_UPDATE:
            taken = said[DISK]["registered"] if DISK in said else said["path"]
            take_from_left(context.transaction, taken)
        made = "imported" if step.verb == Verb.VOLUME_ADOPT else "made"
        if said.get("returns"):
            made = "taken back"
        verb = made if before[0] == "making" else "updated"
        if said.get("lost"):
            verb = "recreated"
        lost = "; its data was lost" if said.get("lost") else ""
        what = f"was {SHOWN_VERBS.get(verb, verb)}{lost}{_lacking_text(lacking)}"
        context.log(f"volume.{verb.replace(' ', '-')}", what, step.resource)


def _lacking_text(lacking: Mapping[str, str]) -> str:
    """Name the hosts that do not have the directory, and why."""
    said = [f"{name}: {why}" for name, why in sorted(lacking.items())]
    return f"; not on {len(said)} of its hosts ({'; '.join(said)})" if said else ""


def _kept(context: Context, step: Step) -> dict[str, Any]:
    """
    Return the outputs that a step does not decide.

    When the volume began again without its data: `lineage` compares attempts with it. Where its disk is
    attached.
    """
    if step.arguments.get("lost"):
        return {LOST_AT: context.now_ms}
    row = context.transaction.one(
        "SELECT outputs FROM resources WHERE kind = 'volume' AND name = ? AND outputs <> ''",
        (step.resource.name,),
    )
    kept = json.loads(row[0]) if row is not None else {}
    return {name: kept[name] for name in (LOST_AT, ATTACHED_TO) if name in kept}


def note_attachment(transaction: Transaction, volume_uid: str, instance_uid: str) -> None:
    """See `model.cloud_ledger.CloudLedger.note_attachment`."""
    row = transaction.one(
        "SELECT outputs FROM resources WHERE kind = 'volume' AND uid = ? AND archived = 0",
        (volume_uid,),
    )
    if row is None:
        return
    outputs = {**json.loads(row[0] or "{}"), ATTACHED_TO: instance_uid}
    if not instance_uid:
        del outputs[ATTACHED_TO]
    transaction.execute(
        "UPDATE resources SET outputs = ? WHERE kind = 'volume' AND uid = ?",
        (to_json(outputs), volume_uid),
    )


def finish_drop(context: Context, steps: Sequence[Step], _: Sequence[StepOutcome]) -> None:
    for step in steps:
        uid = delete_resource(context.transaction, step.resource)
        kept = step.verb == Verb.VOLUME_FORGET
        # One that was never made in whole says no path.
        if kept and uid and step.arguments["path"]:
            _remember(context, step, uid, step.arguments["path"])
        if kept and DISK in step.arguments:
            disk = step.arguments[DISK]
            which = disk["registered"] or disk["id"]
            if uid and which:
                _remember(context, step, uid, which, path=which)
            what = f"was released; {which or 'its disk'} stays in {disk['place']['region']}"
            context.log("volume.forgotten", what, step.resource)
        elif kept:
            context.log(
                "volume.forgotten", "was released; its data stays where it is", step.resource
            )
        else:
            context.log("volume.removed", "was removed with its data", step.resource)


def finish_withdraw(
    context: Context, steps: Sequence[Step], outcomes: Sequence[StepOutcome]
) -> None:
    """Record which hosts are left, and where the data of the others is."""
    for step, outcome in zip(steps, outcomes, strict=True):
        said = step.arguments
        row = context.transaction.one(
            "SELECT uid, outputs FROM resources WHERE kind = 'volume' AND name = ?",
            (step.resource.name,),
        )
        assert row is not None, f"{step.resource} has no row"
        uid, outputs = row[0], json.loads(row[1] or "{}")
        for place in outcome.outputs.get("places", ()):
            _remember(context, step, uid, place)
        stays = frozenset(said["stays_on"])
        if MADE_ON in outputs:
            outputs[MADE_ON] = [name for name in outputs[MADE_ON] if name in stays]
            outputs[NOT_ON] = {
                name: why for name, why in outputs.get(NOT_ON, {}).items() if name in stays
            }
            context.transaction.execute(
                "UPDATE resources SET outputs = ? WHERE kind = 'volume' AND name = ?",
                (to_json(outputs), step.resource.name),
            )
        names = ", ".join(said.get("hosts", ())) or "all hosts that it does not list"
        left = outcome.outputs.get("left", ())
        more = f"; its data stays on {', '.join(left)}, which left the fleet" if left else ""
        context.log(
            "volume.withdrawn", f"left {names}: {_DATA_TEXT[said['data']]}{more}", step.resource
        )


_DATA_TEXT = {
    "retain": "its data stays there",
    "delete": "its data was deleted there",
    "snapshot": "its data was kept as a snapshot there",
}


def finish_snapshot(
    context: Context, steps: Sequence[Step], outcomes: Sequence[StepOutcome]
) -> None:
    """Write down each place that the hosts have named and that is not known yet."""
    for step, outcome in zip(steps, outcomes, strict=True):
        said = step.arguments
        uid = delete_resource(context.transaction, step.resource)
        known = {
            place
            for (place,) in context.transaction.execute(
                "SELECT place FROM snapshots WHERE volume_uid = ? AND place <> path", (uid,)
            )
        }
        places = outcome.outputs["places"] if "places" in outcome.outputs else [said["into"]]
        for place in places:
            # One may have been put aside before, and nobody have heard of it.
            if place not in known:
                _remember(context, step, uid, place)
        is_disk = DISK in said
        where = said[DISK]["place"]["region"] if is_disk else f"fleet {said['fleet']}"
        nothing = (
            "its disk was gone"
            if is_disk
            else f"fleet {said['fleet']} had nothing in {said['path']} to keep as a snapshot"
        )
        what = (
            f"was kept as a snapshot: its data is in {' and '.join(places)} "
            f"{'in' if is_disk else 'on'} {where}"
            if places
            else f"was removed: {nothing}"
        )
        context.log("volume.snapshot", what, step.resource)


def _remember(context: Context, step: Step, uid: str, place: str, *, path: str = "") -> None:
    """Write down where the data of a volume is that goes; `place` is its own path, or disk, if it stays."""
    said = step.arguments
    context.transaction.execute(
        "INSERT INTO snapshots (volume, volume_uid, fleet, path, place, who, taken_at_ms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            step.resource.name,
            uid,
            said["fleet"],
            path or (said[DISK]["place"]["region"] if DISK in said else said["path"]),
            place,
            context.who,
            context.now_ms,
        ),
    )


def read_snapshots(connection: Statements) -> tuple[Snapshot, ...]:
    """Read the snapshots, newest first."""
    rows = connection.execute(
        "SELECT volume, volume_uid, fleet, path, place, who, taken_at_ms FROM snapshots"
        " WHERE place <> path ORDER BY number DESC"
    )
    return tuple(Snapshot(*row) for row in rows)


# Data of released volumes: where it is, and whose it was.
# The rows are those of snapshots whose place is the volume's own path, or its disk. Read for each plan, so
# nothing is imported here that a plan does not need.

_LEFT = (
    "SELECT volume, volume_uid, path FROM snapshots s WHERE place = path AND fleet <> '' AND NOT EXISTS"
    # A rebuilt ledger has found it by its mark.
    " (SELECT 1 FROM resources r WHERE r.kind = 'volume' AND r.uid = s.volume_uid"
    " AND r.archived = 0) ORDER BY number"
)


def read_left(connection: Statements) -> tuple[RetainedData, ...]:
    """Read the directories of released volumes, in the order of their release."""
    return tuple(RetainedData(*row) for row in connection.execute(_LEFT))


def read_retained_disks(connection: Statements) -> dict[str, str]:
    """Read the ids of disks that stayed when their volumes were released, by name: of several the newest."""
    return dict(
        connection.execute(
            "SELECT volume, path FROM snapshots WHERE place = path AND fleet = '' ORDER BY number"
        )
    )


def uids_left(transaction: Transaction) -> frozenset[str]:
    return frozenset(uid for _, uid, _ in transaction.execute(_LEFT))


def take_from_left(transaction: Transaction, path: str) -> None:
    """Forget what was left in a directory or on a disk: a volume has it now."""
    transaction.execute("DELETE FROM snapshots WHERE place = path AND path = ?", (path,))
