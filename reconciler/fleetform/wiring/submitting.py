"""
An experiment: a file of somebody's becomes a document of their own tree, with the code around it.

It lies in the tree's `scratch` folder, which git ignores, so nobody reviews it and nobody else's
clone has it. What bounds it: it declares one run, within a time limit, and its document goes a
while after the run has ended; the result is kept, as of any run that leaves the tree.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fleetform.agents.protocol.messages import BUNDLE_BYTES_MAX, BUNDLE_FILES_MAX
from fleetform.model.run_state import FINAL
from fleetform.source.bundle import Bundle, BundleRefused, make_bundle
from fleetform.source.git import working_tree
from fleetform.spec.convert.naming import derive_name
from fleetform.spec.dataclass import dataclass
from fleetform.spec.desired import ResourceKey
from fleetform.spec.edit import EditRefused, create_file, remove, set_value
from fleetform.spec.names import NAME_LENGTH_MAX, name_problem
from fleetform.spec.private_folder import make_private_folder
from fleetform.store.blobs import FileBlobStore
from fleetform.wiring.editing import ABSENT, Editor
from fleetform.wiring.edits import Edits, write_edits
from fleetform.wiring.locating import documents_of, value_at, written_path
from fleetform.wiring.problems import EditProblem, LedgerProblem
from fleetform.wiring.scripts import Made, document_of, file_mappings

if TYPE_CHECKING:
    from fleetform.model.live import Live
    from fleetform.spec.convert.slurm import Partitions
    from fleetform.spec.findings import Finding
    from fleetform.wiring.workspace import Workspace

__all__ = [
    "SCRATCH",
    "Submission",
    "is_scratch",
    "prepare_submission",
    "withdraw",
    "write_submission",
]

SCRATCH: Final = "scratch"
"""The folder in the tree, relative to it."""

MAX_DURATION: Final = "8h"
"""Of an experiment that says nothing: a working day, and not the weekend that was forgotten."""

_KEPT_SECONDS: Final = 14 * 86_400
"""How long a document stays after it was submitted, once its run is over: two weeks to `keep` it."""

_IGNORE = "# Experiments: `fleetform keep` moves one into the configuration.\n*\n"

FROM_SHELL: Final = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX")
"""
What decides which programs a person's commands find. A job has none of it by itself, so a submission
writes it into the document, where it can be seen and changed.
"""

Setting = tuple[tuple[str | int, ...], Any]
"""A path in the document and what it is to say, or ABSENT."""


@dataclass(frozen=True, slots=True)
class Submission:
    """
    What is to be written, and what it is about.

    `source` is FILE as typed, and `file` the document in the tree.
    `elements` is how many runs it makes. `expired` are documents of earlier experiments that go with it. `findings` are what a script
    of another system could not say here. `from_shell` are variables that the document has from the shell. `taken_name` is the name that
    FILE gives and an earlier run has. `unsent` are files that it seems to use and that are not sent.
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
    taken_name: str = ""
    unsent: tuple[Path, ...] = ()


def prepare_submission(
    workspace: Workspace,
    file: Path,
    *,
    name: str,
    settings: Sequence[Setting],
    arguments: Sequence[str],
    live: Live | None,
    shell: Mapping[str, str],
    files: Sequence[Path] = (),
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
        shell: Variables of the shell, as values of a document. Those of FROM_SHELL that neither the
            file nor `settings` set go into the document.
        files: What is sent besides FILE, what its `files:` name and what git has around it.

    Raises:
        EditProblem: Something about the file, its code or the name cannot be; nothing is left.
    """
    editor = Editor(workspace)
    made = document_of(
        file,
        arguments,
        name=name or derive_name(file.stem),
        partitions=lambda: _partitions(workspace),
    )
    taken = _taken(editor, live)
    chosen = _chosen(name, made.name, file, taken)
    bundle = _bundle(workspace, file, made, files)
    try:
        path = f"{SCRATCH}/{chosen}.yaml"
        taken_over = _taken_over(made.text, settings, shell)
        settings = [*((("env", name), value) for name, value in taken_over.items()), *settings]
        text = _in_order(_completed(made, chosen, file, bundle, settings), path)
        key = ResourceKey("run", chosen)
        expired = _drop_expired(editor, workspace, live)
        editor.add_text(path, text, key)
        edits = editor.finish()
    except BaseException:
        bundle.path.unlink(missing_ok=True)
        raise
    declared = () if edits.loaded.desired is None else edits.loaded.desired.resources.values()
    elements = sum(chosen in {one.key.name, one.parent} for one in declared)
    return Submission(
        file,
        key,
        path,
        edits,
        bundle,
        elements,
        expired,
        made.findings,
        tuple(taken_over),
        made.name if made.name in taken and not name else "",
        tuple(one for one in sorted(made.uses) if not _is_sent(one, bundle)),
    )


def write_submission(workspace: Workspace, submission: Submission) -> None:
    """
    Put the code where jobs get it from, then write the document.

    Raises:
        LedgerProblem: The state folder cannot be written.
        EditProblem: Somebody has written the same file meanwhile.
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
        create_file(ignore, _IGNORE.encode())
    write_edits(workspace.root, submission.edits)


def is_scratch(file: str) -> bool:
    """Tell whether a document of the configuration is an experiment, which nobody reviews."""
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


def _chosen(name: str, own: str, file: Path, taken: set[str]) -> str:
    if not name:
        if own and own not in taken:
            return own
        # Short enough to type, and two who submit the same file at once do not meet.
        ending = base64.b32encode(os.urandom(3)).decode().lower().rstrip("=")[:4]
        return f"{(own or derive_name(file.stem))[: NAME_LENGTH_MAX - 5].rstrip('-')}-{ending}"
    problem = name_problem(name)
    if problem:
        raise EditProblem(problem)
    if name not in taken:
        return name
    free = next(
        candidate
        for number in range(2, len(taken) + 3)
        if (candidate := f"{name[: NAME_LENGTH_MAX - 5]}-{number}") not in taken
    )
    raise EditProblem(f"there is or was a run `{name}`", f"`-n {free}` is free")


# -- the document -----------------------------------------------------------------------------


def _completed(
    made: Made, name: str, file: Path, bundle: Bundle, settings: Sequence[Setting]
) -> str:
    text = made.text
    (said,) = documents_of(text)
    code = {"sha256": bundle.sha256, **({"commit": bundle.commit} if bundle.commit else {})}
    try:
        text = set_value(text, 0, ("name",), name, after="type")
        text = _without_files(text, said, file)
        for path, value in (
            *settings,
            *_bounds(said, settings),
            *_place(said, made.folder, bundle),
        ):
            (now,) = documents_of(text)
            steps, item = written_path(now, path, value, absent=ABSENT)
            if item is not ABSENT:
                text = set_value(text, 0, steps, item)
            elif value_at(now, steps) is not None:
                text = remove(text, 0, steps)
        return set_value(text, 0, ("code",), code)
    except EditRefused as refusal:
        raise EditProblem(f"{file}: {refusal.message}", refusal.advice) from refusal


def _taken_over(text: str, settings: Sequence[Setting], shell: Mapping[str, str]) -> dict[str, str]:
    """Return what the document gets from the shell: what the document and the command line leave open."""
    (said,) = documents_of(text)
    if said.get("image") is not None or said.get("runtime", "process") != "process":
        return {}  # The folders of this machine are not in a container.
    env = said.get("env") or ()
    known = set(env) if isinstance(env, Mapping) else {str(one).partition("=")[0] for one in env}
    for path, _ in settings:
        if path == ("env",):
            return {}
        if path[0] == "env":
            known.add(str(path[1]))
    return {name: shell[name] for name in FROM_SHELL if name in shell and name not in known}


def _in_order(text: str, path: str) -> str:
    """The document as `fmt` would leave it: who keeps it has it looked at."""
    from fleetform.spec.format import format_bytes

    return format_bytes(text.encode(), path).data.decode()


def _bounds(said: Mapping[str, Any], settings: Sequence[Setting]) -> list[Setting]:
    is_said = "max_duration" in said or any(path[0] == "max_duration" for path, _ in settings)
    return [] if is_said else [(("max_duration",), MAX_DURATION)]


def _place(said: Mapping[str, Any], folder: Path, bundle: Bundle) -> list[Setting]:
    """Commands run in `folder`: where the file lies, as they do when they are typed beside it."""
    where = said.get("working_dir")
    if isinstance(where, str) and where.startswith(("/", "~")):
        return []
    below = os.path.relpath(folder.resolve(), bundle.root)
    whole = os.path.normpath(f"{below}/{where}" if where else below)
    return [] if whole == "." else [(("working_dir",), whole)]


def _without_files(text: str, said: Mapping[str, Any], file: Path) -> str:
    """
    Take out what the bundle brings: files that lie where they lay, and the checkout itself.

    Raises:
        EditProblem: A file is wanted elsewhere than where it lies.
    """
    if said.get("repos") in (".", ["."]):
        text = remove(text, 0, ("repos",))
    if said.get("files") is None:
        return text
    for local, there in file_mappings(said):
        if there and os.path.normpath(there) != os.path.normpath(local):
            raise EditProblem(
                f"{file}: `{local}` is mapped to `{there}`, but submitted code keeps its layout",
                "copy it there in the commands, or declare the run in the configuration",
            )
    return remove(text, 0, ("files",))


def _bundle(workspace: Workspace, file: Path, made: Made, wanted: Sequence[Path]) -> Bundle:
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
            wanted=(file, *made.files, *found, *wanted),
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
    """Take documents out whose runs are over and that nobody kept; their results stay."""
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
