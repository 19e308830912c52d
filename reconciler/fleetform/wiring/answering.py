"""The read-only API beside `serve`: the packages it needs, its address, and its end."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fleetform.wiring.clock import SystemClock
from fleetform.wiring.problems import Problem

if TYPE_CHECKING:
    from fleetform.model.ports import Progress
    from fleetform.wiring.workspace import Workspace

__all__ = ["AddressUnusable", "answer"]


class AddressUnusable(Problem):
    """Nobody can listen there, for instance because somebody does."""


async def answer(workspace: Workspace, listen: str, progress: Progress) -> None:
    """
    Answer the read-only API until cancelled.

    Raises:
        AddressUnusable: Nobody can listen there, for instance because somebody does.
        Problem: `listen` is no address, or every address; or a package is missing.
    """
    try:
        import uvicorn

        from fleetform.api.app import create_app
    except ModuleNotFoundError as missing:
        raise Problem(
            f"the API needs the package {missing.name}",
            "install `fleetform[server]`, or leave --listen out",
        ) from missing
    host, port = _address(listen)
    app = create_app(
        workspace.reader,
        workspace.logs,
        environment=workspace.environment,
        now_ms=SystemClock().now_ms,
        listen_host=host,
    )
    config = uvicorn.Config(app, log_level="warning", lifespan="off")

    class Server(uvicorn.Server):
        """Leaves signals to `serve`: they end the manager, and the API with it."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    # By ourselves, for uvicorn would end the process where it cannot.
    with _listening(host, port, listen) as there:
        progress.notice(f"the API answers at http://{_named(host)}:{there.getsockname()[1]}/api/v1")
        await Server(config).serve(sockets=[there])


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise Problem(f"--listen {listen} is not HOST:PORT", "for instance 127.0.0.1:8433")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _named(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listening(host: str, port: int, listen: str) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        if ipaddress.ip_address(address[0]).is_unspecified:
            raise Problem(
                f"--listen {listen} is every address of this machine and no name, and the API"
                " answers only who calls it by the name where it listens: else a page that gives"
                " its own name this address could read it",
                f"listen at a name or an address by which it is called, as in"
                f" {socket.gethostname()}:{port}; where it has several, put a proxy before"
                f" 127.0.0.1:{port}",
            )
        return socket.create_server(address, family=family)
    except OSError as problem:
        raise AddressUnusable(
            f"--listen {listen}: {(problem.strerror or str(problem)).lower()}",
            "choose another port, or find who has it with `ss -ltnp`",
        ) from problem
