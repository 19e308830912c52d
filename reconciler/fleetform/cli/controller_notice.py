"""A pause of a command that follows runs, which says when no controller is running any more."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleetform.cli.words import not_driven

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.cli.screen import Screen

__all__ = ["ControllerNotice"]

_LOOK_SECONDS = 2.0
"""How late it is said that no controller is running."""


class ControllerNotice:
    """Waits between looks at runs that are not over, and says once when their controller ends."""

    def __init__(self, workspace: Workspace, error_screen: Screen) -> None:
        self._workspace = workspace
        self._error_screen = error_screen
        self._is_driven = True
        self._look_at = 0.0

    def __call__(self, seconds: float) -> None:
        from fleetform.app.controllers import find_controller

        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_SECONDS
            was_driven = self._is_driven
            self._is_driven = find_controller(self._workspace) is not None
            if was_driven and not self._is_driven:
                self._error_screen.labelled("help", not_driven(self._workspace))
                self._error_screen.flush()
        time.sleep(seconds)
