"""
Changes the documents of a tree as people ask for it, or not at all.

Every edit goes the same way: find what the address means, change the text where it stands, read
the whole tree again with the new text in the place of the old, and compare. An error that was not
there before refuses the edit, and so does a value that has no effect, since a patch or a base says
otherwise. Only then are they edits, which `app.edits` writes, all or none.

Where the value is not the document's own to say, it is said in `environment.yaml`: a document of a
base is never changed, because other environments extend it too. What a patch has said already is
changed there; else a patch is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from fleetform.app.edits import Edits, FileEdit
from fleetform.app.locate import (
    ENVIRONMENT,
    Source,
    documents_of,
    find_source,
    is_environment,
    value_at,
    written_path,
)
from fleetform.app.problems import EditProblem
from fleetform.app.workspace import validate_words
from fleetform.model.figures import counted
from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Level
from fleetform.spec.syntax.edit import (
    add_item,
    append_document,
    remove,
    remove_document,
    same_values,
    set_value,
)
from fleetform.spec.syntax.layout import EditRefused

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.spec.desired import Declared, Desired, Loaded
    from fleetform.spec.findings import Finding


Steps: TypeAlias = tuple[str | int, ...]

ABSENT: Final = object()
"""In the place of a value: the field is to be taken out."""


class _Wish(NamedTuple):
    """What a document has to say in the end; `value` may be ABSENT."""

    source: Source
    path: Steps
    value: Any


class Editor:
    """
    Edits of one tree that belong together.

    Raises:
        EditProblem: From every method, where something cannot be done. Nothing was written.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._root = workspace.root
        self.loaded = workspace.load()
        if self.loaded.desired is None:
            raise EditProblem(
                "the environment cannot be read, so nothing was edited",
                f"{validate_words(workspace.root)} shows what is wrong",
            )
        self._before: dict[str, bytes | None] = {}
        self._texts: dict[str, str | None] = {}
        self._wishes: list[_Wish] = []
        self._touched: dict[ResourceKey, None] = {}

    def find(self, address: str, *, kinds: Iterable[str] = ()) -> Source:
        """Find the document that an address means; see `app.locate.find_source`."""
        return find_source(self._workspace, self.loaded, address, kinds=tuple(kinds))

    def declared_runs(self) -> dict[ResourceKey, str]:
        """The documents of runs, each with its file; a sweep is one."""
        assert self.loaded.desired is not None
        desired = self.loaded.desired
        declared = (*desired.resources.values(), *(one.declared for one in desired.beyond.values()))
        return {
            ResourceKey("run", one.parent or one.key.name): one.place.file
            for one in declared
            if one.key.kind == "run"
        }

    def said(self, source: Source, field: str) -> Any:
        """
        What a field of the document comes to with all that it inherits and the edits so far.

        JSON values as they are written; None where nothing is said.
        """
        if not source.is_inherited:
            return documents_of(self._text(source.file))[source.number].get(field)
        document = self._resulting().get(source.key)
        return document.get(field) if isinstance(document, dict) else None

    # -- what can be asked for --------------------------------------------------------------------

    def set(self, source: Source, path: Steps, value: Any, *, after: str = "") -> None:
        """
        Have the document say `value` at `path`; ABSENT: say nothing there.

        `after` names the field below which a new one is written.
        """
        self._wishes.append(_Wish(source, path, value))
        self._touch(source.key)
        if not source.is_inherited:
            self._set_own(source, path, value, after)
            return
        for way in (self._set_own, self._adjust_patch, self._append_patch):
            kept = dict(self._texts)
            try:
                way(source, path, value, after)
            except EditRefused:
                self._texts = kept
                continue
            if not self._unmet([self._wishes[-1]]):
                return
            self._texts = kept
        raise EditProblem(
            f"`{_dotted(path)}` of {source.key} is set elsewhere, and no patch of environment.yaml"
            " can change it",
            f"`fleetform render {source.key}` shows the origin of each value",
        )

    def add_document(self, file: str, value: Mapping[str, Any], key: ResourceKey) -> None:
        """Write a document behind those of `file`, which is made if it is not there."""
        text = self._text(file, missing_ok=True)
        self._texts[file] = _edited(file, lambda: append_document(text, dict(value)))
        self._touch(key)

    def add_text(self, file: str, text: str, key: ResourceKey) -> None:
        """Take up a text that was written already, behind what `file` says."""
        there = self._text(file, missing_ok=True)
        between = ""
        if there.strip():
            between = "---\n" if there.endswith("\n") else "\n---\n"
        self._texts[file] = f"{there}{between}{text}"
        self._touch(key)

    def move_document(self, source: Source, file: str, *, name: str = "") -> None:
        """
        Have a document stand in another file, as it is; with `name`, call it that from now on.

        A renamed resource is the same one: `moved` in environment.yaml says so.
        """
        text = self._text(source.file)
        if len(documents_of(text)) != 1:
            raise EditProblem(
                f"{source.file} has several documents, and fleetform cannot move one of them alone",
                "move it by hand",
            )
        self.remove_document(source)
        if not name:
            self.add_text(file, text, source.key)
            return
        renamed = ResourceKey(source.key.kind, name)
        self.add_text(file, _edited(file, lambda: set_value(text, 0, ("name",), name)), renamed)
        self._say_moved(source.key, renamed)

    def remove_document(self, source: Source) -> None:
        """Take a document out; a file that has nothing else goes with it."""
        text = self._text(source.file)
        rest = _edited(source.file, lambda: remove_document(text, source.number))
        self._texts[source.file] = rest if documents_of(rest) else None
        self._touch(source.key)

    def add_address(self, field: str, key: ResourceKey) -> None:
        """Name a resource in a list of `environment.yaml`, unless it is named there."""
        text, number, document = self._environment()
        if str(key) not in (document.get(field) or []):
            self._texts[ENVIRONMENT] = _edited(
                ENVIRONMENT, lambda: add_item(text, number, (field,), str(key))
            )
        self._touch(key)

    # -- what comes of it -------------------------------------------------------------------------

    def finish(self) -> Edits:
        """Read the configuration as it will be, and refuse what is wrong with it."""
        files = tuple(
            FileEdit(file, self._before[file], None if text is None else text.encode())
            for file, text in sorted(self._texts.items())
            if self._before[file] != (None if text is None else text.encode())
        )
        looked_at = tuple(sorted(self._texts))
        if not files:
            return Edits((), tuple(self._touched), self.loaded, looked_at)
        after = self._workspace.load(self._buffers())
        new = _new_errors(self.loaded, after)
        if after.desired is None or new:
            raise EditProblem(
                f"the edit would cause {counted(len(new), 'error')}, so nothing was written",
                findings=new,
            )
        if unmet := self._unmet([wish for wish in self._wishes if wish.source.is_inherited]):
            raise EditProblem(
                f"`{_dotted(unmet[0].path)}` of {unmet[0].source.key} would not have that value"
                " after the edit, so nothing was written",
                f"`fleetform render {unmet[0].source.key}` shows the origin of each value",
            )
        refuse_ineffective(
            self._workspace,
            after.desired,
            [(wish.source.key, wish.path) for wish in self._wishes],
        )
        return Edits(files, tuple(self._touched), after, looked_at)

    def _touch(self, key: ResourceKey) -> None:
        self._touched[key] = None

    # -- ways to say it ---------------------------------------------------------------------------

    def _set_own(self, source: Source, path: Steps, value: Any, after: str) -> None:
        """Where the document stands."""
        if source.is_of_base:
            raise EditRefused("a base's document is not changed")
        text = self._text(source.file)
        said = documents_of(text)[source.number]
        steps, item = written_path(said, path, value, absent=ABSENT)

        def edit() -> str:
            if item is not ABSENT:
                return set_value(text, source.number, steps, item, after=after)
            if value_at(said, steps) is None:
                return text
            return remove(text, source.number, steps)

        if source.is_inherited:
            self._texts[source.file] = edit()
        else:
            self._texts[source.file] = _edited(source.file, edit)

    def _adjust_patch(self, source: Source, path: Steps, value: Any, _after: str) -> None:
        """In the last patch of `environment.yaml` that merges into exactly this document."""
        text, number, document = self._environment()
        targets = {str(source.key), f"{source.type}/{source.key.name}"}
        places = [
            place
            for place, entry in enumerate(document.get("patches") or [])
            if isinstance(entry, dict) and entry.get("target") in targets and "merge" in entry
        ]
        if not places:
            raise EditRefused("there is no such patch")
        steps: Steps = ("patches", places[-1], "merge", *_in_merge(path))
        self._texts[ENVIRONMENT] = set_value(text, number, steps, _merged(value))

    def _append_patch(self, source: Source, path: Steps, value: Any, _after: str) -> None:
        """In a patch of its own, behind the others."""
        text, number, _ = self._environment()
        merge: Any = _merged(value)
        for step in reversed(_in_merge(path)):
            merge = {step: merge}
        entry = {"target": str(source.key), "merge": merge}
        self._texts[ENVIRONMENT] = add_item(text, number, ("patches",), entry)

    def _environment(self) -> tuple[str, int, dict[str, Any]]:
        """Return the text of `environment.yaml`, its document's number there, and the document."""
        text = self._text(ENVIRONMENT)
        for number, document in enumerate(documents_of(text)):
            if is_environment(document):
                return text, number, document
        raise EditProblem("there is no environment.yaml", "`fleetform init` creates one")

    def _say_moved(self, old: ResourceKey, new: ResourceKey) -> None:
        text, number, _ = self._environment()
        entry = {"from": str(old), "to": str(new)}
        self._texts[ENVIRONMENT] = _edited(
            ENVIRONMENT, lambda: add_item(text, number, ("moved",), entry)
        )

    # -- texts ------------------------------------------------------------------------------------

    def _text(self, file: str, *, missing_ok: bool = False) -> str:
        known = self._texts.get(file)
        if known is not None:
            return known
        try:
            data: bytes | None = (self._root / file).read_bytes()
        except FileNotFoundError:
            if not missing_ok:
                raise EditProblem(f"{file} no longer exists", "run the command again") from None
            data = None
        wrong = [one for one in self.loaded.errors if one.place.file == file]
        if wrong:
            raise EditProblem(
                f"{file} has {counted(len(wrong), 'error')}, so nothing was edited: correct the"
                " file first",
                findings=tuple(wrong),
            )
        self._before.setdefault(file, data)
        try:
            text = "" if data is None else data.decode()
        except UnicodeDecodeError:
            raise EditProblem(f"{file} is not UTF-8", "edit it by hand") from None
        self._texts[file] = text
        return text

    def _buffers(self) -> dict[str, bytes]:
        """What to read in the place of files; one that goes declares nothing, as an empty one."""
        return {file: (text or "").encode() for file, text in self._texts.items()}

    def _resulting(self) -> dict[ResourceKey, Any]:
        """All documents with the new texts, and with what they inherit."""
        from fleetform.spec.nodes import plain
        from fleetform.spec.render import load_resulting

        resulting = load_resulting(self._root, buffers=self._buffers())
        return {
            ResourceKey(one.address.kind, one.address.name): plain(one.node)
            for one in resulting.documents
        }

    def _unmet(self, wishes: Sequence[_Wish]) -> list[_Wish]:
        """Return the wishes that the configuration does not fulfil with the new texts, all inheritance counted."""
        if not wishes:
            return []
        said = self._resulting()
        return [wish for wish in wishes if not _is_met(wish, said.get(wish.source.key))]


def _edited(file: str, edit: Any) -> str:
    try:
        text: str = edit()
    except EditRefused as refusal:
        raise EditProblem(f"{file}: {refusal.message}", refusal.advice) from refusal
    return text


def _merged(value: Any) -> Any:
    # RFC 7386: null takes a field out.
    return None if value is ABSENT else value


def _in_merge(path: Steps) -> tuple[str, ...]:
    if any(isinstance(step, int) for step in path):
        raise EditRefused("a merge replaces a list as a whole")
    return tuple(str(step) for step in path)


def _is_met(wish: _Wish, document: Any) -> bool:
    steps, item = written_path(document, wish.path, wish.value, absent=ABSENT)
    said = value_at(document, steps)
    return said is None if item is ABSENT else same_values(said, item)


def _new_errors(before: Loaded, after: Loaded) -> tuple[Finding, ...]:
    """Errors that were not there; known by what they say, since lines move."""
    known = {_said(one) for one in before.errors}
    return tuple(
        one for one in after.findings if one.level is Level.ERROR and _said(one) not in known
    )


def _said(one: Finding) -> tuple[str, str, str, str]:
    return one.code, one.place.file, one.address, one.detail


def _dotted(path: Steps) -> str:
    return ".".join(map(str, path))


# Edits that would be written and of which nothing would come.
# `ignore:` keeps what is there, whatever is declared; `initial:` counts when something is made or runs,
# and not between. A user who sets such a value by a command expects it to hold: the error names what
# keeps it from that, and nothing is written.


def refuse_ineffective(
    workspace: Workspace, desired: Desired, wishes: Iterable[tuple[ResourceKey, Steps]]
) -> None:
    """
    Return where each wish has an effect, or will have one when something is made.

    Args:
        workspace: Its ledger knows what exists already: for what is not, everything counts.
        desired: The tree as it would be with the wishes.
        wishes: Documents and the paths in them that are to say something else.

    Raises:
        EditProblem: One has none; says why, and what to do.
    """
    by_key: dict[ResourceKey, list[Steps]] = {}
    for key, path in wishes:
        by_key.setdefault(key, []).append(path)
    for key, paths in by_key.items():
        declared = _declared(desired, key)
        if declared is None:
            continue
        for field in ("ignore", "initial"):
            patterns = declared.document.get(field, ())
            idle = [path for path in paths if any(_covers(one, path) for one in patterns)]
            # What else changes may have it created again, and then `initial:` counts.
            is_refused = idle if field == "ignore" else idle and len(idle) == len(paths)
            if is_refused and _is_there(workspace, key):
                raise _problem(key, field, patterns, idle[0])


def _declared(desired: Desired, key: ResourceKey) -> Declared | None:
    """Of a sweep one element: what it overlooks is said once for all."""
    for table in (desired.resources, {k: one.declared for k, one in desired.beyond.items()}):
        for one in table.values():
            if one.key == key or (one.key.kind == key.kind and one.parent == key.name):
                return one
    return None


def _covers(pattern: str, path: Steps) -> bool:
    """Whether all that is said at the path is below what the pattern names."""
    steps = pattern.split(".")
    said = list(map(str, path))
    return len(said) >= len(steps) and all(map(fnmatchcase, said, steps))


def _is_there(workspace: Workspace, key: ResourceKey) -> bool:
    live = workspace.read(lambda reader: reader.read_live(), None)
    return live is not None and any(
        not row.archived and (one == key or (one.kind == key.kind and row.parent == key.name))
        for one, row in live.resources.items()
    )


def _problem(key: ResourceKey, field: str, patterns: Sequence[str], path: Steps) -> EditProblem:
    said = ".".join(map(str, path))
    why = {
        "ignore": "its actual value stays",
        "initial": "a new value takes effect only when the resource is created or run the next time",
    }[field]
    out = (
        f"run `fleetform set {key} {field}-`, so that the change has an effect"
        if len(patterns) == 1
        else f"remove it from `{field}:` in the document, so that the change has an effect"
    )
    others = {
        "ignore": "",
        "initial": f"; or edit the document by hand, and run `fleetform apply --replace {key}`",
    }[field]
    return EditProblem(
        f"nothing was written, because `{said}` would have no effect: {key} lists it in `{field}:`,"
        f" so {why}",
        out + others,
    )
