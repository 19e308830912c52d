"""
Runs transcripts: Markdown whose console blocks are typed into a shell and compared.

In a `console` block a line that begins with `$ ` is typed; what follows is expected of it, up to the
next. `…` stands for any text within a line, and a line that is only `…` for any lines. A block
whose first line is `# file: NAME` is written as that file. Everything else is prose. Port 8433
becomes one that is free, so that documents can be run side by side. A command that fails has its exit
code in the document, by `; echo "exit code $?"`. Nothing comes from the user's
own settings of git. A plan's words for having been told long ago are left out, as is that a run waits for an
agent to start: who types slowly, or on a busy machine, gets them.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import forkserver
from fleetform.app.background_start import JOB_VARIABLES

_BLOCK = re.compile(r"^```(?P<kind>[a-z]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_PORT = "8433"
_WAIT_SECONDS = 120
"""For one command, which most often takes one second."""
_LONG_AGO = re.compile(r", which last heard of its hosts \S+ ago")
_SLOW_AGENT = re.compile(r"^\S+ waits: needs .* are ready \(\d+ provisioning\)\n", re.MULTILINE)
# `submit` writes the first two into documents, and a detached apply warns of the others.
_SHELLS_OWN = frozenset({"VIRTUAL_ENV", "CONDA_PREFIX", *JOB_VARIABLES})
# What bash runs a command in. `ERR` is every command of it that fails, but for those that `if`, `until`,
# `&&` and `||` ask; the last one's code is in it too.
_SHELL = """trap 'echo $? >> {codes}' ERR
{command}
status=$?
trap - ERR
echo '{marker}'$PWD
exit $status"""
_MARKER = "transcript-is-now-in:"
_FILE = re.compile(r"\A# file: (?P<name>\S+)\n")


@dataclass(frozen=True)
class Typed:
    """One command, the lines expected of it, and where it stands in the document."""

    command: str
    expected: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Done:
    """One command that was typed, the lines that it printed, and its exit code; None for none in time."""

    typed: Typed
    printed: tuple[str, ...]
    code: int | None


def run(
    document: Path, folder: Path, state: Path, replaced: Mapping[str, str] | None = None
) -> int:
    """
    Run every block of `document` in `folder`; returns how many commands were typed.

    `replaced` has texts of the document that are others here, such as a network.

    Raises:
        AssertionError: Output differs, or an exit code is not stated; shows the session up to there.
    """
    __tracebackhide__ = True
    text = document.read_text()
    for shown, here in (replaced or {}).items():
        text = text.replace(shown, here)
    environment = {
        **{name: value for name, value in os.environ.items() if name not in _SHELLS_OWN},
        "FLEETFORM_STATE_HOME": str(state),
        "NO_COLOR": "1",
        "COLUMNS": "120",
        "PATH": f"{forkserver.program().parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "somebody",
        "GIT_AUTHOR_EMAIL": "somebody@example.org",
        "GIT_COMMITTER_NAME": "somebody",
        "GIT_COMMITTER_EMAIL": "somebody@example.org",
    }
    where = folder
    session: list[Done] = []
    port = str(_free_port())
    for block in _BLOCK.finditer(text):
        body, line = block["body"], text.count("\n", 0, block.start("body")) + 1
        if named := _FILE.match(body):
            file = where / named["name"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(body[named.end() :])
        elif block["kind"] == "console":
            for typed in _typed(body.replace(_PORT, port), line):
                done, where, failed = _type(typed, where, environment)
                session.append(done)
                problem = _problem(done, failed)
                assert not problem, f"{document.name}:{typed.line}: {problem}\n{_shown(session)}"
    return len(session)


def _free_port() -> int:
    """Find one that nobody is given meanwhile: below those that the kernel gives out (32768)."""
    while True:
        port = random.randrange(10_000, 32_768)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def _typed(body: str, line: int) -> list[Typed]:
    found: list[Typed] = []
    for number, text in enumerate(body.splitlines()):
        if text.startswith("$ "):
            found.append(Typed(text[2:], (), line + number))
        elif found:
            last = found[-1]
            found[-1] = Typed(last.command, (*last.expected, text), last.line)
    return found


def _type(
    typed: Typed, where: Path, environment: dict[str, str]
) -> tuple[Done, Path, tuple[int, ...]]:
    """
    Run one command.

    Returns what came of it, the folder that the shell is in afterwards, and the exit codes other than
    0, in order.
    """
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as codes:
        script = _SHELL.format(codes=shlex.quote(codes.name), command=typed.command, marker=_MARKER)
        try:
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=where,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_WAIT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            return Done(typed, _lines(late.stdout or b""), None), where, ()
        failed = tuple(map(int, codes))
    output, _, folder = done.stdout.rpartition(_MARKER.encode())
    return Done(typed, _lines(output), done.returncode), Path(os.fsdecode(folder.strip())), failed


def _lines(output: bytes) -> tuple[str, ...]:
    text = _SLOW_AGENT.sub("", _LONG_AGO.sub("", output.decode(errors="replace")))
    lines = text.strip("\n").splitlines()
    return tuple(line.rstrip() for line in lines)


def _problem(done: Done, failed: tuple[int, ...]) -> str:
    """Say what is wrong with a command; empty where the document shows what happened."""
    what = f"`{done.typed.command}`"
    if done.code is None:
        return f"{what} has not ended within {_WAIT_SECONDS} s"
    if not re.fullmatch(_pattern(done.typed.expected), "\n".join(done.printed), re.DOTALL):
        return f"{what} printed other lines than\n" + "\n".join(done.typed.expected)
    stated = [line for line in done.printed if line in done.typed.expected]
    for code in failed:
        if not {f"exit code {code}", str(code)} & set(stated):
            return f'{what} failed with exit code {code}, which is not stated: add `; echo "exit code $?"`'
    return ""


def _shown(session: list[Done]) -> str:
    """Show every command with what it printed and its exit code, the last one being the wrong one."""
    lines = ["--- the session up to here"]
    for done in session:
        lines += [f"$ {done.typed.command}", *done.printed]
        if done.code != 0:
            lines.append(f"[exit code {done.code}]" if done.code is not None else "[not over]")
    return "\n".join(lines)


def _pattern(expected: tuple[str, ...]) -> str:
    lines = [line.rstrip() for line in expected]
    while lines and not lines[-1]:
        lines.pop()
    pattern = ""
    for number, line in enumerate(lines):
        last = number == len(lines) - 1
        if line == "…":
            pattern += ".*" if last else "(?:.*\n)?"
            continue
        pieces = [re.escape(piece) for piece in line.split("…")]
        pattern += "[^\n]*".join(pieces) + ("" if last else "\n")
    return pattern.lstrip("\n")
