"""
Find problems of a document that its model does not see: parts that are not supported yet, and unknown addresses.

The facts of what is supported stand at the fields; here they are matched with what a document sets. A
field that is set is reported once, at its key, and its parts are not reported again. One that says
what holds without it asks for nothing, and is not reported.

`${{ groups[0].nodes[1].IP_ADDRESS }}` names a node or a replica of the run. Nothing fills addresses in
yet. One that no host will ever have is a mistake all the same, and the document is where it is
corrected.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fleetform.spec import fields
from fleetform.spec.findings import Level, Problem
from fleetform.spec.interpolate import group_address, references
from fleetform.spec.kinds import Kind
from fleetform.spec.kinds.base import Document, no_effect, not_supported, text_of
from fleetform.spec.kinds.run import Run
from fleetform.spec.kinds.service import Service
from fleetform.spec.kinds.task import Task
from fleetform.spec.kinds.unsupported import KINDS, WHY
from fleetform.spec.names import counted
from fleetform.spec.nodes import MappingNode, Node, ScalarNode
from fleetform.spec.quantities import Range
from fleetform.spec.secrecy import names_secret

Path = tuple[str | int, ...]

_MEANWHILE = "Until then, plans block it."


def notes(
    value: Mapping[str, Any], kind: Kind, model: Document, problems: Iterable[Problem] = ()
) -> Iterator[Problem]:
    """
    Note the parts of a document that are not supported yet.

    Args:
        value: The document as it is written, for the places.
        kind: The document's, whose fields' rows are asked.
        model: The same, read; tells values that are not carried out in fields that are.
        problems: What is known of it already. A field that is wrong is not told twice.
    """
    if kind.name in KINDS:
        yield not_supported(("type",), KINDS[kind.name], _MEANWHILE)
        return
    type_name = str(value.get("type", ""))
    if type_name in KINDS:
        yield not_supported(("type",), KINDS[type_name], _MEANWHILE)
        return
    whole = model.whole()
    if whole is not None:
        # A field that could not be read may be the one that says what the document is about.
        if model.model_fields_set.issuperset(value):
            yield whole
        return
    wrong = {one.path[0] for one in problems if one.level is Level.ERROR and one.path}
    told = list(_field_notes(value, kind, type_name))
    # One value may be spelled as a part of its own, which has a row, and as a text.
    spelled = {one.path[:length] for one in told for length in range(1, len(one.path) + 1)}
    for problem in (*told, *(one for one in model.beyond() if one.path not in spelled)):
        if problem.path[0] not in wrong:
            yield problem


def rewritten_numbers(document: Node) -> Iterator[Problem]:
    """
    Warn of variables in `env:` that are numbers of YAML and reach the job in another spelling.

    A number has one canonical spelling, so that another spelling of it re-runs nothing. A program that reads
    a variable compares text: for it `1e3` and `1000.0` are different.
    """
    env = document.get("env") if isinstance(document, MappingNode) else None
    for key, item in env.entries if isinstance(env, MappingNode) else ():
        if not isinstance(item, ScalarNode) or type(item.value) not in {int, float}:
            continue
        raw, text = item.raw, text_of(item.value, key.raw)
        if raw == text:
            continue
        if names_secret(key.raw):
            # What is printed ends up in logs.
            detail = f"`{key.raw}` is a number, and the job will see another spelling of it."
            advice = "Put it in quotes to keep the text as it is written."
        else:
            detail = f"`{key.raw}` is the number `{raw}`; the job will see the text `{text}`."
            advice = f'Write `{key.raw}: "{raw}"` to keep the text, or `{key.raw}: "{text}"`.'
        yield Problem("number-rewritten", ("env", key.raw), detail, advice, level=Level.WARNING)


def _field_notes(value: Mapping[str, Any], kind: Kind, type_name: str) -> Iterator[Problem]:
    """What the rows of fields that are set say."""
    rows = fields.unsupported(type_name)
    why = WHY.get(kind.name, {})
    for name in value:
        for path, steps in _paths(type_name).get(name, ()):
            at = _first(value, steps)
            if at is None or _is_so_anyway(value, at, kind.name, path):
                continue
            detail = why.get(path, "This is not supported yet.")
            if rows[path].essential:
                yield not_supported(at, f"`{path}`: {detail}", _MEANWHILE)
            else:
                yield no_effect(at, f"`{path}`: {detail}", "It is ignored until then.")


def _is_so_anyway(value: Mapping[str, Any], at: Path, kind: str, path: str) -> bool:
    """Whether the field says what holds without it: `privileged: false`."""
    if at != (path,) or path not in fields.DEFAULTS[kind]:
        return False
    default = fields.DEFAULTS[kind][path]
    # By type as well: 1 is `true` to Python.
    return type(value[path]) is type(default) and value[path] == default


@functools.cache
def _paths(type_name: str) -> Mapping[str, list[tuple[str, list[str]]]]:
    """Rows at or below each top-level field that has some, with the names that lead there."""
    found: dict[str, list[tuple[str, list[str]]]] = {}
    for path in fields.unsupported(type_name):
        steps = path.split(".")
        found.setdefault(steps[0], []).append((path, steps))
    return found


def _first(value: Any, steps: list[str]) -> Path | None:
    """Where a path of names leads, through lists as well; None: it is not set."""
    if not steps:
        return () if value is not None else None
    # A plain value: its mappings are dicts, and asking for those alone is ten times cheaper.
    if isinstance(value, dict):
        rest = _first(value[steps[0]], steps[1:]) if steps[0] in value else None
        return None if rest is None else (steps[0], *rest)
    if isinstance(value, list):
        for number, item in enumerate(value):
            rest = _first(item, steps) if isinstance(item, dict) else None
            if rest is not None:
                return (number, *rest)
    return None


def address_problems(run: Run, compiled: Mapping[str, Any]) -> Iterator[Problem]:
    """References to groups, nodes and replicas that the run does not have."""
    member, sizes = _sizes(run)
    for path, reference in references(compiled):
        address = group_address(reference)
        if address is None:
            continue
        group, said, number = address
        word = f"groups[{group}].{said}[{number}].IP_ADDRESS"
        detail = _problem(member, sizes, *address)
        if detail:
            yield Problem("unknown-expression", path, f"`${{{{ {word} }}}}`: {detail}", word=word)


def _sizes(run: Run) -> tuple[str, list[int]]:
    """What the parts of a group are called, and how many each group has when the run starts."""
    if isinstance(run, Task):
        if run.groups is not None:
            return "nodes", [group.nodes or 1 for group in run.groups]
        return "nodes", [run.nodes or 1]
    if isinstance(run, Service):
        if run.replica_groups:
            return "replicas", [group.replicas.min or 0 for group in run.replica_groups]
        return "replicas", [(run.replicas.min or 0) if isinstance(run.replicas, Range) else 1]
    return "", []


def _problem(member: str, sizes: list[int], group: int, said: str, number: int) -> str:
    if not member:
        return "a dev environment has no groups."
    if said != member:
        return f"a group has `{member}` here."
    if group >= len(sizes):
        return f"the run has {counted(len(sizes), 'group')}, counted from 0."
    if number >= sizes[group]:
        noun = "node" if member == "nodes" else "replica"
        return f"the group has {counted(sizes[group], noun)} at its start, counted from 0."
    return ""
