"""Which commands of the Pulumi CLI were started, and when: a program in its place writes them down and becomes the CLI."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from cloud.aws_cloud import AwsCloud

__all__ = ["CliRecord", "CliStart"]

_PROGRAM = """#!/bin/sh
echo "$(date +%s.%N) $*" >> {record}
exec {program} "$@"
"""


@dataclass(frozen=True)
class CliStart:
    """`at`: seconds since the epoch. `command`: such as `preview`, `up` or `stack init`."""

    at: float
    command: str


class CliRecord:
    """The starts of a cloud's CLI from now on, in their order."""

    def __init__(self, cloud: AwsCloud) -> None:
        self._file = cloud.folder / "cli-starts"
        program = cloud.programs / "pulumi"
        real = program.readlink()
        program.unlink()
        words = {"record": shlex.quote(str(self._file)), "program": shlex.quote(str(real))}
        program.write_text(_PROGRAM.format(**words))
        program.chmod(0o755)

    def starts(self, *commands: str) -> list[CliStart]:
        """Return the starts of these commands, or of all."""
        text = self._file.read_text() if self._file.exists() else ""
        found = [_start(line) for line in text.splitlines()]
        return [one for one in found if not commands or one.command in commands]


def _start(line: str) -> CliStart:
    at, *words = line.split()
    words = [one for one in words if one != "--non-interactive"]
    return CliStart(float(at), " ".join(words[: 2 if words[0] == "stack" else 1]))
