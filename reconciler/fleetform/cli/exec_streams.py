"""
This process's standard streams, joined to a command that runs elsewhere.

With a terminal, ours becomes raw: each key goes to the command as it is pressed, and the command's
terminal decides that Ctrl-C is a signal. Without one, SIGINT, SIGTERM and SIGHUP are passed on by
name, and a second SIGINT ends this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fleetform.agents.protocol.exec_pieces import Size

if TYPE_CHECKING:
    from fleetform.providers.contract.job_streams import ExecEnd, ExecSession

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_READ_BYTES = 32 << 10
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def has_terminal() -> bool:
    """Tell whether keys come from a terminal and output goes to one."""
    return os.isatty(_STDIN) and os.isatty(_STDOUT)


def terminal_size() -> Size:
    columns, rows = os.get_terminal_size(_STDOUT)
    return Size(rows, columns)


async def join(session: ExecSession, *, terminal: bool) -> ExecEnd:
    """
    Carry input and output until the command has ended.

    Raises:
        BrokenPipeError: The reader of our output has left.
        ProviderError: The connection is lost.
    """
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as undo:
        if terminal:
            undo.enter_context(_raw_terminal())
            loop.add_signal_handler(signal.SIGWINCH, lambda: session.resize(terminal_size()))
            undo.callback(loop.remove_signal_handler, signal.SIGWINCH)
            # It may have changed since the command was asked for.
            session.resize(terminal_size())
        undo.enter_context(_signals_passed_on(session, loop))
        # A thread: epoll takes no files, and a terminal that does not block would not block for
        # other processes that share it either. A read cannot be ended, so the thread is not waited for.
        threading.Thread(target=_read_input, args=(session, loop), daemon=True).start()
        async for data, is_error in session.output():
            await asyncio.to_thread(_write_all, _STDERR if is_error else _STDOUT, data)
        return session.end()


def _read_input(session: ExecSession, loop: asyncio.AbstractEventLoop) -> None:
    # Both raise when the session or the loop has ended: what is typed then is for the shell.
    with contextlib.suppress(Exception, asyncio.CancelledError):
        while data := _read(_STDIN):
            asyncio.run_coroutine_threadsafe(session.write(data), loop).result()
        loop.call_soon_threadsafe(session.end_input)


def _read(descriptor: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            select.select([descriptor], [], [])
        except OSError:
            return b""


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    before = termios.tcgetattr(_STDIN)
    # What was printed before in the terminal's own way comes before what the command prints.
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        tty.setraw(_STDIN, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(_STDIN, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _signals_passed_on(session: ExecSession, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    task = asyncio.current_task()
    assert task is not None
    came: list[int] = []

    def pass_on(number: signal.Signals) -> None:
        came.append(number)
        if came.count(signal.SIGINT) > 1:
            task.cancel()
            return
        session.signal(number.name.removeprefix("SIG"))

    # What is ignored, by `nohup` or a shell's background, stays so.
    taken = [one for one in _PASSED_ON if signal.getsignal(one) != signal.SIG_IGN]
    for number in taken:
        loop.add_signal_handler(number, pass_on, number)
    try:
        yield
    except asyncio.CancelledError:
        if came.count(signal.SIGINT) > 1:
            raise KeyboardInterrupt from None
        raise
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
