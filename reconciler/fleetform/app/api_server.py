"""
Runs the API of `serve` in a separate process.

A client that may connect may also flood it, and find a fault in it. In a process of its own that costs
the answers and nothing else: `serve` neither waits for it nor shares memory, descriptors or
processor priority with it, and starts it again when it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import ipaddress
import json
import signal
import socket
import sys
from typing import TYPE_CHECKING

from fleetform.app.problems import Problem
from fleetform.model.history import LogLevel
from fleetform.spec.extras import install_extra

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.ports import Progress


_PACKAGES = ("fastapi", "uvicorn")

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 60.0

_STEADY_SECONDS = 60.0
"""A process that lived so long did not end because of how it was started."""

_END_SECONDS = 2.0
"""How long it may take to see that it shall end, before it is killed."""


class AddressUnusable(Problem):
    """The address cannot be listened on, for instance because another process does."""


async def answer(
    workspace: Workspace, listen: str, progress: Progress, *, insecure: bool = False
) -> None:
    """
    Answer the read-only API until cancelled.

    Args:
        workspace: The environment.
        listen: `HOST:PORT`.
        progress: Reports where the API answers, and when its process is started again.
        insecure: Whether HOST may be an address that other machines reach.

    Raises:
        AddressUnusable: The address cannot be listened on.
        Problem: `listen` is not an address or not a safe one; or a package is missing.
    """
    _require_packages()
    host, port = _address(listen)
    # This process listens and the other accepts: so the address is taken or refused before
    # anything begins, and connections wait while that process is started again.
    with _listening(host, port, listen, insecure=insecure) as there:
        progress.notice(
            f"the API answers at http://{_named(host)}:{there.getsockname()[1]}/api/v1",
            event="api.started",
        )
        pause = _FIRST_PAUSE_SECONDS
        clock = asyncio.get_running_loop().time
        while True:
            started = clock()
            ended = await _run_process(workspace, host, there)
            if clock() - started > _STEADY_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            progress.notice(
                f"the API is down: its process {ended}; it is started again in {pause:g} s",
                event="api.ended",
                level=LogLevel.ERROR,
            )
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)


async def _run_process(workspace: Workspace, host: str, listening: socket.socket) -> str:
    """Run the process until it ends, and say how; end it when cancelled."""
    setup = {
        "name": workspace.environment.name,
        "uid": workspace.environment.uid,
        "host": host,
        "socket": listening.fileno(),
    }
    try:
        process = await asyncio.create_subprocess_exec(
            # -P: a file of the configuration's folder is never imported.
            *(sys.executable, "-P", "-m", "fleetform.app.api_process", str(workspace.root)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            pass_fds=[listening.fileno()],
            # Ctrl-C is meant for `serve`. In a session of its own its priority would not count
            # against that of `serve` (sched(7), autogroups).
            process_group=0,
        )
    except OSError as problem:
        return f"cannot be started: {(problem.strerror or str(problem)).lower()}"
    assert process.stdin is not None
    try:
        # Not in its arguments, which every user of the machine can read.
        process.stdin.write(json.dumps(setup).encode() + b"\n")
        return _how_it_ended(await process.wait())
    finally:
        # It ends when its input does: also where `serve` is killed.
        process.stdin.close()
        await _see_it_ended(process)


async def _see_it_ended(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()
            return
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _require_packages() -> None:
    # They are looked for and not imported: this process does without them.
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise Problem(
            f"the API needs the package {missing[0]}",
            f"{install_extra('server')}; or leave --listen out",
        )


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise Problem(f"--listen {listen} is not HOST:PORT", "for instance 127.0.0.1:8433")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _named(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listening(host: str, port: int, listen: str, *, insecure: bool = False) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        _require_safe(ipaddress.ip_address(address[0]), port, listen, insecure=insecure)
        return socket.create_server(address, family=family)
    except OSError as problem:
        raise AddressUnusable(
            f"--listen {listen}: {(problem.strerror or str(problem)).lower()}",
            "choose another port, or find the process that has it with `ss -ltnp`",
        ) from problem


def _require_safe(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
    port: int,
    listen: str,
    *,
    insecure: bool,
) -> None:
    """
    Refuse an address that other machines reach, unless they may, and every address at once always.

    Raises:
        Problem: It is such an address.
    """
    if address.is_unspecified:
        raise Problem(
            f"--listen {listen} stands for every address of this machine, and the API has to"
            " have one name: it refuses requests for any other, so that no web page can read it"
            " through a browser",
            f"listen at a name or an address of this machine, as in {socket.gethostname()}:{port};"
            f" for several names, put a proxy before 127.0.0.1:{port}",
        )
    mapped = getattr(address, "ipv4_mapped", None)
    if not insecure and not (mapped or address).is_loopback:
        raise Problem(
            f"--listen {listen} is not an address of this machine alone, and the API has no log-in:"
            " everyone who reaches it could read runs, their output and plans",
            f"listen on 127.0.0.1:{port} and reach it from elsewhere with"
            f" `ssh -L {port}:127.0.0.1:{port} {socket.gethostname()}`; or add --insecure-listen,"
            " where everyone who reaches that address may read all this",
        )
