"""
Let commands of the tests start from a process that has imported the product already.

Importing takes 0.3 s of a processor, four fifths of what most commands take, and the tests run some thousand.
While `serving`, `program()` is the path of a program that does what `fleetform` does: it hands its arguments,
variables, open files and working directory to a server, which forks, and passes on signals and the exit code.

Where a fork would not be as a command of its own, the program runs `fleetform` itself: on a terminal, with
other limits, as another account, in other namespaces, in another locale. Tests that stop or kill a command, or
know it by its process id, start `fleetform` themselves.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from forkserver import launcher

__all__ = ["FLEETFORM", "program", "serving"]

FLEETFORM = Path(sys.executable).with_name("fleetform")

_FOLDER = Path(__file__).parent
_PROGRAM = """\
#!{python} -IS
import sys
sys.path.insert(0, {folder!r})
import launcher
launcher.launch({address!r}, {itself!r}, {surroundings!r})
"""
_served: list[Path] = []


def program() -> Path:
    """Return a program that starts fast while there is a server, and `fleetform` itself otherwise."""
    return _served[-1] if _served else FLEETFORM


@contextlib.contextmanager
def serving() -> Iterator[Path]:
    """Run a server; its `program` has the name `fleetform`, so that its folder can stand on a PATH."""
    with tempfile.TemporaryDirectory(prefix="fleetform-start-") as folder:
        address, path = Path(folder, "server"), Path(folder, "fleetform")
        path.write_text(
            _PROGRAM.format(
                python=sys.executable,
                folder=str(_FOLDER),
                address=str(address),
                itself=str(FLEETFORM),
                surroundings=launcher.surroundings(),
            )
        )
        path.chmod(0o755)
        with subprocess.Popen(
            [sys.executable, str(_FOLDER / "server.py"), str(address)],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stdout is not None
            try:
                assert server.stdout.readline() == "ready\n", (
                    "the server of the commands has not begun"
                )
                _served.append(path)
                yield path
            finally:
                server.kill()
                # A test may start one of its own beside that of all tests.
                if path in _served:
                    _served.remove(path)
