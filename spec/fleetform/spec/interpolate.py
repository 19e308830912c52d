"""
`${{ matrix.lr }}`: values of the document in its own texts.

A text is compiled once and rendered for each element of a sweep, so that ten thousand elements
cost ten thousand joins of strings. Nothing here executes: an expression is a namespace, a dot
and a key, and planning a branch that nobody has reviewed stays safe. What an expression may
name is known before it is rendered, so all its mistakes are told at compilation and rendering
cannot fail.

`$${{` stands for a literal `${{`. A plain `$$` and `${NAME}` belong to the shell.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fleetform.spec.findings import Level, Problem
from fleetform.spec.names import EXPRESSION_MARK, nearest, scalar_text

MARK = EXPRESSION_MARK

_EXPRESSION = re.compile(r"\$?\$\{\{(?P<body>.*?)\}\}", re.DOTALL)
_REFERENCE = re.compile(r"\s*([A-Za-z_]+)\.([A-Za-z_][A-Za-z0-9_-]*)\s*", re.ASCII)
# dstack's address of a node of a task, or of a replica of a service, in one of its groups.
_ADDRESS = re.compile(
    r"\s*groups\[(\d{1,6})\]\.(nodes|replicas)\[(\d{1,6})\]\.IP_ADDRESS\s*", re.ASCII
)

# Known when a job starts and not before: a document keeps them as they are written. What a
# secret holds never stands in a document, whoever plans it.
_LATE = {
    "secrets": ("Secrets are not supported yet.", ""),
    "node": (
        "The node is known only when the job starts; filling it in is not supported yet.",
        "In commands, write `$FLEETFORM_NODE_RANK`.",
    ),
    "dstack": (
        "The value is known only when the job starts; filling it in is not supported yet.",
        "In commands, write the variables `$DSTACK_…`.",
    ),
    "groups": (
        "Addresses are known only when the run starts; filling them in is not supported yet.",
        "In commands, read `$FLEETFORM_NODES_IPS`: one address per line, in the order of the nodes.",
    ),
}

# The same of single keys. Each stands in one kind of document, and is unknown in the others.
_LATE_KEYS = {
    ("run", "args"): (
        "dstack fills in the arguments of its command line; in fleetform only `submit` does.",
        "Write them into the command, or run the document with `fleetform submit FILE -- ARG...`.",
    ),
    ("run", "project_name"): ("Gateways are not supported yet.", ""),
}


@dataclass(frozen=True, slots=True)
class Text:
    """
    A compiled text: literal parts and references, in order.

    A reference is `(namespace, key)`.
    """

    parts: tuple[str | tuple[str, str], ...]

    @property
    def sole(self) -> tuple[str, str] | None:
        """The reference, when the text is one reference and nothing else."""
        first = self.parts[0] if len(self.parts) == 1 else None
        return first if isinstance(first, tuple) else None


# As many names as a person reads through; an `env` can have thousands.
_LISTED_MAX = 10

Scope = Mapping[str, Mapping[str, Any]]
"""Values by namespace and key: `{"matrix": {"lr": 0.1}, "run": {"name": ...}}`."""


def mentions(value: Any) -> bool:
    """Whether an expression or an escape stands anywhere in a JSON value."""
    if isinstance(value, str):
        return MARK in value
    if isinstance(value, Mapping):
        return any(mentions(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(mentions(item) for item in value)
    return False


def compile_value(value: Any) -> Any:
    """The value with each text that has an expression replaced by its `Text`; others are kept."""
    if isinstance(value, str):
        return compile_text(value) if MARK in value else value
    if isinstance(value, Mapping):
        return {key: compile_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [compile_value(item) for item in value]
    return value


def compile_text(text: str) -> Text:
    """
    Split a text at its expressions.

    What is no reference to a namespace's key becomes the reference `("", body)`, which no
    scope has, so that `problems` names it.
    """
    parts: list[str | tuple[str, str]] = []
    end = 0
    # Behind the last `}}` nothing can match, and each `${{` there would be searched to the end.
    for match in _EXPRESSION.finditer(text, 0, text.rfind("}}") + 2):
        parts.append(text[end : match.start()])
        end = match.end()
        if match[0].startswith("$$"):
            parts.append(match[0][1:])
            continue
        reference = _REFERENCE.fullmatch(match["body"])
        if reference is not None:
            parts.append((reference[1], reference[2]))
        elif _ADDRESS.fullmatch(match["body"]):
            parts.append(("groups", match["body"].strip().removeprefix("groups")))
        else:
            parts.append(("", match["body"].strip()))
    rest = text[end:]
    if rest.count(MARK) > rest.count("$" + MARK):
        # Opened and never closed.
        parts.append(("", rest[rest.index(MARK) + len(MARK) :].strip()))
    else:
        parts.append(rest.replace("$" + MARK, MARK))
    return Text(tuple(part for part in parts if part != ""))


def references(
    compiled: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[Any, tuple[str, str]]]:
    """Each reference in a compiled value, with the path of the text that it stands in."""
    if isinstance(compiled, Text):
        for part in compiled.parts:
            if isinstance(part, tuple):
                yield path, part
    elif isinstance(compiled, Mapping):
        for key, item in compiled.items():
            yield from references(item, (*path, key))
    elif isinstance(compiled, list | tuple):
        for number, item in enumerate(compiled):
            yield from references(item, (*path, number))


def problems(
    compiled: Any, known: Mapping[str, Collection[str]], path: tuple[str | int, ...] = ()
) -> Iterator[Problem]:
    """
    What cannot be resolved in a compiled value.

    `known` has the keys by namespace; one without keys is known and empty. Of the keys of `run`,
    those that nothing fills in yet are known where they are named.
    """
    for at, (namespace, key) in references(compiled, path):
        word = spelled((namespace, key)) if namespace else key
        late = _late(namespace, key, known)
        if late is not None:
            detail, advice = late
            detail = f"`${{{{ {word} }}}}`: {detail}"
            yield Problem("not-supported", at, detail, advice, level=Level.NOTE, word=word)
            continue
        detail, advice = _judge(namespace, key, known)
        if detail:
            yield Problem("unknown-expression", at, detail, advice, word=word)


def _late(namespace: str, key: str, known: Mapping[str, Collection[str]]) -> tuple[str, str] | None:
    """What to say of a reference that nothing fills in yet; None: it is not such a reference."""
    if (namespace, key) in _LATE_KEYS and key in known.get(namespace, ()):
        return _LATE_KEYS[namespace, key]
    return _LATE.get(namespace)


def _is_late(reference: tuple[str, str], scope: Scope) -> bool:
    namespace, key = reference
    return namespace in _LATE or (reference in _LATE_KEYS and key not in scope.get(namespace, {}))


def spelled(reference: tuple[str, str]) -> str:
    """A reference as it is written: `matrix.lr`, `groups[0].nodes[1].IP_ADDRESS`."""
    namespace, key = reference
    return f"{namespace}{key}" if key.startswith("[") else f"{namespace}.{key}"


def group_address(reference: tuple[str, str]) -> tuple[int, str, int] | None:
    """The group, `nodes` or `replicas`, and the number there; None for any other reference."""
    found = _ADDRESS.fullmatch(spelled(reference))
    return None if found is None else (int(found[1]), found[2], int(found[3]))


def _judge(namespace: str, key: str, known: Mapping[str, Collection[str]]) -> tuple[str, str]:
    whole = f"`${{{{ {namespace}.{key} }}}}`"
    if not namespace:
        return (
            f"`${{{{ {key} }}}}` is not a reference.",
            "Write a namespace, a dot and a key: `${{ matrix.lr }}`. `$${{` stands for a literal `${{`.",
        )
    if namespace not in known:
        names = [*known, *_LATE]
        return f"{whole}: the namespace `{namespace}` does not exist here.", _candidates(
            namespace, names
        )
    if key not in known[namespace]:
        return f"{whole}: `{namespace}` has no `{key}` here.", _candidates(key, known[namespace])
    return "", ""


def _candidates(wrong: str, right: Collection[str]) -> str:
    if not right:
        return ""
    close = nearest(wrong, right)
    if close:
        return f"Did you mean `{close}`?"
    listed = ", ".join(f"`{name}`" for name in sorted(right)[:_LISTED_MAX])
    others = " and others" if len(right) > _LISTED_MAX else ""
    return f"There is {listed}{others}."


def render(compiled: Any, scope: Scope, *, native: bool = False) -> Any:
    """
    The value with each reference filled in.

    `scope` has every namespace and key that occurs; `problems` has seen to that. With `native`
    a text that is one reference keeps the type of what it names, so that
    `nodes: ${{ matrix.nodes }}` is a number.
    """
    if isinstance(compiled, Text):
        if native and (sole := compiled.sole) and not _is_late(sole, scope):
            return scope[sole[0]][sole[1]]
        return "".join(
            part if isinstance(part, str) else _filled(part, scope) for part in compiled.parts
        )
    if isinstance(compiled, dict):
        return {key: render(item, scope, native=native) for key, item in compiled.items()}
    if isinstance(compiled, list):
        return [render(item, scope, native=native) for item in compiled]
    return compiled


def size(compiled: Any, scope: Scope) -> int:
    """How many characters the texts of `render` would have, without making them."""
    if isinstance(compiled, str):
        return len(compiled)
    if isinstance(compiled, Text):
        return sum(
            len(part if isinstance(part, str) else _filled(part, scope)) for part in compiled.parts
        )
    if isinstance(compiled, Mapping):
        return sum(size(item, scope) for item in compiled.values())
    if isinstance(compiled, list | tuple):
        return sum(size(item, scope) for item in compiled)
    return 0


def _filled(reference: tuple[str, str], scope: Scope) -> str:
    namespace, key = reference
    if _is_late(reference, scope):
        return f"${{{{ {spelled(reference)} }}}}"
    return scalar_text(scope[namespace][key])


def fill(text: str, namespace: str, values: Mapping[str, Any], *, native: bool = False) -> Any:
    """
    A text of a document with the references to one namespace filled in, and all else as it was.

    `values` have no expressions in them. With `native`, a text that is one reference and nothing
    else becomes the value itself.
    """
    compiled = compile_text(text)
    if not any(namespace == one for _, (one, _) in references(compiled)):
        return text
    if native and compiled.sole is not None:
        return values[compiled.sole[1]]
    return "".join(
        part.replace(MARK, f"${MARK}")
        if isinstance(part, str)
        else scalar_text(values[part[1]])
        if part[0] == namespace
        else f"${{{{ {spelled(part)} }}}}"
        for part in compiled.parts
    )
