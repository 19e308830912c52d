"""
An environment with a history, made with the real ledger and without a host.

Plans are entered and their steps written as done, then jobs are placed by the real scheduler and
what their host would report is taken in. So commands and API can be tested on rows that are
as they would be, in milliseconds.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from fleetform.agents.protocol.host_report import HostReport
from fleetform.agents.protocol.messages import Cursor, JobRecord
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.app.ledger import open_for_writing
from fleetform.app.plan import make_plan
from fleetform.app.workspace import Workspace
from fleetform.model.apply import StepOutcome
from fleetform.model.decision import Finish
from fleetform.model.plan import Permissions
from fleetform.model.verbs import ACTS_ON_HOSTS
from fleetform.plan.serialize import dump
from fleetform.providers.contract.observed import HostSeen
from fleetform.schedule import Policies, queue_from_state, schedule
from fleetform.store.ledger import StoredLedger

NOW_MS = 1_790_000_000_000
UID = "0123456789abcdef0123456789abcdef"

FLEET = """\
type: fleet
name: local
nodes: 1
local: {cpu: 4, memory: 8GB}
"""


AWS_FLEET = """\
type: fleet
name: gpus
regions: [us-east-1]
nodes: 0..2
resources: {gpu: A10G:1}
aws: {account: "123456789012", ssh_from: [203.0.113.7/32]}
"""


def write_tree(folder: Path, *documents: str) -> Path:
    """Write an environment named `lab` with these documents."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "environment.yaml").write_text(
        f"type: environment\nname: lab\nuid: {UID}\n", encoding="utf-8"
    )
    (folder / "tree.yaml").write_text("---\n".join(documents), encoding="utf-8")
    return folder


def enter(root: Path) -> None:
    """Plan the tree, enter the plan, and write all of its steps as done; nothing runs."""
    workspace = Workspace.open(str(root))
    with closing(open_for_writing(workspace)) as ledger:
        plan = make_plan(workspace, workspace.load(), Permissions(), now_ms=NOW_MS)
        accepted = ledger.accept(plan, dump(plan), who="ada@node1", now_ms=NOW_MS)
        world = [step for step in plan.steps if step.verb in ACTS_ON_HOSTS]
        ledger.begin_steps(accepted.apply_uid, world, now_ms=NOW_MS)
        outcomes = [StepOutcome(step.key) for step in plan.steps]
        ledger.finish_steps(accepted.apply_uid, plan.steps, outcomes, now_ms=NOW_MS)
        ledger.finish_apply(accepted.apply_uid, state="done", summary="all done", now_ms=NOW_MS)


def place_all(root: Path) -> None:
    """Let hosts answer, and every run that finds a place on one begin there."""
    with closing(open_for_writing(Workspace.open(str(root)))) as ledger:
        _place_all(ledger)


def run_all(root: Path, *, exit_codes: dict[str, int], output: bytes = b"one\ntwo\n") -> None:
    """
    Let every run that finds a place run to its end on a host that answers.

    `exit_codes` is by run; 0 for one that is not in it. Every job prints `output`.
    """
    workspace = Workspace.open(str(root))
    with closing(open_for_writing(workspace)) as ledger:
        fence = _place_all(ledger)
        book = ledger.read_book()
        for uid, attempt in book.attempts.items():
            run = book.runs[uid]
            code = exit_codes.get(run.name, 0)
            for job in attempt.jobs:
                if not job.instance_uid:
                    continue
                workspace.logs().append(uid, attempt.number, job.key.rank, 0, output, complete=True)
                record = JobRecord(
                    job.key, job.uid, job.gen, "digest", JobState.FINISHED, Cause.EXITED, code,
                    started_at_ms=NOW_MS + 1000, finished_at_ms=NOW_MS + 3000,
                    log_bytes=len(output),
                )  # fmt: skip
                ledger.commit_records(
                    job.instance_uid, [record], None, snapshot=False, fence=fence,
                    now_ms=NOW_MS + 3000,
                )  # fmt: skip
                end = (
                    Finish("failed", "exited", f"exited with code {code}")
                    if code
                    else Finish("done", "exited", "")
                )
                ledger.commit_transitions([(uid, end)], fence=fence, now_ms=NOW_MS + 3000)


def _place_all(ledger: StoredLedger) -> int:
    """Returns the fence under which it was written."""
    fence = ledger.take_fence(who="ada@node1", now_ms=NOW_MS)
    live = ledger.read_live()
    for instance in live.instances:
        ledger.commit_host(
            HostSeen(
                instance.uid, "install", "boot", "machine", live.ledger_id, live.epoch,
                Cursor("log", 0), (), _report(),
            ),
            fence=fence, now_ms=NOW_MS,
        )  # fmt: skip
    book = ledger.read_book()
    starts = schedule(queue_from_state(book), book.instances, Policies(), now_ms=NOW_MS).starts
    assert all(ledger.commit_placements(starts, fence=fence, now_ms=NOW_MS))
    return fence


def _report() -> HostReport:
    return HostReport("node1", 8000, 16 << 30, 1 << 40, 1 << 39, 8 << 30, 0, (), "3.11.0", "6.1.0")
