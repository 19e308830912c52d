"""
Change a text of YAML documents, and prove that nothing else of it changed.

Every operation works twice: on the text, and on the values that the loader reads from it. The new
text is read again, and the edit is refused unless each document of the file says what the operation
on values says. A value that is shared through an anchor is the usual reason to refuse: to change it
here would change it there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from fleetform.spec.findings import Level
from fleetform.spec.kinds import KINDS
from fleetform.spec.names import parse_address
from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents, splice
from fleetform.spec.syntax.emit import mapping_lines
from fleetform.spec.syntax.layout import EditRefused, Layout, Leaf, Page, read_layout

__all__ = [
    "add_item",
    "append_document",
    "remove",
    "remove_document",
    "rename_key",
    "same_values",
    "set_value",
]


def same_values(one: Any, other: Any) -> bool:
    """
    Tell whether two plain values are equal and of the same types; keys in any order.

    Python's own `==` takes 1, 1.0 and true for equal, and a document means something else by
    each.
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_values(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_values, one, other))
    return bool(one == other)


Path: TypeAlias = Sequence[str | int]
Which: TypeAlias = int | str

_MARK = "\ufeff"
# What is not there: a field that is null is.
_NOTHING: Final = object()


def set_value(text: str, document: Which, path: Path, value: Any, *, after: str = "") -> str:
    """
    Return the text with the field at `path` set to `value`, made with its parents if need be.

    Where a mapping or list is set in the place of one, only what differs between them is
    written, so that comments inside of it stay.

    Args:
        text: The file's.
        document: Which document: its number in the file, counted from 0, or its address
            (`run/train`, `train`).
        path: Keys and positions from the document's top; a position one behind a list's last
            appends to it.
        value: JSON values.
        after: Where a field is new, the one below which it is written; else it becomes the last.

    Raises:
        EditRefused: The text cannot say that and keep everything else as it is.
    """
    if not path:
        raise EditRefused("a document as a whole is not a field")
    values = _Values.of(text)
    number = values.number(document)
    before = _value_at(values.plain[number], path)
    for steps, part in _differences(tuple(path), before, value):
        text = _set_one(text, number, steps, part, after)
    return text


def remove(text: str, document: Which, path: Path) -> str:
    """
    Return the text without the field or item at `path`, and without the comments right above it.

    Raises:
        EditRefused: It is not there, or cannot be taken out alone.
    """

    def on_values(value: Any) -> None:
        del _parent(value, path)[path[-1]]

    def on_text(layout: Layout, page: Page) -> str:
        found = splice.find(page.root, path)
        if found.rest:
            raise EditRefused(f"there is no `{_dotted(path)}`")
        return splice.drop(layout, found)

    return _apply(text, document, on_text, on_values)


def add_item(
    text: str, document: Which, path: Path, value: Any, *, index: int | None = None
) -> str:
    """
    Return the text with an item added to the list at `path`, which is made if it is not there.

    Args:
        text: The file's.
        document: Which document, as in `set_value`.
        path: Of the list.
        value: JSON values.
        index: Before which item; None: behind the last.

    Raises:
        EditRefused: There is something else than a list.
    """
    values = _Values.of(text)
    number = values.number(document)
    if _value_at(values.plain[number], path) in (None, _NOTHING):
        return set_value(text, number, path, [value])

    def on_values(document_value: Any) -> None:
        items = _value_at(document_value, path)
        items.insert(len(items) if index is None else index, value)

    def on_text(layout: Layout, page: Page) -> str:
        return splice.append_item(layout, splice.find(page.root, path), value, index)

    return _apply(text, number, on_text, on_values)


def rename_key(text: str, document: Which, path: Path, name: str) -> str:
    """
    Return the text with the field at `path` called `name`, its value as it is.

    Raises:
        EditRefused: There is no such field, or already one of that name.
    """

    def on_values(value: Any) -> None:
        parent = _parent(value, path)
        if name in parent:
            raise EditRefused(f"there is a `{name}` already")
        parent[name] = parent.pop(path[-1])

    def on_text(layout: Layout, page: Page) -> str:
        found = splice.find(page.root, path)
        if found.rest:
            raise EditRefused(f"there is no `{_dotted(path)}`")
        return splice.rewrite_key(layout, found, name)

    return _apply(text, document, on_text, on_values)


def append_document(text: str, value: dict[str, Any]) -> str:
    """
    Return the text with one more document at its end.

    Raises:
        EditRefused: The text cannot be read.
    """
    values = _Values.of(text)
    layout = values.layout
    newline = layout.newline
    rest = layout.text
    if rest and not rest.endswith("\n"):
        rest += newline
    # Comments alone are no document, and need nothing between them and the first.
    needs_marker = any(not _is_absent(page) or page.opened > page.start for page in layout.pages)
    lines = [*(["---"] if needs_marker else []), *mapping_lines(value)]
    new = rest + "".join(line + newline for line in lines)
    return values.checked(new, [*values.plain, value])


def remove_document(text: str, document: Which) -> str:
    """
    Return the text without one of its documents, and without the comments of its own part.

    Raises:
        EditRefused: There is no such document.
    """
    values = _Values.of(text)
    number = values.number(document)
    page = values.pages[number]
    new = values.layout.text[: page.start] + values.layout.text[page.end :]
    kept = [value for place, value in enumerate(values.plain) if place != number]
    return values.checked(new, kept)


class _Values:
    """A text with what the loader reads from it. `pages` are those of `plain`, in order."""

    def __init__(self, bom: str, layout: Layout, plain_values: list[Any]) -> None:
        self.layout = layout
        self.plain = plain_values
        self.pages = [page for page in layout.pages if not _is_absent(page)]
        self._bom = bom

    @classmethod
    def of(cls, text: str) -> _Values:
        bom = _MARK if text.startswith(_MARK) else ""
        plain_values = _read(text)
        values = cls(bom, read_layout(text.removeprefix(_MARK)), plain_values)
        assert len(values.pages) == len(values.plain), "the two readers count documents alike"
        return values

    def number(self, document: Which) -> int:
        """Return which document is meant, counted from 0."""
        if isinstance(document, int):
            if 0 <= document < len(self.plain):
                return document
            raise EditRefused(f"the file has {len(self.plain)} documents")
        address = parse_address(document)
        meant = [
            place
            for place, value in enumerate(self.plain)
            if isinstance(value, dict)
            and value.get("name") == address.name
            and address.kind in {"", value.get("type"), _kind_name(value.get("type"))}
        ]
        if len(meant) != 1:
            many = "more than one document" if meant else "no document"
            raise EditRefused(f"{many} of the file is `{document}`")
        return meant[0]

    def checked(self, text: str, expected: list[Any]) -> str:
        """Return the new text if it says what is expected."""
        try:
            said = _read(text)
        except EditRefused as exc:
            raise EditRefused(
                "the layout of the file does not allow this change", "edit the file by hand"
            ) from exc
        if not same_values(said, expected):
            raise EditRefused(
                "the change would also change other values",
                "where a value is shared through an anchor (`&`, `*`, `<<`), write it out first",
            )
        return self._bom + text


def _apply(
    text: str,
    document: Which,
    on_text: Callable[[Layout, Page], str],
    on_values: Callable[[Any], None],
) -> str:
    values = _Values.of(text)
    number = values.number(document)
    # First on the text, because that knows why a place cannot be reached.
    new = on_text(values.layout, values.pages[number])
    try:
        on_values(values.plain[number])
    except (KeyError, IndexError, TypeError, AttributeError) as exc:
        raise EditRefused("the document has no such path") from exc
    return values.checked(new, values.plain)


def _set_one(text: str, number: int, path: Path, value: Any, after: str) -> str:
    def on_values(document: Any) -> None:
        _put(document, path, value)

    def on_text(layout: Layout, page: Page) -> str:
        found = splice.find(page.root, path)
        if not found.rest:
            return splice.replace(layout, found, value)
        step, *below = found.rest
        new = _nested(below, value)
        if isinstance(step, int):
            return splice.append_item(layout, found, new, None)
        return splice.insert_entry(layout, found, step, new, after=after)

    return _apply(text, number, on_text, on_values)


def _nested(path: Path, value: Any) -> Any:
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def _put(document: Any, path: Path, value: Any) -> None:
    part = document
    for step, following in itertools.pairwise(path):
        missing: Any = {} if isinstance(following, str) else []
        if isinstance(step, int):
            if step == len(part):
                part.append(missing)
        elif part.get(step) is None:
            part[step] = missing
        if part[step] is None:
            part[step] = missing
        part = part[step]
    last = path[-1]
    if isinstance(last, int) and last == len(part):
        part.append(value)
    else:
        part[last] = value


def _differences(path: tuple[str | int, ...], before: Any, after: Any) -> list[tuple[Path, Any]]:
    """Return the smallest places that have to be set, when fields and items are only added."""
    if same_values(before, after):
        return []
    is_grown = (
        isinstance(before, dict) and isinstance(after, dict) and before.keys() <= after.keys()
    )
    if is_grown and before:
        return [
            one
            for key in after
            for one in _differences((*path, key), before.get(key, _NOTHING), after[key])
        ]
    if isinstance(before, list) and isinstance(after, list) and 0 < len(before) <= len(after):
        padded = [*before, *[_NOTHING] * (len(after) - len(before))]
        return [
            one
            for place, item in enumerate(after)
            for one in _differences((*path, place), padded[place], item)
        ]
    return [(path, after)]


def _value_at(value: Any, path: Path) -> Any:
    """Return the value at a path; `_NOTHING` where there is none."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return _NOTHING
    return value


def _parent(value: Any, path: Path) -> Any:
    if not path:
        raise EditRefused("a document as a whole is not a field")
    for step in path[:-1]:
        value = value[step]
    return value


def _read(text: str) -> list[Any]:
    nodes, findings = read_documents(text.encode("utf-8", "surrogatepass"), "")
    error = next((found for found in findings if found.level is Level.ERROR), None)
    if error is not None:
        place = f"line {error.place.line}: " if error.place.line else ""
        raise EditRefused(f"{place}{error.summary[:1].lower()}{error.summary[1:]}", error.advice)
    # `plain` writes aliases out: what is changed in one place is not changed in another.
    return [plain(node) for node in nodes]


def _is_absent(page: Page) -> bool:
    """Tell whether a page holds nothing: the loader makes no document of it."""
    root = page.root
    return isinstance(root, Leaf) and not root.value and not root.style


def _kind_name(type_name: Any) -> str:
    kind = KINDS.get(type_name) if isinstance(type_name, str) else None
    return kind.name if kind else ""


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))
