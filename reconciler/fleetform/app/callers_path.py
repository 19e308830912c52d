"""
Finds commands that the caller's PATH has and the job's has not.

A job does not get the PATH of the shell that plans, so `python` of an activated virtual environment is
another `python` there, or none. A run would say so only when it fails. Nothing is executed: the first
word of each line is looked up in the folders of both.
"""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fleetform.agents.host import job_environment

if TYPE_CHECKING:
    from fleetform.model.plan import Plan
    from fleetform.spec.desired import Desired

__all__ = ["only_on_callers_path"]

LISTED_MAX = 20
"""A configuration that was written for another machine has as many as it has runs."""

# Variables may stand before the word that is looked up; a word with a `/` is a path and is not.
_FIRST_WORD = re.compile(r"\s*(?:[A-Za-z_]\w*=\S*\s+)*(?P<word>[\w.+-]+)(?=[\s;&|)]|\Z)")

# From here on the script decides by itself where programs are found.
_CHANGES_PATH = re.compile(r"\bPATH=|\A\s*(?:\.|source|eval|module|conda|spack)\s|\bactivate\b")


def only_on_callers_path(plan: Plan, desired: Desired, callers_path: str) -> list[dict[str, str]]:
    """
    Return a row for each run and program: `run`, `program`, and where the caller has it, `found`.

    Only runs that the plan starts or changes, on fleets of this machine: of a sweep, its first
    element stands for all.
    """

    @functools.cache
    def found(program: str, path: str) -> str:
        if shutil.which(program, path=path):
            return ""
        return shutil.which(program, path=callers_path) or ""

    local = {
        key.name: _path_of(desired.resources[key].document)
        for key in desired.resources
        if key.kind == "fleet" and "local" in desired.resources[key].document
    }
    rows = (
        {"run": run, "program": program, "found": place}
        for run, document in _documents(plan)
        if _runs_here(document, local)
        for program in _programs(document)
        for path in _paths(document, local)
        if (place := found(program, path))
    )
    unique = {(row["run"], row["program"]): row for row in rows}
    return list(unique.values())[:LISTED_MAX]


def _documents(plan: Plan) -> Iterator[tuple[str, Mapping[str, Any]]]:
    known = set()
    for change in plan.changes:
        name = change.parent or change.key.name
        for step in change.steps:
            if step.verb in {"run.submit", "run.update"} and name not in known:
                known.add(name)
                yield name, step.arguments["document"]


def _runs_here(document: Mapping[str, Any], local: Mapping[str, str]) -> bool:
    if document.get("image") or document.get("runtime", "process") != "process":
        return False
    fleets = set(document.get("fleets") or local)
    return bool(fleets) and fleets <= local.keys()


def _programs(document: Mapping[str, Any]) -> Iterator[str]:
    for line in _lines(document.get("commands") or ()):
        if _CHANGES_PATH.search(line):
            return
        if match := _FIRST_WORD.match(line):
            yield match["word"]


def _lines(commands: Iterable[str]) -> Iterator[str]:
    for command in commands:
        yield from command.splitlines()


def _paths(document: Mapping[str, Any], local: Mapping[str, str]) -> set[str]:
    """The job's PATH on each fleet that the run may be placed on."""
    own = _path_of(document, "")
    return {own or local[fleet] for fleet in document.get("fleets") or local}


def _path_of(document: Mapping[str, Any], default: str = job_environment.PATH) -> str:
    return str((document.get("env") or {}).get("PATH") or default)
