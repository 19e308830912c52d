"""
Plans in files: written whole or not at all, read with suspicion, carried out once.

A file says who made it, with which permissions, and has an id of its own; all of that is sealed
with the rest. What a plan in a file names of files is frozen when it is written, so that later
edits of the configuration do not make it useless.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.clock import RandomIds
from fleetform.app.frozen_contents import freeze_contents
from fleetform.app.problems import PlanProblem
from fleetform.checker.saved import check_saved
from fleetform.model.figures import first_of
from fleetform.model.history import HistoryEntry
from fleetform.model.plan import FieldChange, Kept, Permissions, Plan
from fleetform.model.redaction import fingerprint
from fleetform.model.refusals import StalePlan
from fleetform.plan.preconditions import Failing, failing, undone
from fleetform.plan.serialize import dump, is_plan, load, sealed
from fleetform.views.lines import printable
from fleetform.views.moments import moment
from fleetform.views.plan.groups import field_rows

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.history import HistoryEntry
    from fleetform.model.live import Live
    from fleetform.model.plan import Plan
    from fleetform.model.ports import Reader
    from fleetform.spec.desired import ResourceKey


@dataclass(frozen=True, slots=True)
class AppliedBefore:
    """
    The answer to a plan that was carried out before: nothing is done twice.

    `stands` tells whether all that it made is still as it made it.
    """

    sentence: str
    stands: bool


def write_plan_file(
    workspace: Workspace, plan: Plan, path: str, permissions: Permissions, *, who: str, now_ms: int
) -> Plan:
    """
    Write a plan into a file that only its owner reads; returns it as it was written.

    Raises:
        PlanProblem: The file cannot be written, or a file of a run has changed meanwhile.
    """
    from fleetform.store.blobs import FileBlobStore

    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # A rename would put the plan in the place of the device or the pipe itself.
        raise PlanProblem(f"{path} is not a regular file", "name one, such as `today.plan`")
    if not _may_be_replaced(target):
        # A slip of the hand would cost a document of the configuration, or a key.
        raise PlanProblem(
            f"{path} exists and is not a plan; it was not changed",
            "name another file, or remove that one first",
        )
    freeze_contents(workspace, plan, FileBlobStore(workspace.paths.blobs))
    kept = sealed(replace(plan, kept=Kept(RandomIds().uid(), now_ms, who, permissions)))
    try:
        _write(target, dump(kept))
    except OSError as problem:
        raise PlanProblem(
            f"the plan cannot be written into {path}: {problem.strerror}",
            "free some space, or name a file elsewhere; an existing file was not changed",
        ) from problem
    return kept


def _may_be_replaced(path: Path) -> bool:
    """Whether nothing is lost by it: there is no such file, an empty one, or an earlier plan."""
    try:
        there = path.read_bytes()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return not there or is_plan(there)


def _write(path: Path, data: bytes) -> None:
    """Put the file there at once: half a plan would be refused, and the earlier one be lost."""
    # `mkstemp` makes it readable for its owner alone, and a rename keeps that.
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def read_plan_file(workspace: Workspace, path: str) -> Plan:
    """
    Read what `write_plan_file` wrote.

    Raises:
        PlanProblem: It is no plan, was changed or cut, or is of another environment.
    """
    try:
        plan = load(Path(path).read_bytes())
    except ValueError as problem:
        raise PlanProblem(
            f"{path} is not a plan that can be applied: {problem}",
            "write one with `fleetform plan --out FILE`",
        ) from problem
    if plan.kept is None:
        raise PlanProblem(
            f"{path} was not written by `plan --out`, so it could be applied more than once",
            "write one with `fleetform plan --out FILE`",
        )
    if plan.environment_fingerprint != fingerprint(workspace.environment.uid):
        if plan.environment_name == workspace.environment.name:
            raise PlanProblem(
                f"{path} is a plan of another environment of this name: environment.yaml has another uid"
                " now, or this is another environment's folder",
                "put the uid back: it names the state and never changes; or name the other"
                " environment's folder with -C",
            )
        raise PlanProblem(
            f"{path} is a plan of the environment `{plan.environment_name}`, and this is"
            f" `{workspace.environment.name}`",
            "name the other environment's folder with -C",
        )
    return plan


def require_standing(workspace: Workspace, plan: Plan) -> AppliedBefore | None:
    """
    Check whether a saved plan can still be applied, before confirmation is asked for.

    One that was made with the actual state is judged after another look at it.

    Returns:
        The answer for one that was carried out before; None for one that may be.

    Raises:
        StalePlan: Something that it touches is not as it was; says what changed since.
    """
    reader = workspace.reader()
    if reader is None:
        return None
    with contextlib.closing(reader):
        live = reader.read_live()
        before = reader.read_applies_of(plan.digest)
        if (applied := next((one for one in before if one.state == "done"), None)) is not None:
            gone = undone(plan, live)
            at_ms = applied.finished_at_ms or applied.started_at_ms
            return AppliedBefore(applied_text(at_ms, applied.who, gone), not gone)
        if before:
            # It was begun: what it has done already is no reason to refuse the rest.
            return None
        if failures := failing(plan, live):
            raise StalePlan([_sentence(reader, plan, one) for one in failures])
    if plan.annex.get("depth") == "refresh":
        # What it was judged by, such as a host that is gone, stands in no ledger and may be otherwise.
        from fleetform.app.observe import refreshed

        live = refreshed(workspace).live
    _require_sound(plan, live)
    return None


def _require_sound(plan: Plan, live: Live) -> None:
    if violations := check_saved(plan, live):
        raise StalePlan([violation.sentence for violation in violations])


def _sentence(reader: Reader, plan: Plan, one: Failing) -> str:
    touch: HistoryEntry | None = None
    if one.key is not None and plan.kept is not None:
        touches = reader.read_touches(one.key, limit=1)
        if touches and touches[0].entry.at_ms >= plan.kept.made_at_ms:
            touch = touches[0].entry
    return standing_text(one.key, one.detail, one.fields, touch)


# Why a plan fits no more, in sentences: what is different, since when, and by whom.

FIELDS_MAX = 3
"""Fields that one sentence has room for."""


def standing_text(
    key: ResourceKey | None,
    detail: str,
    fields: Iterable[FieldChange] = (),
    touch: HistoryEntry | None = None,
) -> str:
    """
    Write one sentence: `run/train was changed since: priority is 9, and was 5 (root, …)`.

    Args:
        key: What it is about; None for the ledger.
        detail: What is there instead.
        fields: What changed of its document since the plan was made.
        touch: The apply that touched it last, where one is known.
    """
    if key is None:
        return detail
    rows = field_rows(key.kind, fields)
    changes = [_changed(row.path, row.before, row.after) for row in rows[:FIELDS_MAX]]
    if len(rows) > FIELDS_MAX:
        changes.append(f"and {len(rows) - FIELDS_MAX} more")
    what = f": {', '.join(changes)}" if changes else ""
    by = f" ({touch.who or 'an unknown user'}, {moment(touch.at_ms)})" if touch is not None else ""
    return f"{printable(str(key))} {detail}{what}{by}"


def _changed(path: str, before: str | None, after: str | None) -> str:
    if after is None:
        return f"{path} is not set, and was {before}"
    return f"{path} is {after}, and was {'not set' if before is None else before}"


def applied_text(at_ms: int, who: str, undone: tuple[ResourceKey, ...]) -> str:
    """Say that a plan was carried out before, and what of its outcome is changed since."""
    text = f"this plan was applied already, at {moment(at_ms)} by {who or 'an unknown user'}"
    if not undone:
        return text
    names = first_of([printable(str(key)) for key in undone], 1)
    return f"{text}; {names} {'has' if len(undone) == 1 else 'have'} changed since"
