"""Arguments as people type them: changes of fields, durations, reasons, and who types."""

from __future__ import annotations

import os
import pwd
from typing import Any

import click

from fleetform.cli.failure import Refused

# Changes of fields as people type them: `resources.gpu=H100:2`, `max_duration-`.


def parse_setting(change: str) -> tuple[tuple[str | int, ...], Any]:
    """
    Read one change as a path in a document and a value; ABSENT for a field to be taken out.

    Raises:
        Refused: It is neither.
    """
    from fleetform.app.edit import ABSENT

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
    from fleetform.spec.findings import Level
    from fleetform.spec.nodes import plain
    from fleetform.spec.syntax import read_documents

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


# Durations as people type them, `90s`, `1h30m`, `2d`: the words of the documents.


class Duration(click.ParamType[int]):
    """A duration on the command line; the command gets milliseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from fleetform.spec.quantities.duration import parse_duration

        if isinstance(value, int):
            return value
        try:
            return parse_duration(value) * 1000
        except ValueError as problem:
            # The sentence names the value itself.
            self.fail(str(problem), param, ctx)


DURATION = Duration()

# The reason for a command, as a user types it: it stands within sentences, tables and commits.


class Reason(click.ParamType[str]):
    """
    A reason on the command line; the command gets one line, whatever is pasted.

    It is empty where nothing but blanks was typed: what a command says to that is its own.
    """

    name = "reason"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        del param, ctx  # anything is a reason
        return " ".join(str(value).split())


REASON = Reason()

# Who is at the terminal, as the history shows it.


def who_asks() -> str:
    """
    Name the account by its uid, and the machine: `ada@node1`.

    Not from $USER or $LOGNAME: those say whatever the caller likes.
    """
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # A container's user need not be in its passwd.
        name = f"uid-{uid}"
    # The module `socket` would be three milliseconds of every plan for the same answer.
    return f"{name}@{os.uname().nodename}"
