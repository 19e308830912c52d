"""The check of hosts as text and as JSON."""

from __future__ import annotations

from fleetform.model.host_check import HostFinding, HostResult, Severity
from fleetform.views.host_check import check_report, render
from fleetform.views.json_value import to_json

SOUND = HostResult(
    "gpu",
    "gpu-0",
    "ssh",
    "root@10.0.0.1 port 22",
    Severity.OK,
    (HostFinding("account", Severity.OK, "root"),),
    None,
)
SILENT = HostResult(
    "gpu",
    "gpu-1",
    "ssh",
    "",
    Severity.ERROR,
    (HostFinding("connection", Severity.ERROR, "refused\x1b[2J", "try `ssh -v gpu-1`"),),
    None,
)


def test_a_block_a_host_and_a_summary() -> None:
    """Advice is below its finding, and nothing of a host's text moves the cursor."""
    lines = [line.text for line in render(check_report([SOUND, SILENT]))]
    assert lines == [
        "gpu-0  fleet gpu  root@10.0.0.1 port 22",
        "  ok       account  root",
        "",
        "gpu-1  fleet gpu",
        "  error    connection  refused\\u001b[2J",
        "                       help: try `ssh -v gpu-1`",
        "",
        "2 hosts: 1 ok, 1 with errors",
    ]


def test_json_counts_hosts_by_verdict() -> None:
    """Scripts read the counts, and each finding with its topic."""
    found = to_json(check_report([SOUND, SILENT]))
    assert (found["ok"], found["warning"], found["error"]) == (1, 0, 1)
    assert found["hosts"][1]["findings"][0]["topic"] == "connection"
    assert found["hosts"][0]["facts"] is None
