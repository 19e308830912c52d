"""The read-only API beside `serve`: the packages it needs, its address, and its end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fleetform.wiring.clock import SystemClock
from fleetform.wiring.problems import Problem

if TYPE_CHECKING:
    from fleetform.model.ports import Progress
    from fleetform.wiring.workspace import Workspace

__all__ = ["answer"]


async def answer(workspace: Workspace, listen: str, progress: Progress) -> None:
    """
    Answer the read-only API until cancelled.

    Raises:
        Problem: `listen` is no address, or a package is missing.
    """
    try:
        import uvicorn

        from fleetform.api.app import create_app
    except ModuleNotFoundError as missing:
        raise Problem(
            f"the API needs the package {missing.name}",
            "install `fleetform[server]`, or leave --listen out",
        ) from missing
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        raise Problem(f"--listen {listen} is not HOST:PORT", "for instance 127.0.0.1:8433")
    app = create_app(
        workspace.reader,
        workspace.logs,
        environment=workspace.environment,
        now_ms=SystemClock().now_ms,
        listen_host=host,
    )
    config = uvicorn.Config(app, host=host, port=int(port), log_level="warning", lifespan="off")

    class Server(uvicorn.Server):
        """Leaves signals to `serve`: they end the manager, and the API with it."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    server = Server(config)
    progress.notice(f"the API answers at http://{host}:{port}/api/v1")
    await server.serve()
