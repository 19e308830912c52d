"""
A file of dstack's, edited until it is one of fleetform's.

The language is dstack's to begin with, so nearly everything stays as it is written, comments and
all. What is changed: a document without a name gets one, spellings that dstack has given up get
their new form, and secrets in clear are taken out, because a tree is read by many.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from fleetform.spec.convert.conversion import Names, Notes, derive_name
from fleetform.spec.findings import Finding, Level
from fleetform.spec.kinds import KINDS
from fleetform.spec.names import name_problem
from fleetform.spec.nodes import Node, plain, spot
from fleetform.spec.syntax import read_documents, read_stream
from fleetform.spec.syntax.edit import remove, rename_key, set_value
from fleetform.spec.syntax.layout import EditRefused

__all__ = ["convert_dstack"]

Path = tuple[str | int, ...]

# A reference, or what a template has in the place of a value.
_HARMLESS: Final = re.compile(r"\s*(?:\$\{\{.*\}\}|<[^<>]*>)\s*", re.DOTALL)
_SECRETS: Final = frozenset({
    "api_key", "client_secret", "password", "private_key", "secret_access_key", "secret_key", "token",
})  # fmt: skip
_LISTS: Final = ("projects", "profiles")


class _Edit(NamedTuple):
    """
    What is done about a spelling of old versions.

    `act` returns the new text; it is given the text, the document's number, the path of what
    holds the field, and the field's value.
    """

    act: Callable[[str, int, Path, Any], str]
    said: str
    is_loss: bool = False


def convert_dstack(
    text: str, file: str, *, fallback: str, names: Names
) -> tuple[str, list[Finding]]:
    """
    Return the text of a file of dstack's as one of fleetform's, and the findings about it.

    Args:
        text: The file's.
        file: Its name for findings.
        fallback: What a document without a name is called: from the name of its file.
        names: The names of the documents before it; those of this one are added.

    Returns:
        An empty text when the file cannot be converted; the findings say why.
    """
    documents, findings = read_stream(text.encode(), file)
    errors = [found for found in findings if found.level is Level.ERROR]
    if errors:
        return "", errors
    notes = Notes(file, text.splitlines())
    for number, document in enumerate(documents):
        value = plain(document.root)
        if not _is_known(value, document.root, notes):
            return "", notes.findings
        try:
            text = _converted(text, number, document.root, notes, fallback, names)
        except EditRefused as refused:
            advice = f"{refused.advice[:1].upper()}{refused.advice[1:]}." if refused.advice else ""
            notes.refused(
                document.root.place.line, f"It cannot be edited: {refused.message}.", advice
            )
            return "", notes.findings
    return text, notes.findings


def _is_known(value: Any, node: Node, notes: Notes) -> bool:
    type_name = value.get("type") if isinstance(value, dict) else None
    if isinstance(value, dict) and (
        (isinstance(type_name, str) and type_name in KINDS) or _list_of(value)
    ):
        return True
    said = (
        f"`{type_name}` is not a type of document"
        if type_name
        else "This is not a configuration of dstack"
    )
    notes.refused(
        spot(node, ("type",)).line,
        f"{said}, so the file is not converted.",
        "Remove it, or convert the other files without it.",
    )
    return False


def _list_of(value: Mapping[str, Any]) -> str:
    """Return `projects` or `profiles` for a document that is a list of them."""
    return next((name for name in _LISTS if isinstance(value.get(name), list)), "")


def _converted(
    text: str, number: int, node: Node, notes: Notes, fallback: str, names: Names
) -> str:
    value = plain(node)
    listed = _list_of(value) if "type" not in value else ""
    if listed:
        parts: list[Path] = [(listed, place) for place in range(len(value[listed]))]
    else:
        text = _named(text, number, node, notes, fallback, names)
        parts = [()]
    for path in parts:
        text = _modernized(text, number, node, path, notes)
    return _without_secrets(text, number, node, notes)


def _named(text: str, number: int, node: Node, notes: Notes, fallback: str, names: Names) -> str:
    """Give the document its name: its own, or that of its file."""
    value = plain(node)
    kind = KINDS[value["type"]].name
    if kind == "backend" and "name" not in value:
        return text
    own = value.get("name")
    line = spot(node, ("name",)).line
    wanted = own if isinstance(own, str) and name_problem(own) is None else ""
    if not wanted:
        wanted = derive_name(own if isinstance(own, str) else fallback)
    name = names.take(kind, wanted)
    if own == name:
        return text
    if own is None:
        notes.otherwise(
            line, f"It has no name, and every document needs one. It was named `{name}`."
        )
    elif name == wanted:
        notes.otherwise(line, f"`{own}` is not a valid name. It was renamed `{name}`.")
    else:
        notes.lost(
            line,
            f"Another {kind} is called `{wanted}` too, and names must be unique. This one was renamed `{name}`.",
            "Choose a better name, and use it in all references.",
        )
    return set_value(text, number, ("name",), name, after="type")


# Spellings of old versions


def _rename(to: str) -> Callable[[str, int, Path, Any], str]:
    def act(text: str, number: int, path: Path, value: Any) -> str:
        return rename_key(text, number, path, to)

    return act


def _drop(text: str, number: int, path: Path, value: Any) -> str:
    return remove(text, number, path)


def _termination_policy(text: str, number: int, path: Path, value: Any) -> str:
    if value != "dont-destroy":
        return remove(text, number, path)
    text = set_value(text, number, path, "off")
    return rename_key(text, number, path, "idle_duration")


def _retry_policy(text: str, number: int, path: Path, value: Any) -> str:
    """`{retry: true, limit: 2h}` of 0.17, and its `retry_policy: {retry: false}`."""
    said = value if isinstance(value, dict) else {}
    duration = said.get("duration", said.get("limit"))
    retry: Any = said.get("retry", True) is not False
    if retry and duration is not None:
        retry = {"on": ["error", "interruption", "no-capacity"], "duration": duration}
    text = set_value(text, number, path, retry)
    return rename_key(text, number, path, "retry")


_OLD: Final[Mapping[str, _Edit]] = {
    "termination_idle_time": _Edit(_rename("idle_duration"), "It is called `idle_duration` now."),
    "termination_policy": _Edit(
        _termination_policy, "It is replaced by `idle_duration`; `off` keeps idle hosts."
    ),
    "retry_policy": _Edit(_retry_policy, "It is replaced by `retry`, which lists the events."),
    "pool_name": _Edit(_drop, "Pools are no longer supported: `fleets` names the allowed fleets.", is_loss=True),
    "instance_name": _Edit(
        _drop, "Instances now belong to fleets: choose one with `instances`.", is_loss=True
    ),
}  # fmt: skip


def _modernized(text: str, number: int, node: Node, path: Path, notes: Notes) -> str:
    holder = _at(plain(node), path)
    if not isinstance(holder, dict):
        return text
    for key, edit in _OLD.items():
        if key not in holder:
            continue
        line = spot(node, (*path, key), of="key").line
        tell = notes.lost if edit.is_loss else notes.otherwise
        # The field that says it now may be there beside the old one.
        is_said = _new_name(key) in holder
        text = (_drop if is_said else edit.act)(text, number, (*path, key), holder[key])
        tell(line, f"`{key}` is of old versions of dstack. {edit.said}")
    return text


def _new_name(key: str) -> str:
    return {
        "termination_idle_time": "idle_duration",
        "termination_policy": "termination_idle_time",
        "retry_policy": "retry",
    }.get(key, "")


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


# Secrets


def _without_secrets(text: str, number: int, node: Node, notes: Notes) -> str:
    """Put a reference in the place of each secret that stands in the file."""
    # As it is by now: what had no name has one.
    value = plain(read_documents(text.encode(), notes.file)[0][number])
    for path in _clear_secrets(value, ()):
        name = _secret_name(value, path)
        line = spot(node, path).line
        text = set_value(text, number, path, f"${{{{ secrets.{name} }}}}")
        notes.secret(
            line,
            f"`{path[-1]}` is in plaintext. Everyone who can read the repository can read it, so it was replaced by `${{{{ secrets.{name} }}}}`.",
            f"Declare `type: secret` with the name `{name}`, and set where its value is stored.",
        )
    return text


def _clear_secrets(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in _SECRETS and isinstance(item, str) and not _HARMLESS.fullmatch(item):
                yield (*path, key)
            elif key != "env":  # The user's own names: whether one is a secret is theirs to say.
                yield from _clear_secrets(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _clear_secrets(item, (*path, number))


def _secret_name(value: Any, path: Path) -> str:
    """Return a name that tells whose secret it is: of the project, of the backend or run, its field."""
    words: list[str] = []
    # The last mapping only says which kind of proof it is.
    for number in range(len(path) - 1):
        holder = _at(value, path[:number])
        said = holder.get("name") or holder.get("type") if isinstance(holder, dict) else None
        if isinstance(said, str):
            words.append(re.sub(r"[^a-z0-9]+", "_", said.lower()).strip("_"))
    return "_".join(dict.fromkeys([*words, str(path[-1])]))
