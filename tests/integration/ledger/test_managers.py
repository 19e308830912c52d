"""Several commands on one environment, and commands that are ended at the wrong moment."""

from __future__ import annotations

import json
import signal
import time
from typing import IO

import pytest

from integration.ledger.lab import FLEET, PATIENCE_SECONDS, Lab, task

ARRAY = "array: 1-20\n"


def test_two_applies_at_once_run_everything_once(lab: Lab) -> None:
    """Both end well and each run ran once, whichever of them drove it."""
    lab.declare(FLEET, task("many", lab.says("$FLEETFORM_ARRAY_INDEX"), more=ARRAY))
    both = [lab.start("apply", "-y"), lab.start("apply", "-y")]
    for child in both:
        code, output = lab.finish(child)
        # The slower goes on with what is left of what was approved, if anything is.
        assert code == 0, output
    assert lab.run("apply", "-y").returncode == 0
    assert sorted(lab.said(), key=int) == [str(number) for number in range(1, 21)]


def test_an_apply_beside_serve_hands_over_and_follows(lab: Lab) -> None:
    """What an apply enters is carried out by serve, and the apply sees it to its end."""
    lab.declare(FLEET)
    serve = lab.start("serve")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "local" not in lab.run("fleet", "list").stdout:
        assert time.monotonic() < deadline, "serve does not make the fleet"
        time.sleep(0.1)
    lab.declare(FLEET, task("one", lab.says("one"), "sleep 0.5"))
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert serve.poll() is None
    deadline = time.monotonic() + PATIENCE_SECONDS
    while lab.states().get("one") != "done":
        assert time.monotonic() < deadline, lab.states()
        time.sleep(0.1)
    serve.send_signal(signal.SIGTERM)
    code, output = lab.finish(serve)
    assert code in {0, 130}, output
    assert lab.said() == ["one"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_serve_ends_in_good_order(lab: Lab, number: signal.Signals) -> None:
    """It is asked to, or its terminal is closed: both give the environment back, with 0."""
    lab.declare()
    serve = lab.start("serve")
    assert serve.stdout is not None
    _read_until(serve.stdout, "serving lab")
    serve.send_signal(number)
    code, output = lab.finish(serve)
    assert (code, output.count("Traceback")) == (0, 0)
    assert "none" in lab.run("lock", "show").stdout


def test_serve_ends_when_its_folder_is_moved_away(lab: Lab) -> None:
    """Its ledger and its lock are seen by nobody else then; nothing is made in their place."""
    lab.declare(FLEET)
    serve = lab.start("serve")
    assert serve.stdout is not None
    _read_until(serve.stdout, "fleet/local: created")
    elsewhere = lab.folder / "elsewhere"
    lab.environment.rename(elsewhere)
    lab.declare(FLEET, task("one", lab.says("one")))
    code, output = lab.finish(serve)
    assert (code, output.count("Traceback")) == (1, 0)
    assert "was moved or removed while it was in use" in output
    assert "put its folder back" in output
    assert not lab.environment.exists()
    elsewhere.rename(lab.environment)
    assert lab.run("apply", "-y").returncode == 0
    assert lab.said() == ["one"]


def test_apply_gives_the_environment_back_when_its_terminal_is_closed(lab: Lab) -> None:
    """It ends as with Ctrl-C; the run goes on."""
    lab.declare(FLEET, task("long", lab.says("begun"), "sleep 600"))
    apply = lab.start("apply", "-y")
    lab.wait_until_said("begun")
    apply.send_signal(signal.SIGHUP)
    code, output = lab.finish(apply)
    assert code == 130, output
    assert lab.states()["long"] in {"running", "preparing"}


def test_an_edit_that_serve_has_entered_is_followed(lab: Lab) -> None:
    """Whoever asked for an edit and its end gets the end, although `serve` saw the edit first."""
    gate = lab.folder / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.05; done"
    lab.declare(FLEET, task("long", lab.says("begun"), wait, "exit 3", more="env: {LR: '2'}\n"))
    serve = lab.start("serve")
    lab.wait_until_said("begun")
    # What the edit asks for is so by then, which is how it looks to whoever was second.
    edit = lab.start("set", "long", "env.LR=2", "--apply", "-y")
    assert edit.stdout is not None
    told = _read_until(edit.stdout, "applies the plan")
    assert "No changes" in told
    gate.touch()
    code, rest = lab.finish(edit)
    assert code == 4, told + rest
    assert "1 run failed" in rest
    serve.terminate()
    assert lab.finish(serve)[0] == 0


def test_ctrl_c_leaves_the_runs_alone(lab: Lab) -> None:
    """An interrupted apply ends with 130 and a sentence; the next one goes on with the same run."""
    gate = lab.folder / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.05; done"
    lab.declare(FLEET, task("long", lab.says("begun"), wait, lab.says("ended")))
    apply = lab.start("apply", "-y")
    lab.wait_until_said("begun")
    apply.send_signal(signal.SIGINT)
    code, output = lab.finish(apply)
    assert code == 130, output
    assert "Traceback" not in output
    assert lab.states()["long"] in {"running", "preparing"}
    gate.touch()
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.said() == ["begun", "ended"]


@pytest.mark.parametrize("delay", [0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3])
def test_an_apply_that_is_killed_is_taken_up_again(lab: Lab, delay: float) -> None:
    """`kill -9` between any two steps; the same command again finishes, and nothing runs twice."""
    lab.declare(
        FLEET,
        "type: volume\nname: data\nfleet: local\npath: data\n",
        task("many", lab.says("$FLEETFORM_ARRAY_INDEX"), more=f"{ARRAY}volumes: ['data:data']\n"),
    )
    apply = lab.start("apply", "-y")
    time.sleep(delay)
    apply.kill()
    lab.finish(apply)
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(lab.said(), key=int) == [str(number) for number in range(1, 21)]
    assert set(lab.states().values()) == {"done"}


def test_serve_says_that_another_environment_lies_in_its_folder(lab: Lab) -> None:
    """A branch was switched under it: what was applied stays, and it goes on when it is back."""
    environment = lab.tree / "environment.yaml"
    ours = environment.read_text(encoding="utf-8")
    lab.declare(FLEET, task("train", lab.says("one")))
    assert lab.run("apply", "-y").returncode == 0
    server = lab.start("serve")
    try:
        assert server.stdout is not None
        _read_until(server.stdout, "serving lab")
        environment.write_text(ours.replace(lab.uid, "f" * 32), encoding="utf-8")
        lab.declare(FLEET)
        told = _read_until(server.stdout, "stays in force")
        assert "is served" in told
        assert lab.uid not in told
        environment.write_text(ours, encoding="utf-8")
        lab.declare(FLEET, task("train", lab.says("one")), task("later", lab.says("two")))
        lab.wait_until_said("two")
        assert server.poll() is None
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE_SECONDS)
    assert lab.said() == ["one", "two"]


def test_serve_says_what_has_become_of_its_tree(lab: Lab) -> None:
    """That it is whole again, and that the environment has another name."""
    environment = lab.tree / "environment.yaml"
    lab.declare(FLEET)
    server = lab.start("serve")
    try:
        assert server.stdout is not None
        _read_until(server.stdout, "fleet/local: created")
        (lab.tree / "broken.yaml").write_text("type: task\n", encoding="utf-8")
        _read_until(server.stdout, "broken.yaml")
        (lab.tree / "broken.yaml").unlink()
        _read_until(server.stdout, "broken.yaml: no longer:")
        text = environment.read_text(encoding="utf-8")
        environment.write_text(text.replace("name: lab", "name: prod"), encoding="utf-8")
        _read_until(server.stdout, "the environment `lab` is called `prod` from now on")
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE_SECONDS)


def test_the_log_of_serve_says_what_it_applied_and_what_is_blocked(lab: Lab) -> None:
    """Each line is an object; a second blocked change does not repeat the first."""
    lab.declare(FLEET, task("one", "sleep 600"), task("two", "sleep 600"))
    server = lab.start("serve", "--log-format", "json")
    try:
        assert server.stdout is not None
        begun = _read_until(server.stdout, '"one: running"')
        if '"two: running"' not in begun:
            begun += _read_until(server.stdout, '"two: running"')
        (applied,) = [one for one in _events(begun) if one["event"] == "plan.applied"]
        assert applied["level"] == "INFO"
        assert applied["summary"] == "+1 fleet (local), +2 runs (one, two)"
        lab.declare(FLEET, task("one", "sleep 601"), task("two", "sleep 600"))
        (blocked,) = _events(_read_until(server.stdout, "change.blocked"))
        assert (blocked["level"], blocked["resource"]) == ("WARNING", "run/one")
        lab.declare(FLEET, task("one", "sleep 601"), task("two", "sleep 601"))
        (blocked,) = _events(_read_until(server.stdout, "change.blocked"))
        assert blocked["resource"] == "run/two"
        lab.declare(FLEET, task("one", "sleep 600"), task("two", "sleep 601"))
        (over,) = _events(_read_until(server.stdout, "change.blocked"))
        assert (over["event"], over["resource"]) == ("change.blocked.over", "run/one")
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE_SECONDS)


def test_serve_does_not_warn_of_its_own_apply(lab: Lab) -> None:
    """A plan that it makes while a step waits for a host is not blocked by an earlier apply."""
    host = "{hostname: 127.0.0.1, port: 9}"
    slow = f"type: fleet\nname: slow\nssh_config: {{user: root, hosts: [{host}], host_keys: first-use}}\n"
    lab.declare(slow)
    serve = lab.start("serve")
    assert serve.stdout is not None
    begun = _read_until(serve.stdout, "waiting for host")
    lab.declare(slow, task("one", "true"))
    lab.wait_until(lambda: len(lab.json("history", "--applies")) == 2, "the second apply")
    serve.terminate()
    _, rest = lab.finish(serve)
    assert "127.0.0.1:9" in begun
    assert "blocked" not in begun + rest


def _events(lines: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in lines.splitlines()]


def _read_until(stream: IO[str], words: str) -> str:
    """What was printed until a line has these words; a server that ends has said all it will."""
    lines = []
    for line in stream:
        lines.append(line)
        if words in line:
            return "".join(lines)
    raise AssertionError("".join(lines))
