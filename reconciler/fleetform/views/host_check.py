"""The check of hosts: a block a host, with a line a fact, and one line for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fleetform.model.figures import counted
from fleetform.model.host_check import HostResult, Severity
from fleetform.views.lines import BLANK, Line, line, printable

TONES = {Severity.OK: "good", Severity.WARNING: "warn", Severity.ERROR: "bad"}


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All hosts, and how many of them have which verdict, which is that of their worst finding."""

    hosts: tuple[HostResult, ...]
    ok: int
    warning: int
    error: int


def check_report(results: Sequence[HostResult]) -> CheckReport:
    verdicts = [one.severity for one in results]
    return CheckReport(
        tuple(results),
        ok=verdicts.count(Severity.OK),
        warning=verdicts.count(Severity.WARNING),
        error=verdicts.count(Severity.ERROR),
    )


def render(report: CheckReport) -> Iterator[Line]:
    """Write the blocks in order of fleet and host, then the summary."""
    for result in report.hosts:
        place = f"  {result.where}" if result.where else ""
        yield line((result.host, "bold"), f"  fleet {result.fleet}", (place, "dim"))
        topics = max((len(one.topic) for one in result.findings), default=0)
        for one in result.findings:
            yield line(
                "  ",
                (f"{one.severity.value:<9}", TONES[one.severity]),
                f"{one.topic:<{topics}}  {printable(one.text)}",
            )
            if one.advice:
                yield line(" " * (13 + topics), (f"help: {printable(one.advice)}", "dim"))
        yield BLANK
    parts = [f"{report.ok} ok"]
    if report.warning:
        parts.append(f"{report.warning} with warnings")
    if report.error:
        parts.append(f"{report.error} with errors")
    yield line(f"{counted(len(report.hosts), 'host')}: {', '.join(parts)}")
