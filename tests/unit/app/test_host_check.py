"""Which hosts the check of a fleet asks."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import applied
from fleetform.app.host_check import check_hosts, questions_of
from fleetform.app.ledger import host_checker
from fleetform.app.workspace import Workspace
from fleetform.model.instance import InstanceState
from unit.views.rows import instance


def test_hosts_that_follow_demand_are_asked(tmp_path, monkeypatch) -> None:
    """Also one whose creation failed, which is an error; one that leaves is not asked."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    workspace = Workspace.open(str(applied.write_tree(tmp_path / "lab", applied.AWS_FLEET)))
    desired = workspace.load().desired
    assert desired is not None
    rows = [
        replace(instance(provider="aws", state=state), name=f"gpus-{number}", fleet="gpus")
        for number, state in enumerate((InstanceState.PROVISIONING, InstanceState.TERMINATING))
    ]
    questions = questions_of(desired.resources.values(), rows)
    (result,) = asyncio.run(check_hosts(questions, host_checker(workspace), applied.UID))
    assert (result.host, result.severity.value) == ("gpus-0", "error")
    (finding,) = result.findings
    assert (finding.text, finding.advice) == (
        "it is not created yet",
        "`fleetform fleet show gpus` says how far its creation is",
    )
