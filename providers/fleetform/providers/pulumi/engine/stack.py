"""
The caller's end of a stack: it starts the runner, sends requests and reads what happens.

    async with open_stack(settings, environment=os.environ) as stack:
        changes = await stack.preview(program)
        outcome = await stack.up(program, on_change=show)

The stack is excluded for other callers while this is open. Closing it, or the end of this process,
interrupts the engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fleetform.providers.contract.errors import ProviderError, TemporaryError
from fleetform.providers.pulumi.engine.changes import Change, Phase
from fleetform.providers.pulumi.engine.failures import Failure, error_of
from fleetform.providers.pulumi.engine.program import Program
from fleetform.providers.pulumi.engine.stack_settings import StackSettings, engine_environment
from fleetform.spec.private_folder import make_private_folder

__all__ = ["OnChange", "Outcome", "Stack", "open_stack"]

OnChange = Callable[[Change], None]

_LINE_BYTES = 1 << 28
"""The state of a stack is one line: 100 instances are half a megabyte."""

_END_SECONDS = 45.0
"""The runner kills what does not end within 30 s."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    What an `up` or a `destroy` did: the changes that are done, and the failures of resources.

    Where there are failures the other resources may be changed all the same.
    """

    changes: tuple[Change, ...]
    failures: tuple[Failure, ...] = ()

    def require(self) -> None:
        """
        Make sure that nothing failed.

        Raises:
            ProviderError: For the first failure.
        """
        if self.failures:
            raise error_of(self.failures[0])


@contextlib.asynccontextmanager
async def open_stack(
    settings: StackSettings, *, environment: Mapping[str, str]
) -> AsyncIterator[Stack]:
    """
    Start the runner of a stack, which excludes other runners until this ends.

    Args:
        settings: Of the stack.
        environment: Variables of the command, with the credentials of the cloud.

    Raises:
        StackLocked: Another process changes the stack.
        PermanentError: Pulumi is not installed.
    """
    make_private_folder(settings.folder)
    log = settings.folder / "runner.log"
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "fleetform.providers.pulumi.engine.runner"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=engine_environment(settings, environment),
            # Ctrl-C at a terminal is for the caller, which then interrupts the engine once.
            start_new_session=True,
            limit=_LINE_BYTES,
        )
    stack = Stack(settings, process)
    try:
        await stack.start()
        yield stack
    finally:
        await stack.close()


class Stack:
    """An open stack; one request at a time."""

    def __init__(self, settings: StackSettings, process: asyncio.subprocess.Process) -> None:
        self._settings = settings
        self._process = process

    @property
    def name(self) -> str:
        return self._settings.name

    @property
    def pid(self) -> int:
        """Of the runner."""
        return self._process.pid

    async def start(self) -> None:
        settings = self._settings
        await self._send(
            {
                "name": settings.name,
                "folder": str(settings.folder),
                "backend": settings.backend,
                "passphrase": str(settings.passphrase),
                "breaks_locks": settings.breaks_locks,
            }
        )
        await self._receive(lambda _: None)

    async def preview(self, program: Program) -> tuple[Change, ...]:
        """Return what `up` would change, and save it as the plan of this program."""
        changes: list[Change] = []
        await self._request({"do": "preview", "program": program.to_json()}, changes.append)
        return tuple(changes)

    async def up(
        self,
        program: Program,
        *,
        on_change: OnChange = lambda _: None,
        continue_on_error: bool = False,
    ) -> Outcome:
        """
        Apply a program as it was previewed last; the engine refuses what the plan does not have.

        A stack that this runner has created needs no preview: the state is empty.

        Raises:
            ProviderError: Nothing was changed, or no resource is to blame.
        """
        request = {"do": "up", "program": program.to_json(), "continue_on_error": continue_on_error}
        return await self._change(request, on_change)

    async def refresh(
        self, program: Program, *, on_change: OnChange = lambda _: None
    ) -> tuple[Change, ...]:
        """Read from the cloud what the resources of the state are, and return what differed."""
        request = {"do": "refresh", "program": program.to_json()}
        return (await self._change(request, on_change)).changes

    async def destroy(self, *, on_change: OnChange = lambda _: None) -> Outcome:
        """Delete all resources of the state."""
        return await self._change({"do": "destroy"}, on_change)

    async def export_state(self) -> dict[str, Any]:
        """Return the deployment; secrets are encrypted in it. It is empty in a stack that this runner has created."""
        return dict(await self._request({"do": "export"}))

    async def import_state(self, deployment: Mapping[str, Any]) -> None:
        """Replace the deployment."""
        await self._request({"do": "import", "deployment": deployment})

    async def create(self) -> None:
        """
        Create the stack in a state that has lost it.

        A new stack needs no call: the first request creates it.
        """
        await self._request({"do": "create"})

    async def remove(self) -> None:
        """Remove the stack, which must be empty, and its history."""
        await self._request({"do": "remove"})

    async def finish(self, seconds: float) -> tuple[Failure, ...] | None:
        """Return the failures of the change whose caller was cancelled; None: it has not ended well after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                failures = await self._receive(lambda _: None) or ()
        except (ProviderError, TimeoutError):
            return None
        return tuple(Failure.from_json(one) for one in failures)

    async def interrupt(self) -> None:
        """Stop the running request: calls to the cloud that have begun finish, and no other call starts."""
        await self._send({"do": "interrupt"})

    async def close(self) -> None:
        """End the runner, and with it what still runs."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    # -- lines ------------------------------------------------------------------------------------

    async def _change(self, request: Mapping[str, Any], on_change: OnChange) -> Outcome:
        done: list[Change] = []

        def listen(change: Change) -> None:
            if change.phase is Phase.DONE:
                done.append(change)
            on_change(change)

        failures = await self._request(request, listen) or ()
        return Outcome(tuple(done), tuple(Failure.from_json(one) for one in failures))

    async def _request(
        self, request: Mapping[str, Any], on_change: OnChange = lambda _: None
    ) -> Any:
        await self._send(request)
        return await self._receive(on_change)

    async def _send(self, value: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(value).encode() + b"\n")
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            pass  # What it said before it ended is still to be read.

    async def _receive(self, on_change: OnChange) -> Any:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            answer = json.loads(line)
            if "change" in answer:
                on_change(Change.from_json(answer["change"]))
            elif "failure" in answer:
                raise error_of(Failure.from_json(answer["failure"]))
            else:
                return answer.get("result")
        raise TemporaryError(f"{self._settings.name}: {await self._last_words()}")

    async def _last_words(self) -> str:
        code = await self._process.wait()
        if code < 0:
            return f"the process that ran Pulumi was killed by signal {-code}"
        lines = (self._settings.folder / "runner.log").read_text(errors="replace").splitlines()
        said = lines[-1] if lines else "it printed nothing"
        return f"the process that ran Pulumi ended with exit code {code}: {said}"
