"""What all tests share: services that may be missing, and the summary lines at the end."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

SUMMARY = "summary"


@pytest.fixture(scope="session")
def need() -> Callable[[str, bool, str], None]:
    """
    Ask for a service: `need("actionlint", found, "why it is not there")`.

    Where it is missing the test is skipped with the reason; a service that
    FLEETFORM_TEST_REQUIRE names (or `all`) fails the test instead, so that CI cannot go green
    by skipping.
    """
    required = set(os.environ.get("FLEETFORM_TEST_REQUIRE", "").replace(",", " ").split())

    def ask(service: str, found: bool, reason: str) -> None:
        if found:
            return
        if required & {"all", service}:
            pytest.fail(f"{service} is required here: {reason}")
        pytest.skip(f"{service}: {reason}")

    return ask


@pytest.fixture
def summarise(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Print one line at the end of the whole run, from whichever process the test ran in."""

    def say(line: str) -> None:
        record_property(SUMMARY, line)

    return say


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = sorted(
        str(value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == SUMMARY
    )
    if lines:
        terminalreporter.section("promises under faults")
        for line in lines:
            terminalreporter.write_line(line)
