"""Import the product once, and run each command in a fork of that; see `forkserver`."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import gc
import importlib
import marshal
import os
import pkgutil
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
from typing import Any, NoReturn

FILES_MAX = 200

Request = tuple[list[str], str, dict[bytes, bytes], int, list[int], list[int]]
"""Arguments, working directory, variables, umask, numbers of the open files, ignored signals."""


class Server:
    """Forks for each launcher, passes on its signals, and tells it the exit code."""

    def __init__(self, address: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen(64)
        self._watched = selectors.DefaultSelector()
        self._watched.register(self._listener, selectors.EVENT_READ, self._start)

    def serve(self) -> None:
        """Go on for as long as the process that started this one."""
        while os.getppid() == PARENT:
            # One at a time: what is done for it may close another that is ready.
            for key, _ in self._watched.select(0.5)[:1]:
                key.data()

    def _start(self) -> None:
        connection, _ = self._listener.accept()
        asked, files = _receive(connection)
        if asked is not None:
            pid = os.fork()
            if not pid:
                _run(asked, files)
            ended = os.pidfd_open(pid)
            signals = functools.partial(self._pass_on, connection, pid)
            end = functools.partial(self._end, connection, pid, ended)
            self._watched.register(connection, selectors.EVENT_READ, signals)
            self._watched.register(ended, selectors.EVENT_READ, end)
        else:
            connection.close()
        # A reader of the output of the command waits until every process has closed it.
        for one in files:
            os.close(one)

    def _pass_on(self, connection: socket.socket, pid: int) -> None:
        """Send signals of the launcher to its command; a launcher that was killed kills it."""
        numbers = connection.recv(64)
        if not numbers:
            self._watched.unregister(connection)
        for number in numbers or [signal.SIGKILL]:
            os.kill(pid, number)

    def _end(self, connection: socket.socket, pid: int, ended: int) -> None:
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(BrokenPipeError):
            connection.sendall(marshal.dumps(os.waitstatus_to_exitcode(status)))
        with contextlib.suppress(KeyError):  # Its launcher was killed.
            self._watched.unregister(connection)
        self._watched.unregister(ended)
        os.close(ended)
        connection.close()


def _receive(connection: socket.socket) -> tuple[Request | None, list[int]]:
    """Read what a launcher asks for, with its files; nothing if it ends meanwhile."""
    start, files, _, _ = socket.recv_fds(connection, 4, FILES_MAX)
    size = int.from_bytes(start, "little")
    data = b""
    while len(data) < size and (more := connection.recv(size - len(data))):
        data += more
    return (marshal.loads(data) if size and len(data) == size else None), files


def _run(asked: Request, files: list[int]) -> NoReturn:
    """Be the command: with what its launcher had, and nothing of the server."""
    arguments, folder, variables, mask, numbers, ignored = asked
    aside = max(*numbers, *files) + 1
    held = [fcntl.fcntl(one, fcntl.F_DUPFD, aside) for one in files]
    for one, number in zip(held, numbers, strict=True):
        os.dup2(one, number)
    for one in {int(name) for name in os.listdir("/proc/self/fd")} - {*numbers}:
        with contextlib.suppress(OSError):  # That of the listing is closed.
            os.close(one)
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for one in ignored:
        signal.signal(one, signal.SIG_IGN)
    os.chdir(folder)
    os.umask(mask)
    os.environ.clear()
    os.environb.update(variables)
    time.tzset()
    sys.argv = arguments
    code: Any
    try:
        from fleetform.cli.entry import main

        code = main()
    except SystemExit as left:
        code = left.code
    except BaseException:  # noqa: BLE001 -- what the interpreter does
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code or 0))


def _import_product() -> None:
    import fleetform

    for module in pkgutil.walk_packages(fleetform.__path__, "fleetform."):
        if "generator" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    if threading.active_count() != 1:
        raise RuntimeError("an import has begun a thread, which no fork would have")


PARENT = os.getppid()

if __name__ == "__main__":
    _import_product()
    server = Server(sys.argv[1])
    print("ready", flush=True)
    server.serve()
