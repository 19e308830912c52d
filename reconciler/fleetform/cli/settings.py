"""Changes of fields as people type them: `resources.gpu=H100:2`, `max_duration-`."""

from __future__ import annotations

from typing import Any

from fleetform.cli.failure import Refused


def parse_setting(change: str) -> tuple[tuple[str | int, ...], Any]:
    """
    Read one change as a path in a document and a value; ABSENT for a field to be taken out.

    Raises:
        Refused: It is neither.
    """
    from fleetform.app.editing import ABSENT

    name, equals, text = change.partition("=")
    if not equals and name.endswith("-"):
        return _steps(name[:-1], change), ABSENT
    if not equals:
        raise Refused(f"`{change}` has no value", advice=f"write `{name}=VALUE`, or `{name}-`")
    return _steps(name, change), _value(text, change)


def _steps(dotted: str, change: str) -> tuple[str | int, ...]:
    steps = dotted.split(".")
    if not all(steps):
        raise Refused(f"`{change}` names no field", advice="write for example `resources.gpu=H100`")
    if steps[0] in {"name", "type"}:
        raise Refused(
            f"`{steps[0]}` identifies the resource, so `set` does not change it",
            advice="edit the document by hand; `moved:` in environment.yaml keeps a renamed resource",
        )
    if steps == ["uid"]:
        raise Refused(
            "`uid` identifies the environment and everything that it created, so `set` does not"
            " change it",
            advice="`fleetform init` creates a new environment",
        )
    return tuple(steps)


def _value(text: str, change: str) -> Any:
    """Read a value as a document would; nothing behind the sign is an empty text."""
    if not text:
        return ""
    from fleetform.spec.documents import read_documents
    from fleetform.spec.findings import Level
    from fleetform.spec.nodes import plain

    nodes, findings = read_documents(text.encode("utf-8", "surrogatepass"), "")
    if len(nodes) != 1 or any(one.level is Level.ERROR for one in findings):
        raise Refused(
            f"`{change}`: this is not a value in YAML", advice="put it in quotes, as in a file"
        )
    value = plain(nodes[0])
    if value is None:
        raise Refused(
            f"`{change}` sets nothing", advice=f"`{change.partition('=')[0]}-` removes the field"
        )
    return value
