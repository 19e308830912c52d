"""
Runs transcripts: Markdown whose console blocks are typed into a shell and compared.

In a `console` block a line that begins with `$ ` is typed; what follows is expected of it, up to the
next. `…` stands for any text within a line, and a line that is only `…` for any lines. A block
whose first line is `# file: NAME` is written as that file. Everything else is prose. Port 8433
becomes one that is free, so that documents can be run side by side. Nothing comes from the user's
own settings of git, and a plan's words for having been told long ago are left out: who types slowly
gets them.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from fleetform.app.background_start import JOB_VARIABLES

_BLOCK = re.compile(r"^```(?P<kind>[a-z]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_PORT = "8433"
_WAIT_SECONDS = 120
"""For one command, which most often takes one second."""
_LONG_AGO = re.compile(r", which last heard of its hosts \S+ ago")
# `submit` writes the first two into documents, and a detached apply warns of the others.
_SHELLS_OWN = frozenset({"VIRTUAL_ENV", "CONDA_PREFIX", *JOB_VARIABLES})
_FILE = re.compile(r"\A# file: (?P<name>\S+)\n")


@dataclass(frozen=True)
class Typed:
    """One command, the lines expected of it, and where it stands in the document."""

    command: str
    expected: tuple[str, ...]
    line: int


def run(document: Path, folder: Path, state: Path) -> int:
    """
    Run every block of `document` in `folder`; returns how many commands were typed.

    Raises:
        AssertionError: Output differs; says which command at which line of the document.
    """
    __tracebackhide__ = True
    text = document.read_text()
    environment = {
        **{name: value for name, value in os.environ.items() if name not in _SHELLS_OWN},
        "FLEETFORM_STATE_HOME": str(state),
        "NO_COLOR": "1",
        "COLUMNS": "120",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "somebody",
        "GIT_AUTHOR_EMAIL": "somebody@example.org",
        "GIT_COMMITTER_NAME": "somebody",
        "GIT_COMMITTER_EMAIL": "somebody@example.org",
    }
    where = folder
    count = 0
    port = str(_free_port())
    for block in _BLOCK.finditer(text):
        body, line = block["body"], text.count("\n", 0, block.start("body")) + 1
        if named := _FILE.match(body):
            file = where / named["name"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(body[named.end() :])
        elif block["kind"] == "console":
            for typed in _typed(body.replace(_PORT, port), line):
                where = _type(typed, where, environment, document)
                count += 1
    return count


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


def _type(typed: Typed, where: Path, environment: dict[str, str], document: Path) -> Path:
    """Run one command and compare; returns the folder that the shell is in afterwards."""
    __tracebackhide__ = True
    marker = "transcript-is-now-in:"
    done = subprocess.run(
        ["bash", "-c", f"{typed.command}\nstatus=$?\necho '{marker}'$PWD\nexit $status"],
        cwd=where,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_WAIT_SECONDS,
        check=False,
    )
    output, _, folder = done.stdout.rpartition(marker)
    printed = [line.rstrip() for line in _LONG_AGO.sub("", output).splitlines()]
    pattern = _pattern(typed.expected)
    assert re.fullmatch(pattern, "\n".join(printed).strip("\n"), re.DOTALL), (
        f"{document.name}:{typed.line}: `{typed.command}` (exit {done.returncode}) printed\n"
        + "\n".join(printed)
        + "\n--- expected\n"
        + "\n".join(typed.expected)
    )
    return Path(folder.strip())


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
