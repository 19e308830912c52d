"""
What schemas say about a field in words: its docstring, what a change does, and what is not supported.

    How runs share a host. `whole`: one at a time. `exact`: each is given what it asks for.
    Example: `exact`.

The interpreter drops these docstrings, so they are read from the source, and only when somebody asks
for documentation: no start pays for it.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from fleetform.spec import fields
from fleetform.spec.fields import OnChange, Row
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.base import Model
from fleetform.spec.kinds.unsupported import KINDS as UNSUPPORTED
from fleetform.spec.kinds.unsupported import VALUES as UNSUPPORTED_VALUES
from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents

_EXAMPLE = "Example:"


class Words(NamedTuple):
    """
    A field's docstring, taken apart.

    Attributes:
        whole: Everything but the examples, on one line.
        lead: The same without the sentences about choices.
        choices: What each choice means, by the choice; those that say nothing are left out.
    """

    whole: str
    lead: str
    choices: dict[str, str]


@functools.cache
def documentation(model: type[Model]) -> dict[str, str]:
    """The docstring under each field by its written name, in the order of the model."""
    texts: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if issubclass(owner, Model) and owner is not Model:
            texts.update(_docstrings(owner))
    return {
        field.alias or name: texts[name]
        for name, field in model.model_fields.items()
        if name in texts
    }


def _docstrings(owner: type[Model]) -> Iterator[tuple[str, str]]:
    source = _classes(sys.modules[owner.__module__]).get(owner.__name__)
    if source is None:
        # A model that is built from a table has its texts with its fields.
        for name, field in owner.model_fields.items():
            if field.description:
                yield name, field.description
        return
    for statement, following in itertools.pairwise(source.body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(following, ast.Expr):
            continue
        if isinstance(statement.target, ast.Name) and isinstance(following.value, ast.Constant):
            yield statement.target.id, inspect.cleandoc(str(following.value.value))


# `inspect.getsource` of a class parses the whole module, and a module has ten models.
@functools.cache
def _classes(module: ModuleType) -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(module))
    return {one.name: one for one in tree.body if isinstance(one, ast.ClassDef)}


def words(text: str, choices: Iterable[str] = ()) -> Words:
    """Take a docstring apart; `choices` are the values that it may explain."""
    whole = " ".join(text.partition(_EXAMPLE)[0].split())
    names = sorted((re.escape(choice) for choice in choices), key=len, reverse=True)
    if not names:
        return Words(whole, whole, {})
    lead, *rest = re.split(rf"`({'|'.join(names)})`:\s+", whole)
    explained = {
        choice: _sentence(meaning) for choice, meaning in zip(rest[::2], rest[1::2], strict=True)
    }
    return Words(whole, lead.strip(), explained)


def _sentence(text: str) -> str:
    # `whole`: one at a time; `exact`: …  and  `whole`: one at a time. `exact`: …
    bare = text.strip().rstrip(";,")
    ended = bare if bare.endswith((".", "?", "!")) else f"{bare}."
    return ended[:1].upper() + ended[1:]


def examples(text: str) -> list[Any]:
    """The values behind `Example:` in a field's docstring."""
    return [_value(span) for span in example_texts(text)]


def example_texts(text: str) -> list[str]:
    """The same as they are written, in YAML's flow style."""
    _, _, listed = text.partition(_EXAMPLE)
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", listed)]


def compound_examples(text: str) -> list[tuple[str, Any]]:
    """The examples that are lists or mappings: as written, and as values."""
    both = zip(example_texts(text), examples(text), strict=True)
    return [(written, value) for written, value in both if isinstance(value, dict | list)]


def summary(model: type[Model]) -> str:
    """What the model's own docstring says it is, on one line."""
    text = inspect.cleandoc(model.__doc__ or "")
    return " ".join(text.partition(_EXAMPLE)[0].split())


def example_document(model: type[Model]) -> Any:
    """The document behind `Example:` in a kind's docstring; None where it has none."""
    _, _, text = inspect.cleandoc(model.__doc__ or "").partition(_EXAMPLE)
    return _value(textwrap.dedent(text)) if text.strip() else None


# A field of all backends is asked for forty times. What is returned is shared: not to be changed.
@functools.cache
def _value(text: str) -> Any:
    nodes, findings = read_documents(text.encode(), "example")
    assert len(nodes) == 1, (text, findings)
    return plain(nodes[0])


CHANGE: Mapping[str, str] = {
    OnChange.RERUN: "must re-run; blocked while the run is running",
    OnChange.REPLACE: "must be replaced",
    OnChange.UPDATE: "updated in place",
    OnChange.HOSTS: "hosts are replaced, as `update` of the fleet says",
    OnChange.UNFIT_HOSTS: "hosts that no longer fit are replaced, as `update` of the fleet says",
    OnChange.NEW_HOSTS: "applies to hosts that are created later",
    OnChange.RECORD: "recorded only",
    OnChange.IDENTITY: "declares another resource",
}
"""What a reader of a plan will see, for each way to carry a change out."""


def change_sentence(row: Row) -> str:
    """What a change of the field does: `A change: updated in place.`"""
    return f"A change: {CHANGE[row.on_change]}."


def unsupported_sentence(kind: str, path: str) -> str:
    """Say what a plan does with a document that sets an unsupported field; empty for supported ones."""
    row = fields.unsupported(kind).get(path)
    if row is None:
        values = unsupported_values(kind, path)
        return (
            f"Not supported yet: {values}. A plan shows and blocks such documents."
            if values
            else ""
        )
    if row.essential:
        return "Not supported yet: a plan shows and blocks documents that set it."
    return "Not supported yet: it has no effect."


def unsupported_values(kind: str, path: str) -> str:
    """The values of a supported field that are not supported yet; empty where all of them are."""
    known = KINDS.get(kind)
    return UNSUPPORTED_VALUES.get(known.name if known else kind, {}).get(path, "")


def unsupported_kind_sentence(kind: str) -> str:
    """The same of kinds that are not supported at all, with the reason."""
    known = KINDS.get(kind)
    why = UNSUPPORTED.get(kind) or UNSUPPORTED.get(known.name if known else "")
    return f"{why} A plan shows and blocks such documents." if why else ""


def default_sentence(default: object) -> str:
    """The value of an unset field; empty where there is none."""
    if default is None:
        return ""
    return f"Default: `{str(default).lower() if isinstance(default, bool) else default}`."


def examples_sentence(examples: Sequence[tuple[str, object]]) -> str:
    """Examples as they are written."""
    listed = ", ".join(f"`{written}`" for written, _ in examples)
    return f"Example: {listed}." if listed else ""


def pattern_sentence(texts: Sequence[str]) -> str:
    """The message of an editor for a text that does not match the pattern of the field."""
    return f"Does not match the format of this field. Write for example {' or '.join(f'`{text}`' for text in texts)}."
