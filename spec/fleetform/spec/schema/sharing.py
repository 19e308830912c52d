"""
A file in which equal properties stand once.

Forty kinds have `tags`, `protect` and `description` in common, and the three kinds of runs most
of what they have. An editor reads the whole file, so each is written under the file's definitions
and referred to. Only whole properties are, words and all: a reference with words beside it would
be another schema, and to an alternative the YAML language server would give the reference's name
where it now says `string`.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from fleetform.spec.schema.walk import Schema, with_properties

# A reference takes thirty to fifty characters, and a reader a jump.
_LENGTH_MIN = 120


def shared(schema: Schema, keyword: str) -> Schema:
    """
    The file with each property that stands in it more than once under `keyword`.

    Args:
        schema: A whole file, as it is read: with `$schema` and its definitions.
        keyword: `$defs`, or what its draft says for it.

    Returns:
        A file that says the same. Properties of one name that differ are numbered in the order
        in which they come.
    """
    sharing = _Sharing(keyword)
    sharing.count(schema)
    kept = sharing.referring(schema)
    assert isinstance(kept, dict)
    definitions = {**kept.pop(keyword, {}), **sharing.definitions}
    return {**kept, **({keyword: dict(sorted(definitions.items()))} if definitions else {})}


class _Sharing:
    def __init__(self, keyword: str) -> None:
        self.definitions: Schema = {}
        self._keyword = keyword
        self._counts: Counter[str] = Counter()
        self._names: dict[str, str] = {}

    def count(self, schema: Any) -> None:
        """Count each property; what stands in equal ones counts once, since they will be one."""

        def counted(_: str, part: Schema) -> Schema:
            text = _text(part)
            self._counts[text] += 1
            if self._counts[text] == 1:
                self.count(part)
            return part

        with_properties(schema, counted)

    def referring(self, schema: Any) -> Any:
        return with_properties(schema, self._reference)

    def _reference(self, name: str, part: Schema) -> Schema:
        text = _text(part)
        if self._counts[text] == 1 or len(text) < _LENGTH_MIN:
            changed = self.referring(part)
            assert isinstance(changed, dict)
            return changed
        if text not in self._names:
            self._names[text] = self._free(name)
            self.definitions[self._names[text]] = self.referring(part)
        return {"$ref": f"#/{self._keyword}/{self._names[text]}"}

    def _free(self, name: str) -> str:
        """A name for a definition: the property's, which no part has; those are classes."""
        taken = set(self._names.values())
        numbered = (f"{name}.{number}" for number in range(2, len(taken) + 3))
        return next(one for one in (name, *numbered) if one not in taken)


def _text(part: Any) -> str:
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"))
