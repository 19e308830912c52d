"""
An experiment: a user's file becomes a document of their configuration, with the code around it.

It lies in the folder `scratch` of the configuration, which git ignores, so it is not reviewed and no other
clone has it. What bounds it: it declares one run, within a time limit, and its document goes a
while after the run has ended; the result is kept, as of any run that is removed from the configuration.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fleetform.agents.protocol.messages import BUNDLE_BYTES_MAX, BUNDLE_FILES_MAX
from fleetform.app.edit import Editor
from fleetform.app.edits import Edits, write_edits
from fleetform.app.problems import BlockedProblem, EditProblem, LedgerProblem
from fleetform.app.submitted_document import (
    Made,
    Setting,
    TypedPlaces,
    complete_document,
    document_of,
    variables_of_shell,
)
from fleetform.model.figures import counted
from fleetform.model.run_state import FINAL, RunState
from fleetform.source.bundle import Bundle, BundleRefused, make_bundle
from fleetform.source.tree import working_tree
from fleetform.spec.convert.conversion import derive_name
from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Level
from fleetform.spec.names import NAME_LENGTH_MAX, name_problem
from fleetform.spec.private_folder import make_private_folder
from fleetform.spec.secrecy import names_secret
from fleetform.spec.syntax.files import create_file
from fleetform.store.blobs import FileBlobStore

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.live import Live
    from fleetform.spec.convert.slurm import Partitions
    from fleetform.spec.findings import Finding


SCRATCH: Final = "scratch"
"""The folder in the configuration, relative to it."""

_KEPT_SECONDS: Final = 14 * 86_400
"""How long a document stays after it was submitted, once its run is over: two weeks to `keep` it."""

_IGNORE = "# Experiments: `fleetform keep` moves one into the configuration.\n*\n"


@dataclass(frozen=True, slots=True)
class Submission:
    """
    What is to be written, and what it is about.

    `source` is FILE as typed, and `file` the document in the configuration.
    `elements` is how many runs it makes. `expired` are documents of earlier experiments that go with it. `findings` are warnings and
    notes, at the places where a person wrote what they are about. `from_shell` are variables that the document has from the shell.
    `secrets` are variables from the shell or the command line whose values will be in the document. `taken_name` is the name that FILE
    gives and an earlier run has, and `is_taken_by_unschedulable` tells whether that run could not start. `unsent` are files that it seems to use and that are not sent.
    """

    source: Path
    key: ResourceKey
    file: str
    edits: Edits
    bundle: Bundle
    elements: int
    expired: tuple[ResourceKey, ...]
    findings: tuple[Finding, ...]
    from_shell: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    taken_name: str = ""
    is_taken_by_unschedulable: bool = False
    unsent: tuple[Path, ...] = ()


def prepare_submission(
    workspace: Workspace,
    file: Path,
    *,
    name: str,
    settings: Sequence[Setting],
    arguments: Sequence[str],
    live: Live | None,
    shell: Callable[[str], str | None],
    files: Sequence[Path] = (),
    sends_file: bool = True,
) -> Submission:
    """
    Make a document of `file`, and a bundle of the working copy around it.

    Args:
        workspace: The environment that it runs in.
        file: A document with one run, or a script.
        name: What the run is called; empty: after the file.
        settings: Fields that the document is to have, whatever the file says.
        arguments: For a script.
        live: What is there; None: nothing was ever applied.
        shell: Returns a variable of the shell as a value of a document, or None where it is not set.
        files: What is sent besides FILE, what its `files:` name and what git has around it.
        sends_file: FILE itself is sent; False for a document that no person has written.

    Raises:
        EditProblem: Something about the file, its code or the name cannot be; nothing is left.
        BlockedProblem: The run needs something that is not supported yet or not declared.
    """
    editor = Editor(workspace)
    made = document_of(
        file,
        arguments,
        name=name or derive_name(file.stem),
        partitions=lambda: _partitions(workspace),
        variables=frozenset(
            str(one.path[1]) for one in settings if one.path[0] == "env" and len(one.path) == 2
        ),
        known=frozenset(key.name for key in editor.declared_runs()),
    )
    if all(one.path[0] != "depends_on" for one in settings):
        _refuse_unresolved(file, made.unresolved)
    taken = _taken(editor, live)
    chosen = _chosen(name, made.name, file, taken)
    # A name in FILE that cannot be one is an error of its line, and never a path.
    stem = chosen if name_problem(chosen) is None else derive_name(chosen)
    path, key = f"{SCRATCH}/{stem}.yaml", ResourceKey("run", chosen)
    taken_over, unset = variables_of_shell(made.text, settings, shell)
    settings = (*taken_over, *(Setting(("env", one), "") for one in unset), *settings)
    bundle = _bundle(workspace, file, made, files, sends_file=sends_file)
    try:
        text = complete_document(made, chosen, file, bundle, settings)
        places = TypedPlaces(file, path, text, settings)
        expired = _drop_expired(editor, workspace, live)
        editor.add_text(path, text, key)
        edits = _finished(editor, file, places)
        _refuse_blocked(edits, chosen)
        _refuse_unset(file, unset)
    except BaseException:
        bundle.path.unlink(missing_ok=True)
        raise
    declared = () if edits.loaded.desired is None else edits.loaded.desired.resources.values()
    elements = sum(chosen in {one.key.name, one.parent} for one in declared)
    secrets = tuple(_secrets(settings))
    found = [
        one
        for one in places.moved(edits.loaded.findings)
        if one.code != "secret-in-clear" or not any(f"`{name}`" in one.detail for name in secrets)
    ]
    return Submission(
        file,
        key,
        path,
        edits,
        bundle,
        elements,
        expired,
        (*made.findings, *found),
        tuple(str(one.path[1]) for one in taken_over),
        secrets,
        made.name if made.name in taken and not name else "",
        _is_unschedulable(made.name, live),
        tuple(one for one in sorted(made.uses) if not _is_sent(one, bundle)),
    )


def _finished(editor: Editor, file: Path, places: TypedPlaces) -> Edits:
    """
    Read the configuration with the document.

    Raises:
        EditProblem: The document has errors, which are shown where a person wrote them.
    """
    try:
        return editor.finish()
    except EditProblem as problem:
        if not (mine := places.moved(problem.findings)):
            raise
        raise EditProblem(
            f"{file} is not submitted: {counted(len(mine), 'error')}", findings=mine
        ) from problem


def _refuse_blocked(edits: Edits, name: str) -> None:
    """
    Refuse a run that would be blocked before a person is asked for values that it needs.

    Raises:
        BlockedProblem: Its obstacle, as a plan would show it.
    """
    from fleetform.plan.blockers.unsupported import held_by_obstacles
    from fleetform.views.reasons import HELD_BY, blocked_text

    beyond = {} if edits.loaded.desired is None else edits.loaded.desired.beyond
    for one in beyond.values():
        if name in {one.declared.key.name, one.declared.parent}:
            held = held_by_obstacles(one, None)
            raise BlockedProblem(
                f"{name} is blocked: {blocked_text(HELD_BY[held.by], held.detail)}", held.cure
            )


def _refuse_unresolved(file: Path, unresolved: Sequence[Finding]) -> None:
    """
    Refuse a batch script whose dependencies are not runs of the environment: it would start at once.

    Raises:
        EditProblem: There is one, with the ways to state it.
    """
    if unresolved:
        raise EditProblem(
            f"{file} is not submitted: {counted(len(unresolved), 'dependency', 'dependencies')}"
            " cannot be resolved",
            f"name the run to wait for with `-s depends_on=NAME`, or remove the option from {file}",
            findings=tuple(replace(one, level=Level.ERROR, advice="") for one in unresolved),
        )


def _refuse_unset(file: Path, names: Sequence[str]) -> None:
    """
    Refuse variables that `env:` names without a value and that the shell does not have.

    Raises:
        EditProblem: The first of them, with the ways to set it.
    """
    if names:
        raise EditProblem(
            f"`env:` of {file} has `{names[0]}` without a value, and it is not set in this shell",
            f"`export {names[0]}=…` first, or write -e {names[0]}=VALUE",
        )


def _secrets(settings: Sequence[Setting]) -> Iterator[str]:
    """Yield the variables of the command line and the shell whose names say that they are secrets."""
    for path, value, _ in settings:
        if path[0] == "env" and len(path) == 2 and value and names_secret(str(path[1])):
            yield str(path[1])


def write_submission(workspace: Workspace, submission: Submission) -> None:
    """
    Put the code where jobs get it from, then write the document.

    Raises:
        LedgerProblem: The state folder cannot be written.
        EditProblem: Another process has written the same file meanwhile.
    """
    bundle = submission.bundle
    try:
        FileBlobStore(workspace.paths.blobs).put_file(bundle.sha256, str(bundle.path))
    except OSError as problem:
        raise LedgerProblem(
            f"the code cannot be kept in {workspace.paths.blobs}: {problem.strerror}",
            "free some space, or set FLEETFORM_STATE_HOME to another disk",
        ) from problem
    finally:
        bundle.path.unlink(missing_ok=True)
    ignore = workspace.root / SCRATCH / ".gitignore"
    if not ignore.exists():
        # Another submit may have made it by now.
        with suppress(FileExistsError):
            create_file(ignore, _IGNORE.encode())
    write_edits(workspace.root, submission.edits)


def is_scratch(file: str) -> bool:
    """Tell whether a document of the configuration is an experiment, which has no review."""
    return file.startswith(f"{SCRATCH}/")


def withdraw(workspace: Workspace, submission: Submission) -> None:
    """Take the document back: nothing of it was applied."""
    (workspace.root / submission.file).unlink(missing_ok=True)


def _partitions(workspace: Workspace) -> Partitions:
    """Return the queues and fleets of the environment, which partitions may be called after."""
    from fleetform.spec.convert.slurm import Partitions

    desired = workspace.load().desired
    keys = () if desired is None else desired.resources
    return Partitions(
        frozenset(key.name for key in keys if key.kind == "queue"),
        frozenset(key.name for key in keys if key.kind == "fleet"),
        option="-s fleets=FLEET",
    )


# -- the name ---------------------------------------------------------------------------------


def _taken(editor: Editor, live: Live | None) -> set[str]:
    """Names of runs that there are or were: a result that is kept would be found again."""
    names = {key.name for key in editor.declared_runs()}
    if live is not None:
        names.update(
            row.parent or key.name for key, row in live.resources.items() if key.kind == "run"
        )
    return names


def _is_unschedulable(name: str, live: Live | None) -> bool:
    """Tell whether a run is over without a start, with all its elements: no declared fleet can run it."""
    rows = () if live is None else live.resources.values()
    runs = [row.run for row in rows if row.key.kind == "run" and name in {row.key.name, row.parent}]
    return bool(runs) and all(
        run is not None and run.state is RunState.UNSCHEDULABLE for run in runs
    )


def _chosen(name: str, own: str, file: Path, taken: set[str]) -> str:
    if not name:
        if own and own not in taken:
            return own
        # Short enough to type, and two who submit the same file at once do not meet.
        ending = base64.b32encode(os.urandom(3)).decode().lower().rstrip("=")[:4]
        return f"{(own or derive_name(file.stem))[: NAME_LENGTH_MAX - 5].rstrip('-')}-{ending}"
    problem = name_problem(name)
    if problem:
        raise EditProblem(f"-n {name}: {problem}")
    if name not in taken:
        return name
    free = next(
        candidate
        for number in range(2, len(taken) + 3)
        if (candidate := f"{name[: NAME_LENGTH_MAX - 5]}-{number}") not in taken
    )
    raise EditProblem(f"there is or was a run `{name}`", f"`-n {free}` is free")


# -- the code -------------------------------------------------------------------------------------


def _bundle(
    workspace: Workspace, file: Path, made: Made, wanted: Sequence[Path], *, sends_file: bool
) -> Bundle:
    """Put the working copy around `file` together; outside of git, `file` and what goes with it."""
    into = workspace.paths.blobs
    folder = file.parent.resolve()
    if (repository := working_tree(folder)) is None:
        # A script may use files of the folders above, where it was submitted.
        used = (made.folder, *(one.parent for one in made.found))
        folder = Path(os.path.commonpath([folder, *(one.resolve() for one in used)]))
    root = repository or folder
    found = [one for one in made.found if one.resolve().is_relative_to(root)]
    try:
        make_private_folder(into)
        return make_bundle(
            folder,
            into,
            files_max=BUNDLE_FILES_MAX,
            bytes_max=BUNDLE_BYTES_MAX,
            wanted=(*([file] if sends_file else ()), *made.files, *found, *wanted),
        )
    except BundleRefused as refusal:
        raise EditProblem(refusal.message, refusal.advice) from refusal


def _is_sent(path: Path, bundle: Bundle) -> bool:
    """Tell whether a file, or anything of a folder, is in the bundle."""
    name = os.path.relpath(path.parent.resolve() / path.name, bundle.root)
    return name in bundle.names or any(one.startswith(f"{name}/") for one in bundle.names)


# -- what has had its time --------------------------------------------------------------------


def _drop_expired(
    editor: Editor, workspace: Workspace, live: Live | None
) -> tuple[ResourceKey, ...]:
    """Remove the documents of finished experiments that were not kept; their results stay."""
    if live is None:
        return ()
    expired = []
    for key, file in editor.declared_runs().items():
        if not is_scratch(file) or not _is_old(workspace.root / file):
            continue
        rows = [row for row in live.resources.values() if key.name in {row.key.name, row.parent}]
        if rows and all(row.run is not None and row.run.state in FINAL for row in rows):
            editor.remove_document(editor.find(str(key)))
            expired.append(key)
    return tuple(expired)


def _is_old(file: Path) -> bool:
    return time.time() - file.stat().st_mtime > _KEPT_SECONDS
