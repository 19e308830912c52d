"""What is tried of an account: the same against a real one and against the cloud of the tests."""

from __future__ import annotations

import json

from integration.aws_account.account import Account, wait_until

RUN = """
type: task
name: hello
fleets: [tests]
commands: [echo "hello from $(hostname)"]
"""


def create_shrink_and_destroy(account: Account) -> None:
    """Nothing exists before apply; a second plan is empty; a smaller fleet has fewer instances."""
    account.declare(2)
    assert "create 2 aws:ec2/instance:Instance" in account.run("plan", "--preview")
    assert account.existing() == []
    account.run("apply", "-y")
    assert len(account.instances()) == 2
    assert json.loads(account.run("plan", "--format", "json"))["resource_changes"] == []
    account.declare(1)
    account.run("apply", "-y", "--allow-destroy")
    wait_until(lambda: len(account.instances()) == 1, "one instance is left")
    account.run("destroy", "-y", "--allow-destroy")
    wait_until(lambda: account.existing() == [], "nothing is left")


def kill_during_a_create(account: Account) -> None:
    """After `kill -9` of the controller the next apply buys nothing twice."""
    account.declare(2)
    with account.start("apply", "-y") as process:
        wait_until(lambda: bool(account.instances()) or process.poll() is not None, "it creates")
        process.kill()
    account.run("apply", "-y")
    uids = [one.tags["fleetform:uid"] for one in account.instances()]
    assert len(uids) == len(set(uids)) == 2


def run_a_job(account: Account) -> None:
    """The instance boots, becomes a host over SSH and runs a job; its cost is known."""
    account.declare(1, RUN)
    account.run("apply", "-y")
    assert "hello from" in account.run("logs", "hello")
    assert "1 host: 1 ok" in account.run("fleet", "check", "tests")
    fleet, run = json.loads(account.run("cost", "--format", "json"))
    assert (fleet["kind"], run["name"]) == ("fleet", "hello")
