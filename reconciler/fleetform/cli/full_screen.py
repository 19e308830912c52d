"""
A terminal whose whole screen is redrawn in place until a key ends it.

The alternate screen keeps what the shell has printed. The size is asked for each frame, so a
resized terminal is followed without a signal.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from fleetform.cli.interrupts import Interrupts

if TYPE_CHECKING:
    from fleetform.cli.screen import Screen

# Alternate screen, hidden cursor, and no automatic wrap: a line that is too long is cut by the
# terminal and never scrolls the frame.
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME = "\x1b[H"
_ERASE_LINE = "\x1b[2K"
_ERASE_BELOW = "\x1b[J"


def can_redraw(screen: Screen) -> bool:
    """Tell whether lines can be rewritten: on a terminal that knows escape sequences."""
    return screen.interactive and os.environ.get("TERM") != "dumb"


class FullScreen:
    """
    Draws frames from the first line on. Enter it in the main thread only.

    Every way out restores the terminal: the end of the block, an exception, Ctrl-C, SIGTERM, SIGHUP,
    and Ctrl-Z until the command continues. Ctrl-Z stops the command between two frames only: within
    one, the stream refuses a second writer, and the rest of the frame would go to the shell's screen.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        # Without a terminal there are no keys to read, and Ctrl-C ends it.
        self._keys = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._interrupts = Interrupts()
        self._modes: list[Any] = []
        self._before: Any = None
        # Of a pipe: a byte says that Ctrl-Z was pressed, and ends the wait for keys.
        self._stops, self._note = -1, -1

    def __enter__(self) -> Self:
        self._before = signal.getsignal(signal.SIGTSTP)
        self._stops, self._note = os.pipe()
        os.set_blocking(self._note, False)
        self._interrupts.__enter__()
        try:
            if self._before != signal.SIG_IGN:
                signal.signal(signal.SIGTSTP, self._note_stop)
            self._take()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._restore()
        finally:
            signal.signal(signal.SIGTSTP, self._before)
            self._interrupts.__exit__()
            os.close(self._stops)
            os.close(self._note)

    @property
    def height(self) -> int:
        """Lines of the terminal; at least one."""
        try:
            return max(1, os.get_terminal_size(self._screen.stream.fileno()).lines)
        except (OSError, ValueError):
            return 24

    def draw(self, lines: Sequence[str]) -> None:
        """Replace the frame; lines below the last one of the terminal are left out."""
        height = self.height
        # Erased before they are written: at the last column the cursor is on the last character.
        text = "\n".join(f"{_ERASE_LINE}{line}" for line in lines[:height])
        below = f"\n{_ERASE_BELOW}" if len(lines) < height else ""
        self._write(f"{_HOME}{text}{below}")

    def wait_for(self, keys: str, seconds: float) -> bool:
        """Wait; tell whether one of `keys` was pressed. That ends the wait, and so does Ctrl-Z."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            watched = [self._stops] if self._keys is None else [self._stops, self._keys]
            ready = select.select(watched, [], [], left)[0]
            if self._stops in ready:
                self._stop()
                # The screen is empty now: the next frame is due.
                return False
            if self._keys in ready:
                pressed = os.read(self._keys, 1024)
                if not pressed:
                    # The terminal is closed.
                    self._keys = None
                elif any(key.encode() in pressed for key in keys):
                    return True
        return False

    def _take(self) -> None:
        if self._keys is not None:
            self._modes = termios.tcgetattr(self._keys)
            # Keys come one by one and are not printed; Ctrl-C is still a signal.
            tty.setcbreak(self._keys, termios.TCSADRAIN)
        self._write(_ENTER)

    def _restore(self) -> None:
        try:
            self._write(_LEAVE)
        except (OSError, ValueError):
            # The terminal is closed: there is no cursor to restore.
            return
        finally:
            if self._keys is not None and self._modes:
                termios.tcsetattr(self._keys, termios.TCSADRAIN, self._modes)

    def _note_stop(self, _number: int, _frame: FrameType | None) -> None:
        # A full pipe ends the wait as well.
        with contextlib.suppress(BlockingIOError):
            os.write(self._note, b"\0")

    def _stop(self) -> None:
        """Give the terminal back to the shell at Ctrl-Z, and take it again afterwards."""
        self._restore()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        # Several presses stop it once.
        os.read(self._stops, 1 << 16)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._note_stop)
        self._take()

    def _write(self, text: str) -> None:
        self._screen.stream.write(text)
        self._screen.flush()
