"""Exit codes by their table, and trees that must not be mistaken for a wish."""

from __future__ import annotations

from integration.ledger.lab import FLEET, Lab, task


def test_a_command_that_does_not_exist_fails_its_run(lab: Lab) -> None:
    """Exit code 127 of the shell is the run's; the apply exits with 4, and later plans name it."""
    lab.declare(FLEET, task("typo", "no-such-command --now"))
    done = lab.run("apply", "-y")
    assert done.returncode == 4, done.stdout + done.stderr
    assert lab.states() == {"typo": "failed"}
    assert "127" in lab.run("ps", "--all").stdout + lab.run("why", "typo").stdout
    assert "no-such-command" in lab.run("logs", "typo").stdout
    later = lab.run("plan")
    assert later.returncode == 0
    assert "1 run failed earlier" in later.stdout


def test_plan_exits_by_the_table(lab: Lab) -> None:
    """0 no error, 1 error; when asked also 2 changes, 3 blocked, 4 failed before."""
    lab.declare(FLEET, task("one", lab.says("one")))
    assert lab.run("plan").returncode == 0
    assert lab.run("plan", "--detailed-exitcode").returncode == 2
    assert lab.run("apply", "-y").returncode == 0
    assert lab.run("plan", "--detailed-exitcode").returncode == 0
    lab.declare(task("one", lab.says("one")))
    assert lab.run("plan").returncode == 0
    assert lab.run("plan", "--detailed-exitcode").returncode == 3
    lab.declare(FLEET, task("one", lab.says("one"), more="no_such_field: 1\n"))
    assert lab.run("plan").returncode == 1
    lab.declare(FLEET, task("one", lab.says("one")), task("bad", "exit 1"))
    assert lab.run("apply", "-y").returncode == 4
    assert lab.run("apply", "-y").returncode == 0
    assert lab.run("apply", "-y", "--target", "bad").returncode == 4
    assert lab.run("plan").returncode == 0
    assert lab.run("plan", "--detailed-exitcode").returncode == 4


def test_a_stale_plan_is_refused_with_its_code(lab: Lab) -> None:
    """A kept plan that no longer fits changes nothing and exits with 5."""
    lab.declare(FLEET, task("one", lab.says("one")))
    plan = lab.folder / "kept.plan"
    assert lab.run("plan", "--out", str(plan)).returncode == 0
    lab.declare(FLEET.replace("cpu: 8", "cpu: 4"), task("one", lab.says("one")))
    assert lab.run("apply", "-y").returncode == 0
    done = lab.run("apply", "-y", str(plan))
    assert done.returncode == 5, done.stdout + done.stderr
    assert lab.said() == ["one"]


def test_a_second_serve_is_locked_out(lab: Lab) -> None:
    """One manager an environment: the other exits with 6 and names who has it."""
    gate = lab.folder / "gate"
    lab.declare(FLEET, task("long", lab.says("begun"), f"until [ -e {gate} ]; do sleep 0.05; done"))
    apply = lab.start("apply", "-y")
    lab.wait_until_said("begun")
    for command in (["serve", "--once"], ["state", "rebuild"]):
        done = lab.run(*command)
        assert done.returncode == 6, done.stdout + done.stderr
        assert str(apply.pid) in done.stderr
    gate.touch()
    assert lab.finish(apply)[0] == 0


def test_an_empty_tree_deletes_nothing_by_itself(lab: Lab) -> None:
    """Everything that exists would go, which needs a permission: it is held and said."""
    lab.declare(FLEET, task("one", lab.says("one")))
    assert lab.run("apply", "-y").returncode == 0
    (lab.tree / "tree.yaml").unlink()
    done = lab.run("apply", "-y")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "declares nothing" in done.stdout + done.stderr
    assert len(lab.agents()) == 1
    assert "local" in lab.run("fleet", "list").stdout


def test_a_tree_that_cannot_be_read_is_no_wish(lab: Lab) -> None:
    """A broken file, a broken environment and a missing one change nothing, with any permission."""
    lab.declare(FLEET, task("one", lab.says("one")))
    assert lab.run("apply", "-y").returncode == 0
    (lab.tree / "tree.yaml").write_text("type: fleet\nname: [local\n", encoding="utf-8")
    assert lab.run("apply", "-y", "--allow-destroy").returncode == 1
    done = lab.run("apply", "-y", "--allow-destroy", "--keep-going")
    assert done.returncode in {0, 1, 3}, done.stdout + done.stderr
    (lab.tree / "tree.yaml").write_bytes(b"\xff\xfe\x00broken")
    assert lab.run("apply", "-y", "--allow-destroy", "--keep-going").returncode in {0, 1, 3}
    environment = lab.tree / "environment.yaml"
    kept = environment.read_text()
    environment.write_text("type: environment\nname: lab\nuid: [", encoding="utf-8")
    assert lab.run("apply", "-y", "--allow-destroy", "--keep-going").returncode == 1
    environment.unlink()
    assert lab.run("apply", "-y", "--allow-destroy").returncode == 1
    environment.write_text(kept)
    lab.declare(FLEET, task("one", lab.says("one")))
    assert lab.run("plan", "--detailed-exitcode").returncode == 0
    assert len(lab.agents()) == 1
    assert lab.said() == ["one"]
