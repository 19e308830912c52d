"""
Digests of documents that have most of their fields in common.

Elements of one array differ by a number. So each field is turned into text once, and a digest
joins those texts: the same bytes as the canonical JSON of the whole, at a tenth of the time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from fleetform.spec.canonical import VERSION, canonical_json, digest
from fleetform.spec.fields import EXECUTION_FIELDS


class Digests:
    """For all resources that one document declares."""

    def __init__(self, kind: str, shared: Mapping[str, Any]) -> None:
        self._whole = shared
        self._texts: Mapping[str, str] | None = None
        # What is not run has no execution to tell from the rest.
        self._execution = EXECUTION_FIELDS["run"] if kind == "run" else None

    def of(self, own: Mapping[str, Any]) -> tuple[str, str]:
        """Digest of the whole document and of its execution; `own` comes on top of `shared`."""
        if not own:
            return self._of_all()
        if self._texts is None:
            self._texts = _fragments(self._whole)
        texts = {**self._texts, **_fragments(own)}
        names = sorted(texts)
        whole = _digest(texts[name] for name in names)
        if self._execution is None:
            return whole, whole
        execution = self._execution
        return whole, _digest(texts[name] for name in names if name in execution)

    def _of_all(self) -> tuple[str, str]:
        # The only one of its document: joining texts would take longer than writing them at once.
        whole = digest(self._whole)
        if self._execution is None:
            return whole, whole
        execution = self._execution
        return whole, digest(
            {name: value for name, value in self._whole.items() if name in execution}
        )


def _fragments(fields: Mapping[str, Any]) -> dict[str, str]:
    return {name: f'"{name}":{canonical_json(value)}' for name, value in fields.items()}


def _digest(fragments: Any) -> str:
    text = f"{VERSION}\n{{{','.join(fragments)}}}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
