from __future__ import annotations

import inspect

import click
import pytest

from fleetform.cli.exit import CODES, Exit
from fleetform.cli.main import fleetform
from fleetform.plan import exit as of_plan


def test_the_codes_are_the_documented_ones():
    """Scripts branch on these numbers: they never change."""
    assert {code.name: int(code) for code in Exit} == {
        "OK": 0,
        "ERROR": 1,
        "CHANGES": 2,
        "HELD": 3,
        "RUN_FAILED": 4,
        "STALE": 5,
        "LOCKED": 6,
        "POLICY": 7,
        "INTERRUPTED": 130,
        "BROKEN_PIPE": 141,
        "UNREACHABLE": 255,
    }


def test_plans_and_commands_agree():
    """What a plan means and what an apply ends with are codes of the same table."""
    assert (Exit.OK, Exit.ERROR, Exit.CHANGES, Exit.HELD, Exit.RUN_FAILED) == (
        of_plan.CONVERGED, of_plan.ERROR, of_plan.CHANGES, of_plan.BLOCKED, of_plan.RUN_FAILED,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("command", "function", "facts"),
    [
        ("plan", of_plan.exit_code_of_plan,
         [{"is_recovering": True}, {"is_blocked": True}, {"has_failed": True},
          {"has_changes": True}, {}]),
        ("apply", of_plan.exit_code_of_apply,
         [{"has_error": True}, {"is_blocked": True}, {"has_failed": True}, {}]),
        ("status", of_plan.exit_code_of_status,
         [{"is_trusted": False}, {"has_failed": True}, {"needs_attention": True}, {}]),
    ],
)  # fmt: skip
def test_the_documented_order_is_the_one_that_is_judged_by(command, function, facts):
    """Help and reference list the codes as the function decides: each fact alone gives its row."""
    no_fact = {
        name: name in {"detailed", "is_trusted"} for name in inspect.signature(function).parameters
    }
    judged = [function(**(no_fact | fact)) for fact in facts]
    # What is refused before an outcome exists has codes of its own.
    refused = {Exit.STALE, Exit.LOCKED, Exit.POLICY, Exit.INTERRUPTED}
    assert judged == [code for code, _meaning in CODES[command] if code not in refused]


@pytest.mark.parametrize("command", sorted(CODES))
def test_help_names_the_codes_of_its_command(command):
    """In the same words as the reference page."""
    found = fleetform.get_command(click.Context(fleetform), command)
    assert found is not None
    text = " ".join(found.get_help(click.Context(found, terminal_width=1000)).split())
    assert all(f"{int(code)} {meaning}" in text for code, meaning in CODES[command])
