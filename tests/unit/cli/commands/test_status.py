"""The state of an environment on one screen, and the code that monitoring reads."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import closing

import pytest

import applied
from fleetform.app.ledger import open_for_writing
from fleetform.app.plan import make_plan
from fleetform.app.workspace import Workspace
from fleetform.model.plan import Permissions
from fleetform.plan.serialize import dump

GOOD = "type: task\nname: train\ncommands: [echo hi]\n"


@pytest.fixture
def fine(root, monkeypatch):
    """An environment whose only run is done."""
    (root / "tree.yaml").write_text(f"{applied.FLEET}---\n{GOOD}", encoding="utf-8")
    applied.enter(root)
    applied.run_all(root, exit_codes={})
    monkeypatch.chdir(root)
    return root


def status_of(typed):
    code, out, err = typed("status", "--json", "--exit-code")
    found = json.loads(out)
    assert found["exit_code"] == code, err
    return code, found


def test_an_environment_that_is_as_declared_needs_nothing(typed, fine):
    """Its counts, its last apply, and the code 0."""
    code, found = status_of(typed)
    assert (code, found["attention"], found["ledger"]["condition"]) == (0, [], "ready")
    assert (found["runs"]["states"], found["hosts"]["states"]) == ({"done": 1}, {"ready": 1})
    assert (found["applied"]["who"], found["applied"]["state"]) == ("ada@node1", "done")
    assert typed("status")[1].splitlines()[-1] == "Nothing needs attention."


def test_an_environment_that_was_never_applied_says_so(typed, root):
    """Nothing is there, and that is right."""
    code, out, _err = typed("status", "--exit-code", str(root))
    assert code == 0
    assert "the whole configuration was not applied yet" in out


def test_a_failed_run_is_4_and_named(typed, lab):
    """With how it failed; without --exit-code the command has done its work: 0."""
    code, found = status_of(typed)
    assert code == 4
    assert {"name": "bad", "state": "failed", "message": "exited with code 3"} in found["runs"][
        "troubled"
    ]
    code, out, _err = typed("status")
    assert code == 0
    assert "! bad is failed: exited with code 3" in out
    assert out.splitlines()[-1].startswith("Needs attention: ")


def test_work_that_no_controller_does_is_3(typed, root, monkeypatch):
    """An open run goes on only under a controller, which is not there."""
    (root / "tree.yaml").write_text(f"{applied.FLEET}---\n{GOOD}", encoding="utf-8")
    applied.enter(root)
    monkeypatch.chdir(root)
    code, found = status_of(typed)
    assert (code, found["attention"]) == (3, ["1 open run and no controller is running"])


def test_what_the_last_apply_could_not_change_is_3_until_an_apply_can(typed, fine):
    """An apply of a part of the configuration is no answer for the whole."""
    (fine / "tree.yaml").write_text("", encoding="utf-8")
    assert typed("apply", "-y")[0] == 3
    code, found = status_of(typed)
    assert (code, found["attention"]) == (3, ["1 change blocked in the last apply"])
    assert found["blocked"]["changes"][0]["resource"] == "fleet/local"
    assert "1 change blocked in the last apply of 20" in typed("status")[1]
    typed("apply", "-y", "--target", "run/train")
    assert status_of(typed)[0] == 3
    (fine / "tree.yaml").write_text(f"{applied.FLEET}---\n{GOOD}", encoding="utf-8")
    assert typed("apply", "-y")[0] == 0
    assert status_of(typed)[0] == 0


def test_a_plan_neither_blocks_nor_clears(typed, fine):
    """It may be of any copy of the configuration, such as a pull request's."""
    copy = shutil.copytree(fine, fine.parent / "copy")
    (copy / "tree.yaml").write_text("", encoding="utf-8")
    typed("plan", str(copy))
    assert status_of(typed)[0] == 0
    typed("apply", "-y", str(copy))
    typed("plan")
    assert status_of(typed)[0] == 3


def test_an_apply_with_nothing_to_do_is_recorded_only_where_the_last_one_says_otherwise(
    typed, fine
):
    """One that runs every few minutes does not fill the history."""

    def count() -> int:
        return len(json.loads(typed("history", "--applies", "--json")[1]))

    assert count() == 1
    typed("apply", "-y")
    assert count() == 1
    (fine / "tree.yaml").write_text("", encoding="utf-8")
    for _ in range(2):
        typed("apply", "-y")
        assert count() == 2


def test_a_failed_apply_is_over_once_an_apply_finds_nothing_to_do(typed, fine):
    """What it was to make is declared no longer; a plan of that is no apply."""
    (fine / "new.yaml").write_text("type: task\nname: new\ncommands: [a]\n", encoding="utf-8")
    workspace = Workspace.open(str(fine))
    with closing(open_for_writing(workspace)) as ledger:
        plan = make_plan(workspace, workspace.load(), Permissions(), now_ms=applied.NOW_MS + 1)
        accepted = ledger.accept(plan, dump(plan), who="ada", now_ms=applied.NOW_MS + 1)
        ledger.finish_apply(
            accepted.apply_uid, state="failed", summary="no room", now_ms=applied.NOW_MS + 2
        )
    (fine / "new.yaml").unlink()
    assert typed("plan", "--detailed-exitcode")[0] == 0
    code, found = status_of(typed)
    assert (code, found["attention"]) == (3, ["the last apply failed"])
    assert typed("apply", "-y")[0] == 0
    code, found = status_of(typed)
    assert (code, found["attention"], found["applied"]["state"]) == (0, [], "done")


def test_a_plan_in_a_file_that_only_holds_is_stale_once_that_has_changed(typed, fine):
    """Its reasons are those of the past, and `status` does not repeat them."""
    kept = str(fine.parent / "p.plan")
    (fine / "tree.yaml").write_text(GOOD, encoding="utf-8")
    typed("plan", "--out", kept)
    assert typed("apply", kept)[0] == 3
    more = applied.FLEET.replace("nodes: 1", "nodes: 2")
    (fine / "tree.yaml").write_text(f"{more}---\n{GOOD}", encoding="utf-8")
    applied.enter(fine)
    code, _out, err = typed("apply", kept)
    assert (code, "fleet/local was changed since the plan" in err) == (5, True), err
    assert status_of(typed)[1]["blocked"]["changes"] == []


def test_a_ledger_that_is_recovering_is_1_before_all_else(typed, lab):
    """What else it says may be wrong; the help names the command that puts it right."""
    ledger = open_for_writing(Workspace.open(str(lab)))
    ledger.begin_recovery("host local-0 remembers more")
    ledger.close()
    code, found = status_of(typed)
    assert (code, found["ledger"]["condition"]) == (1, "recovering")
    assert "remembers more" in found["ledger"]["detail"]
    assert "state rebuild" in found["ledger"]["advice"]


def test_a_damaged_ledger_is_shown_and_is_1_without_being_asked(typed, lab):
    """It is part of the answer: no traceback, no empty counts, and what to do."""
    Workspace.open(str(lab)).paths.ledger.write_bytes(b"no ledger at all" * 512)
    code, found = status_of(typed)
    assert (code, found["ledger"]["condition"], found["runs"]) == (1, "damaged", None)
    code, out, _err = typed("status")
    assert code == 1
    assert "ledger       damaged" in out
    assert "state restore" in out


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_working_copy_is_looked_at_and_nothing_of_it_runs(typed, fine):
    """Neither its file system monitor nor its filters; its commit is shown."""
    witness = fine.parent / "ran"
    git = ["git", "-c", "user.name=ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "init", "-q", str(fine)], check=True)
    subprocess.run([*git, "add", "."], cwd=fine, check=True)
    subprocess.run([*git, "commit", "-qm", "first"], cwd=fine, check=True)
    (fine / ".gitattributes").write_text("* filter=evil\n", encoding="utf-8")
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.process"):
        subprocess.run(["git", "config", key, f"touch {witness}"], cwd=fine, check=True)
    found = status_of(typed)[1]
    assert found["working_copy"].endswith("+dirty")
    assert not witness.exists()


def commit(root, message):
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", message], check=True)


def test_only_an_apply_of_the_whole_configuration_moves_the_applied_commit(typed, fine):
    """A commit of which a part was applied is still ahead."""
    commit(fine, "Train")
    assert typed("apply", "-y")[0] == 0
    before = status_of(typed)[1]["applied"]
    (fine / "other.yaml").write_text(
        "type: queue\nname: day\n---\ntype: queue\nname: night\n", encoding="utf-8"
    )
    commit(fine, "Add two resources")
    assert typed("apply", "-y", "--target", "queue/night")[0] == 0
    found = status_of(typed)[1]
    assert (found["applied"], found["commits_ahead"]) == (before, 1)
    assert typed("apply", "-y")[0] == 0
    found = status_of(typed)[1]
    assert (found["applied"]["commit"], found["commits_ahead"]) == (found["working_copy"], 0)


def test_an_apply_that_finds_nothing_to_change_applies_its_commit(typed, fine):
    """What parts of it changed before is the whole now."""
    (fine / "other.yaml").write_text("type: queue\nname: night\n", encoding="utf-8")
    commit(fine, "Add a queue")
    assert typed("apply", "-y", "--target", "queue/night")[0] == 0
    assert status_of(typed)[1]["applied"]["commit"] == ""
    assert "No changes" in "".join(typed("apply", "-y")[1:])
    found = status_of(typed)[1]
    assert (found["applied"]["commit"], found["commits_ahead"]) == (found["working_copy"], 0)


def test_what_was_blocked_is_over_once_everything_is_destroyed(typed, fine):
    """The applied commit stays, and the status says that it was destroyed since."""
    before = status_of(typed)[1]["applied"]
    (fine / "tree.yaml").write_text("", encoding="utf-8")
    assert typed("apply", "-y")[0] == 3
    assert typed("destroy", "-y", "--allow-destroy")[0] == 0
    code, found = status_of(typed)
    assert (code, found["attention"], found["blocked"]["changes"]) == (0, [], [])
    assert found["applied"]["commit"] == before["commit"]
    assert found["destroyed_at_ms"] > found["applied"]["at_ms"]
    assert "; `fleetform destroy` at 20" in typed("status")[1]
