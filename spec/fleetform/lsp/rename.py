"""
Renaming a resource: its declaration and all who refer to it, in all files at once.

Either every place is rewritten or none is. So a name that could not be used is refused, one
that is taken too, and so is a rename while a file that mentions the name cannot be read: what
it refers to would be left behind without a word.
"""

from __future__ import annotations

from lsprotocol import types

from fleetform.lsp.index import Found
from fleetform.lsp.mentions import Mention
from fleetform.lsp.places import range_of
from fleetform.lsp.session import Cursor, Session
from fleetform.lsp.text import Encoding
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import name_problem, secret_name_problem
from fleetform.spec.syntax.resolve import WORDS

__all__ = ["RenameRefused", "prepare", "rename"]


class RenameRefused(Exception):
    """Why there is no rename, in a sentence for people."""


def prepare(cursor: Cursor) -> Mention | None:
    """The name under the cursor, if it can be renamed here."""
    mention = cursor.tree.index.at(cursor.file, cursor.offset)
    if mention is None or not mention.is_exact:
        return None
    return mention if cursor.tree.index.declarations(mention.key) else None


def rename(cursor: Cursor, session: Session, name: str) -> types.WorkspaceEdit:
    """
    Give the resource under the cursor another name.

    Raises:
        RenameRefused: It cannot be, with what to do first.
    """
    mention = prepare(cursor)
    if mention is None:
        raise RenameRefused("No name of a declared resource is at this position.")
    _check(cursor, mention.key, name)
    changes: dict[str, list[types.TextEdit]] = {}
    for found in cursor.tree.index.mentions(mention.key):
        edit = types.TextEdit(
            range_of(found.mention.extent, found.text, session.encoding), _spelled(name, found)
        )
        changes.setdefault(found.file, []).append(edit)
    uri_of = session.uri_of(cursor.tree)
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(
                    uri_of(file), session.version_of(cursor.tree, file)
                ),
                edits,
            )
            for file, edits in changes.items()
        ]
    )


def _check(cursor: Cursor, key: ResourceKey, name: str) -> None:
    index = cursor.tree.index
    problem = secret_name_problem(name) if key.kind == "secret" else name_problem(name)
    if problem is not None:
        raise RenameRefused(problem)
    taken = index.declarations(ResourceKey(key.kind, name))
    if taken and name != key.name:
        raise RenameRefused(f"The {key.kind} `{name}` is declared in {taken[0][0]} already.")
    broken = index.unsound_with(key)
    if broken:
        raise RenameRefused(
            f"{broken[0]} mentions `{key.name}` and cannot be read; correct that file first."
        )
    vague = [one for one in index.mentions(key) if not one.mention.is_exact]
    if vague:
        file, text, mention = vague[0]
        line = text.point(mention.extent.start, Encoding.UTF32).line + 1
        raise RenameRefused(
            f"{file}:{line} does not spell the name `{key.name}` out; write it there first."
        )


def _spelled(name: str, found: Found) -> str:
    """The name as it has to be written there: `null` and `true` are no names without quotes."""
    source, extent = found.text.source, found.mention.extent
    before, behind = source[: extent.start][-1:], source[extent.end : extent.end + 1]
    # In `run/train`, `${{ secrets.key }}`, `data:/mnt` and `sweep[lr=1]` it is a part of a text.
    is_part = before in ("/", ".") or behind in (":", "[") or {before, behind} & {"'", '"'}
    return f'"{name}"' if name in WORDS and not is_part else name
