"""Which controller there is, in words."""

from __future__ import annotations

import pytest

from fleetform.model.leadership import BACKGROUND, Holder
from fleetform.views.controllers import ControllerKind, controller_lines, controller_row


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (BACKGROUND, ControllerKind.BACKGROUND),
        ("apply", ControllerKind.APPLY),
        ("serve", ControllerKind.SERVE),
        ("state restore", ControllerKind.OTHER),
        ("", ControllerKind.OTHER),
    ],
)
def test_a_holder_of_the_lease_has_a_kind(command: str, kind: ControllerKind) -> None:
    """Each command that takes the manager lease has one, also a command of a later release."""
    assert controller_row(Holder(7, "ada", command, 0, "node1")).kind is kind


def test_a_background_controller_is_shown_with_log_and_variables() -> None:
    """Process, machine, age, log and names of variables: what a person needs to look into it."""
    row = controller_row(
        Holder(7, "ada", BACKGROUND, 1000, "node1"),
        log="/state/background.log",
        variables=("AWS_PROFILE",),
    )
    assert controller_lines(row, now_ms=61_000) == (
        "background controller of ada (pid 7 on node1), for 1m00s",
        "log: /state/background.log",
        "additional variables: AWS_PROFILE",
    )


def test_no_controller_is_said_in_as_many_words() -> None:
    """The same words stand in `ps` and `why`."""
    assert controller_lines(None, now_ms=0) == ("no controller is running",)
