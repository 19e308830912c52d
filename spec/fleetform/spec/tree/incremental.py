"""
Load a configuration that was loaded before: unchanged, or with other values in a few documents.

Most loads follow another load of the same configuration. If each file has the same content, the earlier
result is still valid. If a file has changed, its documents are read. If other documents see the same of
them as before (their names, what they refer to and require, `change_detection.FACTS`), nothing between
documents can have changed, and only their own resources and findings are replaced. A volume may have
moved to a path where no other volume is. `Loader` loads everything else. Both give the same result, which
a test with random edits checks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fleetform.spec.desired import Loaded, ResourceKey
from fleetform.spec.findings import Finding, Level
from fleetform.spec.tree.cache import Kept, KeptFile, ReadingCache, look_of
from fleetform.spec.tree.git import Commit
from fleetform.spec.tree.walk import Walk, read_file, walk
from fleetform.spec.tree.whole import Input, Rows, Whole, tree_digest

__all__ = ["IncrementalLoad"]

# Beyond, reading them all at once is as fast.
_CHANGED_MAX = 100


class IncrementalLoad:
    """One load of a configuration whose earlier result is known."""

    def __init__(self, root: Path, cache: ReadingCache, whole: Whole) -> None:
        self._root = root
        self._cache = cache
        self._whole = whole
        self._commit = Commit(root, whole.folders[1:])

    def load(self) -> Loaded | None:
        """Return what the configuration declares; None if `Loader` must load it."""
        self._cache.begin()
        changed = self._changed()
        if changed is None:
            return None
        contents = self._contents()
        if contents is None:
            return None
        whole = self._with(changed) if changed else self._whole
        if whole is None:
            return None
        if whole is not self._whole:
            self._cache.keep_whole(whole)
        self._cache.end_recalled()
        return whole.loaded(contents, self._commit.read())

    def close(self) -> None:
        """End the question to git; the load is over."""
        self._commit.drop()

    # Which files have changed

    def _changed(self) -> dict[str, str] | None:
        """Return files with other content, and how they look; None if files were added or removed."""
        changed: dict[str, str] = {}
        count = 0
        inputs = dict(self._whole.inputs)
        told: set[str] = set()
        for folder in self._whole.folders:
            walked = self._walk(folder)
            if walked is None:
                return None
            count += len(walked.files)
            told.update(one.place.file for one in walked.findings)
            for file in walked.files:
                known = self._cache.known(file)
                if known is None:
                    # Documents of a base that an overlay changes, or a file of patches.
                    one = inputs.pop(file, None)
                    if one is None or not self._is_same(file, one, look_of(walked.seen[file])):
                        return None
                    continue
                look = look_of(walked.seen[file])
                if not look or known.look != look:
                    found = self._sha256(file, folder)
                    if found == known.sha256:
                        self._cache.look_again(known, look)
                    elif found is None or len(changed) >= _CHANGED_MAX:
                        return None
                    else:
                        changed[file] = look
        if count != self._whole.walked_count or told != self._links_out():
            return None
        if not all(self._is_same(file, one, "") for file, one in inputs.items()):
            return None
        return changed

    def _walk(self, folder: str) -> Walk | None:
        """Return the files of a folder; None if there is a problem, which `Loader` reports."""
        path = self._root / folder
        if not path.is_dir():
            return None
        walked = walk(path, prefix=folder)
        is_wrong = any(one.level is not Level.NOTE for one in walked.findings)
        return None if is_wrong or walked.unread else walked

    def _links_out(self) -> set[str]:
        """Return the links that the walk noted and did not follow."""
        return {
            one.place.file
            for one in self._whole.findings
            if one.code == "file-outside" and one.level is Level.NOTE
        }

    def _is_same(self, file: str, known: Input, look: str) -> bool:
        if look and look == known.look:
            return True
        return self._sha256(file, known.base) == known.sha256

    def _sha256(self, file: str, base: str) -> str | None:
        data = read_file(self._root, file, base=base)
        return None if isinstance(data, Finding) else hashlib.sha256(data).hexdigest()

    # What documents name

    def _contents(self) -> Mapping[str, str] | None:
        """Return files that documents name, by their SHA-256; None if one has changed."""
        if not self._whole.answers:
            return {}
        from fleetform.spec.tree.files import Files

        files = Files(self._root, self._cache.digests)
        files.roots.extend(self._whole.folders[1:])
        is_same = all(files.answers_again(one) for one in self._whole.answers)
        return files.contents if is_same else None

    # What a few changed files make of it

    def _with(self, changed: Mapping[str, str]) -> Whole | None:
        """Return the result with the new documents of these files; None if other documents are affected."""
        whole = self._whole
        if not whole.is_alone:
            return None
        before = {file: self._cache.known(file) for file in changed}
        findings = self._read_again(changed)
        if findings is None:
            return None
        pairs = []
        for number, file in enumerate(whole.files):
            after = self._cache.known(file.path) if file.path in changed else None
            if file.path in changed and (after is None or before[file.path] is not file):
                return None
            if after is not None:
                pairs.append((number, file, after))
        return _replaced(whole, pairs, findings)

    def _read_again(self, changed: Mapping[str, str]) -> Sequence[Finding] | None:
        from fleetform.spec.tree.read import read_again

        return read_again(self._root, self._cache, changed.items(), self._whole.values)


def _replaced(
    whole: Whole, pairs: Sequence[tuple[int, KeptFile, KeptFile]], findings: Sequence[Finding]
) -> Whole | None:
    """
    Return the result with new readings of some files; None if other documents are affected.

    Each of the `pairs` has the file's number, its earlier and its new reading; `findings` are those of the
    new readings.
    """
    from fleetform.spec.tree.change_detection import has_moved, looks_alike, moved_claims

    claims = whole.claims
    left = whole.budget_left
    digests: dict[tuple[int, int, int], str] = {}
    files = list(whole.files)
    for number, before, after in pairs:
        if len(before.documents) != len(after.documents) or before.sha256 == after.sha256:
            return None
        for at, (one, two) in enumerate(zip(before.documents, after.documents, strict=True)):
            if not looks_alike(one, two, has_disputes=whole.has_disputes):
                return None
            if has_moved(one, two):
                said = one.outcome.documents[0], two.outcome.documents[0]
                claims = None if whole.has_disputes else moved_claims(claims, *said)
                if claims is None:
                    return None
            left = _left(left, one, two)
            for place, row in enumerate(two.outcome.rows):
                digests[number, at, place] = row.digest
        files[number] = after
    if min(left) < 0:
        return None
    resources = _renewed(whole.resources, digests)
    beyond = _renewed(whole.beyond, digests)
    paths = {after.path for _, _, after in pairs}
    kept = [one for one in whole.findings if one.place.file not in paths]
    frame = whole.frame
    digest = tree_digest(
        {str(key): one for rows in (resources, beyond) for key, one in rows.digests.items()},
        frame.environment.rules,
        whole.addresses,
    )
    return replace(
        whole,
        frame=replace(frame, digest=digest),
        resources=resources,
        beyond=beyond,
        files=tuple(files),
        findings=tuple(sorted((*kept, *findings), key=lambda one: one.sort_key)),
        budget_left=left,
        claims=claims,
    )


def _left(left: tuple[int, int, int], one: Kept, two: Kept) -> tuple[int, int, int]:
    """Return what is left of the budget when the second document replaces the first."""
    elements, written, digested = (
        has + gives - takes
        for has, gives, takes in zip(left, one.conditions.spent, two.conditions.spent, strict=True)
    )
    return elements, written, digested


def _renewed(rows: Rows, digests: Mapping[tuple[int, int, int], str]) -> Rows:
    changed: dict[ResourceKey, str] = {}
    files = {file for file, _, _ in digests}
    for position, (key, file) in enumerate(zip(rows.digests, rows.origins[::3], strict=True)):
        if file in files:
            changed[key] = digests[rows.origin(position)]
    return Rows({**rows.digests, **changed}, rows.origins, rows.upstream)
