"""Import the product once, and run each command in a fork of that; see `forkserver`."""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import marshal
import os
import pkgutil
import select
import signal
import socket
import socketserver
import sys
import threading
import time
import traceback
from typing import Any, NoReturn

FILES_MAX = 200

Request = tuple[list[str], str, dict[bytes, bytes], int, list[int], list[int]]
"""Arguments, working directory, variables, umask, numbers of the open files, ignored signals."""


class Server(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """Forks for each launcher; ends with the process that started it."""

    request_queue_size = 64
    block_on_close = False
    max_children = 1000

    def service_actions(self) -> None:
        super().service_actions()
        if os.getppid() != PARENT:
            sys.exit()

    def handle_error(self, request: Any, client_address: Any) -> None:
        traceback.print_exc()


class Launcher(socketserver.BaseRequestHandler):
    """What is done for one launcher: its command is a child of this process."""

    request: socket.socket

    def handle(self) -> None:
        asked, files = _receive(self.request)
        pid = os.fork()
        if not pid:
            _run(asked, files)
        # A reader of the output of the command waits until every process has closed it.
        for one in files:
            os.close(one)
        ended = os.pidfd_open(pid)
        poller = select.poll()
        for one in (self.request.fileno(), ended):
            poller.register(one, select.POLLIN)
        while True:
            ready = dict(poller.poll())
            if ended in ready:
                _, status = os.waitpid(pid, 0)
                self.request.sendall(marshal.dumps(os.waitstatus_to_exitcode(status)))
                return
            for number in self.request.recv(64) or [signal.SIGKILL]:
                os.kill(pid, number)


def _receive(connection: socket.socket) -> tuple[Request, list[int]]:
    start, files, _, _ = socket.recv_fds(connection, 4, FILES_MAX)
    size = int.from_bytes(start, "little")
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            sys.exit()
        data += more
    return marshal.loads(data), files


def _run(asked: Request, files: list[int]) -> NoReturn:
    """Be the command: with what its launcher had, and nothing of the server."""
    arguments, folder, variables, mask, numbers, ignored = asked
    aside = max(*numbers, *files) + 1
    held = [fcntl.fcntl(one, fcntl.F_DUPFD, aside) for one in files]
    for one, number in zip(held, numbers, strict=True):
        os.dup2(one, number)
    wanted = set(numbers)
    for one in range(max(held) + 1):
        if one not in wanted:
            try:
                os.close(one)
            except OSError:
                continue
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
    with Server(sys.argv[1], Launcher) as serving:
        print("ready", flush=True)
        serving.serve_forever()
